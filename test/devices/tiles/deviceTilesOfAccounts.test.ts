import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { imeiOf } from '../../support/devices.ts';
import { decodedPoints } from '../../support/deviceTile.ts';
import { logIn, setPassword } from '../../support/http/application.ts';
import { OWNER, ownerPod } from '../../support/ownerPod.ts';
import { type PodAddress, startPod } from '../../support/pod.ts';
import { waitFor } from '../../support/waitFor.ts';

const NOW_MS = Date.now();
/** Of zoom 8 around Rome, written down by hand. */
const ROME = '8/136/95';
const [OWN, SHARED, COLLEAGUES, STRANGERS] = [1, 2, 3, 4].map(imeiOf) as [string, string, string, string];

const MANY = 2_100;
let memberKey: string;
let strangerKey: string;
const owner = ownerPod(
  { devices: [{ imei: OWN, name: 'Van 12', plate: 'AB 123' }] },
  async ({ admin, pod }) => {
    await admin.run('account:update', '--email', OWNER, '--organization', 'Haulage');
    await admin.account('member@example.com', { organization: 'Haulage' });
    await admin.account('stranger@example.com');
    await admin.device(OWNER, SHARED, '--organization');
    await admin.device('member@example.com', COLLEAGUES);
    const crowd = Array.from({ length: MANY }, (_, n) => ({ imei: imeiOf(1_000 + n) }));
    await admin.importDevices('stranger@example.com', [{ imei: STRANGERS }, ...crowd]);
    ({ key: memberKey } = await admin.key('member@example.com'));
    ({ key: strangerKey } = await admin.key('stranger@example.com'));
    await pod.points([
      { ...point(OWN, 41.9), heading: 214.5, speed_kmh: 42.25 },
      ...[point(SHARED, 41.8), point(COLLEAGUES, 41.9), point(STRANGERS, 41.9)],
    ]);
    for (let from = 0; from < MANY; from += 700)
      await pod.points(crowd.slice(from, from + 700).map(({ imei }, n) => point(imei, 10 + n / 100)));
  },
);

function point(imei: string, latitude: number, recorded_at = NOW_MS) {
  return { imei, recorded_at, latitude, longitude: 12.5, speed_kmh: 0 };
}

async function tileOf(
  key: string,
  name: string,
  headers: Readonly<Record<string, string>> = {},
  { api }: PodAddress = owner.pod,
) {
  const reply = await fetch(`${api}/api/v3/tiles/devices/${name}`, {
    headers: { 'X-API-Key': key, ...headers },
  });
  const bytes = new Uint8Array(await reply.arrayBuffer());
  const { layer, points } = reply.status === 200 ? decodedPoints(bytes) : decodedPoints(null);
  const imeis = points.map(({ properties }) => properties['imei']);
  return {
    status: reply.status,
    headers: reply.headers,
    etag: reply.headers.get('etag') as string,
    layer,
    points,
    imeis,
  };
}

describe('the tile of devices', () => {
  before(async () => {
    assert.equal((await tileOf(owner.key, `${ROME}.mvt`)).status, 200);
  });

  test('shows what is documented of a device, and tells by its headers what it is and how it may be kept', async () => {
    const { status, headers, layer, points } = await tileOf(owner.key, `${ROME}.mvt`);
    assert.deepEqual([status, layer], [200, 'devices']);
    const [van] = points;
    assert.deepEqual(van?.properties, {
      imei: OWN,
      name: 'Van 12',
      plate: 'AB 123',
      status: 'moving',
      heading: 214.5,
      speed_kmh: 42.25,
      recorded_at: Math.floor(NOW_MS / 1_000),
    });
    assert.equal(headers.get('content-type'), 'application/vnd.mapbox-vector-tile');
    assert.equal(headers.get('cache-control'), 'private, no-cache');
    assert.match(headers.get('etag') ?? '', /^W\/"[^"]+"$/);
  });

  test('has the devices of the account and of its organization, and none of anybody else', async () => {
    assert.deepEqual((await tileOf(owner.key, `${ROME}.mvt`)).imeis, [OWN, SHARED]);
    assert.deepEqual((await tileOf(memberKey, `${ROME}.mvt`)).imeis, [SHARED, COLLEAGUES]);
    assert.deepEqual((await tileOf(strangerKey, `${ROME}.mvt`)).imeis, [STRANGERS]);
    assert.equal((await tileOf(owner.key, '8/136/120.mvt')).status, 204);
    const { layer, points } = await tileOf(strangerKey, '0/0/0.mvt');
    assert.equal(layer, 'clusters');
    assert.equal(
      points.reduce((sum, { properties }) => sum + Number(properties['count']), 0),
      MANY + 1,
    );
  });

  test('is a 304 until a device in it changes, whoever else moves, and the same on another pod', async () => {
    const { etag } = await tileOf(owner.key, `${ROME}.mvt`);
    const again = { 'If-None-Match': etag };
    assert.equal((await tileOf(owner.key, `${ROME}.mvt`, again)).status, 304);
    await owner.pod.points([point(STRANGERS, 41.91, NOW_MS + 1), point(COLLEAGUES, 41.91, NOW_MS + 1)]);
    const kept = await tileOf(owner.key, `${ROME}.mvt`, again);
    assert.deepEqual([kept.status, kept.etag], [304, etag], 'others have moved');
    const second = await startPod(owner.url);
    try {
      assert.equal((await tileOf(owner.key, `${ROME}.mvt`, again, second)).status, 304);
      await owner.pod.points([point(SHARED, 41.81, NOW_MS + 1)]);
      const changed = await tileOf(owner.key, `${ROME}.mvt`, again);
      assert.equal(changed.status, 200);
      await waitFor(
        async () => (await tileOf(owner.key, `${ROME}.mvt`, again, second)).etag === changed.etag,
      );
      assert.equal(
        (await tileOf(owner.key, '1/1/0.mvt')).etag,
        (await tileOf(owner.key, '1/1/0.mvt', {}, second)).etag,
      );
    } finally {
      await second.stop();
    }
  });

  test('is filtered by status, group and age', async () => {
    assert.deepEqual((await tileOf(owner.key, `${ROME}.mvt?status=moving`)).imeis, [OWN]);
    assert.equal((await tileOf(owner.key, `${ROME}.mvt?group=nobody`)).status, 204);
    assert.deepEqual((await tileOf(owner.key, `${ROME}.mvt?max_age_seconds=86400`)).imeis, [OWN, SHARED]);
  });

  test('that is none, or with a filter that is none, is a 400, and a path of another form a 404', async () => {
    for (const name of ['23/0/0.mvt', '1/2/0.mvt', '0/0/1.mvt', '-1/0/0.mvt', '01/0/0.mvt', 'a/b/c.mvt'])
      assert.equal((await tileOf(owner.key, name)).status, 400, name);
    for (const query of ['status=x', 'group=,', 'max_age_seconds=0', 'status=moving&status=parked'])
      assert.equal((await tileOf(owner.key, `0/0/0.mvt?${query}`)).status, 400, query);
    for (const name of ['0/0/0', '0/0/0.png', '0/0.mvt'])
      assert.equal((await tileOf(owner.key, name)).status, 404, name);
  });

  test('needs both read_devices and read_locations', async () => {
    for (const scopes of ['read_devices', 'read_locations', 'read_areas']) {
      const { key } = await owner.admin.key(OWNER, { scopes });
      assert.equal((await tileOf(key, '0/0/0.mvt')).status, 403, scopes);
    }
    const { key } = await owner.admin.key(OWNER, { scopes: 'read_devices,read_locations' });
    assert.equal((await tileOf(key, '0/0/0.mvt')).status, 200);
  });

  test('is there for sessions under /api/v1 too', async () => {
    await setPassword(owner.admin, OWNER);
    const token = await logIn(owner.pod, OWNER);
    const reply = await fetch(`${owner.pod.api}/api/v1/tiles/devices/${ROME}.mvt`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    assert.equal(reply.status, 200);
    const { points } = decodedPoints(new Uint8Array(await reply.arrayBuffer()));
    assert.deepEqual(
      points.map(({ properties }) => properties['imei']),
      [OWN, SHARED],
    );
  });
});
