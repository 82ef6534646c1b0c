import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { SCOPES } from '../../../src/access/scopes.ts';
import { fleetDatabase } from '../runFleet.ts';

const database = fleetDatabase('account:create --email a@x --name A');

let worldId: number;
before(async () => {
  const [row] = await database.sql<{ world_id: number }[]>`select world_id from account`;
  worldId = row?.world_id ?? 0;
});

async function keyRow(id: number) {
  const [row] = await database.sql`select * from api_key where id = ${id}`;
  assert.ok(row);
  return row;
}

describe('key:create', () => {
  test('shows the key, stores only its fingerprint and notifies the pods', async () => {
    const { result, rows, raised } = await database.watch(
      "key:create --email A@x --scopes 'read_events, read_devices,read_events' --name Shop",
    );
    const { id, key, prefix, scopes } = result.json;
    assert.match(key, /^fk_[A-Za-z0-9]{43}$/);
    assert.deepEqual(Object.keys(result.json), ['id', 'key', 'prefix', 'scopes']);
    assert.equal(prefix, key.slice(0, 6));
    assert.deepEqual(scopes, ['read_devices', 'read_events']);
    const row = await keyRow(id);
    assert.deepEqual(row['fingerprint'], createHash('sha256').update(key).digest());
    const { name, allowlist, revoked_at, last_used_at } = row;
    assert.deepEqual([name, row['prefix'], row['scopes']], ['Shop', prefix, scopes]);
    assert.deepEqual([allowlist, revoked_at, last_used_at], [[], null, null]);
    assert.deepEqual(rows, [{ kind: 'key', worldId, entityId: id }]);
    assert.deepEqual(raised, [worldId]);
  });

  test('grants every scope with "all", and keeps the allowed addresses', async () => {
    const { json } = await database.fleet(
      "key:create --email a@x --scopes all --allow '10.0.0.0/8, 2001:db8::1'",
    );
    assert.deepEqual(json.scopes, [...SCOPES]);
    assert.deepEqual((await keyRow(json.id))['allowlist'], ['10.0.0.0/8', '2001:db8::1']);
  });

  test('makes a key that ends by itself', async () => {
    const { json } = await database.fleet(
      'key:create --email a@x --scopes read_areas --expires 2099-06-01T00:00:00+02:00',
    );
    assert.deepEqual(Object.keys(json), ['id', 'key', 'prefix', 'scopes', 'expires_at']);
    assert.equal(json.expires_at, '2099-05-31T22:00:00.000Z');
    assert.deepEqual((await keyRow(json.id))['expires_at'], new Date(json.expires_at));
  });

  test('makes a key that sees some groups', async () => {
    const command = 'key:create --email a@x --scopes read_devices --groups north,cold';
    const { json } = await database.fleet(command);
    assert.deepEqual(json.groups, ['north', 'cold']);
    assert.deepEqual((await keyRow(json.id))['groups'], json.groups);
  });

  test('refuses an unknown account', async () => {
    const unknown = /there is no account nobody@x; add it with account:create/;
    await database.refuses('key:create --email nobody@x --scopes all', 1, unknown);
  });

  test('is not understood without scopes, or with scopes or addresses that there are not', async () => {
    const addresses = Array.from({ length: 51 }, (_, index) => `10.0.0.${index}`).join(',');
    for (const [options, message] of [
      ['', /--scopes is missing/],
      [
        '--scopes read_devices,fly',
        /--scopes has unknown scopes: fly; it may be all, or some of read_devices,/,
      ],
      ['--scopes all,read_devices', /--scopes has unknown scopes: all;/],
      ['--scopes ,', /--scopes is empty/],
      ['--scopes all --allow 10.0.0.1,intranet', /--allow has "intranet", which is no IPv4 address/],
      ['--scopes all --allow 2001:db8::/32', /--allow has "2001:db8::\/32"/],
      ["--scopes all --allow ''", /--allow is empty; leave it out/],
      [`--scopes all --allow ${addresses}`, /--allow has 51 entries, 50 at most/],
      ['--scopes all --expires 2020-01-01', /--expires is not an ISO 8601 time in the future/],
      ['--scopes all --groups ,', /--groups is empty; leave it out to let the key see every device/],
      ['--scopes all --expires soon', /--expires is not an ISO 8601 time/],
    ] as const)
      await database.refuses(`key:create --email a@x ${options}`, 2, message);
  });
});

describe('key:revoke', () => {
  test('ends a key and notifies the pods; doing it again keeps the time', async () => {
    const { json } = await database.fleet('key:create --email a@x --scopes all');
    const first = await database.watch(`key:revoke --id ${json.id}`);
    const revokedAt = (await keyRow(json.id))['revoked_at'] as Date;
    assert.deepEqual(first.result.json, { id: json.id, revoked_at: revokedAt.toISOString() });
    assert.deepEqual(first.rows, [{ kind: 'key', worldId, entityId: json.id }]);
    assert.deepEqual(first.raised, [worldId]);
    const again = await database.watch(`key:revoke --id ${json.id}`);
    assert.deepEqual(again.result.json, first.result.json);
    assert.deepEqual(again.raised, [worldId]);
  });

  test('refuses an unknown key, and what is no id', async () => {
    await database.refuses('key:revoke --id 9007199254740991', 1, /there is no key 9007199254740991/);
    for (const id of ['0', '-1', '1.5', 'x', '9007199254740992', ''])
      await database.refuses(
        `key:revoke --id=${id}`,
        2,
        /--id must be a whole number from 1 to 9007199254740991/,
      );
  });
});
