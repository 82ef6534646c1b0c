import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { SCOPES, type Scope } from '../../src/access/scopes.ts';
import { adminOf } from '../support/admin.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const VAN = '350000000000001';

/** Every route of the read API and the permissions that open it, any one of them. */
const ROUTES: [route: string, scopes: readonly Scope[]][] = [
  ['/devices', ['read_devices']],
  ['/devices/nearest?lat=1&lng=1', ['read_devices', 'read_locations']],
  [`/devices/${VAN}`, ['read_devices']],
  [`/devices/${VAN}/location`, ['read_locations']],
  [`/devices/${VAN}/history`, ['read_history']],
  [`/devices/${VAN}/commands`, ['send_commands']],
  ['/events', ['read_events']],
];

describe('a permission opens its routes and no other', () => {
  const keys = new Map<Scope, string>();
  let pod: Pod;
  let all: string;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    await admin.device('owner@example.com', VAN);
    ({ key: all } = await admin.key('owner@example.com'));
    for (const scope of SCOPES)
      keys.set(scope, (await admin.key('owner@example.com', { scopes: scope })).key);
    pod = await startPod(database.url);
    await pod.points([{ imei: VAN, recorded_at: Date.now(), latitude: 1, longitude: 1 }]);
  });

  after(() => pod.stop());

  for (const [route, opening] of ROUTES) {
    test(`${route} opens with ${opening.join(' or ')}`, async () => {
      for (const scope of SCOPES) {
        const v2 = await pod.get(`/api/v2${route}`, keys.get(scope));
        const v3 = await pod.get(`/api/v3${route}`, keys.get(scope));
        if (opening.includes(scope)) {
          assert.deepEqual([v2.status, v3.status], [200, 200], scope);
          continue;
        }
        assert.deepEqual([v2.status, v3.status], [403, 403], scope);
        assert.deepEqual(Object.keys(v2.body), ['error']);
        for (const name of opening) assert.match(v2.body.error, new RegExp(`\\b${name}\\b`));
        assert.equal(v3.body.error.code, 'INSUFFICIENT_SCOPE');
        assert.equal(v3.headers.get('x-api-status'), 'beta');
      }
      assert.equal((await pod.get(`/api/v2${route}`, all)).status, 200);
    });
  }
});
