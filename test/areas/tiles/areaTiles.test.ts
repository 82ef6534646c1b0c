import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { logIn, setPassword } from '../../support/http/application.ts';
import { type AreaApi, areaPod, gist } from '../../support/http/areas.ts';
import { rawRequest } from '../../support/http/http.ts';
import { OWNER } from '../../support/ownerPod.ts';
import { decodedTile } from './decodedTile.ts';

const service = areaPod();
const { api } = service;

interface TileReply {
  readonly status: number;
  readonly headers: Headers;
  readonly areas: readonly number[];
  readonly bytes: Uint8Array;
}

async function tileOf(
  { pod, key }: Pick<AreaApi, 'pod' | 'key'>,
  name: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<TileReply> {
  const reply = await fetch(`${pod.api}/api/v3/tiles/areas/${name}.mvt`, {
    headers: { 'X-API-Key': key, ...headers },
  });
  const bytes = new Uint8Array(await reply.arrayBuffer());
  const areas = reply.status === 200 ? decodedTile(bytes).map(({ id }) => id) : [];
  return { status: reply.status, headers: reply.headers, areas, bytes };
}

const circle = (lat: number, lng: number, more: object = {}) => ({
  name: 'Depot',
  type: 'circle',
  center: { lat, lng },
  radius_m: 500,
  ...more,
});

/** Of zoom 8 around these places, written down by hand. */
const ROME = '8/136/95';
const PARIS = '8/129/88';

describe('the tile of areas', () => {
  test('has the areas of the key in it, and tells by its headers what it is and how it may be kept', async () => {
    const rome = await api.make(circle(41.9, 12.5, { external_id: 'x' }));
    const reply = await tileOf(api, ROME);
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.areas, [rome]);
    assert.equal(reply.headers.get('content-type'), 'application/vnd.mapbox-vector-tile');
    assert.equal(reply.headers.get('cache-control'), 'private, no-cache');
    assert.equal(reply.headers.get('x-api-status'), 'beta');
    assert.match(reply.headers.get('etag') ?? '', /^W\/"[^"]+"$/);
    assert.deepEqual((await tileOf(api, '0/0/0')).areas, [rome]);
    await api.remove(rome);
  });

  test('has a length for GET, and for HEAD, which makes no tile, none that is wrong', async () => {
    const rome = await api.make(circle(41.9, 12.5));
    const { headers, bytes } = await tileOf(api, ROME);
    assert.equal(headers.get('content-length'), String(bytes.length));
    const head = await rawRequest(api.pod.api, `/api/v3/tiles/areas/${ROME}.mvt`, {
      method: 'HEAD',
      headers: { 'X-API-Key': api.key },
    });
    assert.deepEqual(
      [head.status, head.headers['etag'], head.headers['content-length']],
      [200, headers.get('etag'), undefined],
    );
    await api.remove(rome);
  });

  test('is 204 where no area has a point in it, also where the bounds of one do', async () => {
    const empty = await tileOf(api, '3/0/0');
    assert.deepEqual([empty.status, empty.bytes.length], [204, 0]);
    assert.match(empty.headers.get('etag') ?? '', /^W\//);
    // A triangle whose bounds hold this tile, but which has no point in it.
    const points = [
      { lat: 35, lng: 5 },
      { lat: 35, lng: 25 },
      { lat: 55, lng: 25 },
    ];
    const wide = await api.make({ name: 'Triangle', type: 'polygon', points });
    const beside = await tileOf(api, '8/133/86');
    assert.equal(beside.status, 204);
    assert.equal(
      (await tileOf(api, '8/133/86', { 'If-None-Match': beside.headers.get('etag')! })).status,
      304,
    );
    assert.deepEqual((await tileOf(api, ROME)).areas, [wide]);
    await api.remove(wide);
  });

  test('keeps its ETag until an area in it changes, and is a 304 to who names that', async () => {
    const rome = await api.make(circle(41.9, 12.5));
    const paris = await api.make(circle(48.85, 2.35));
    const first = await tileOf(api, ROME);
    const etag = first.headers.get('etag') as string;
    for (const sent of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
      const kept = await tileOf(api, ROME, { 'If-None-Match': sent });
      assert.deepEqual([kept.status, kept.bytes.length, kept.headers.get('etag')], [304, 0, etag], sent);
      assert.equal(kept.headers.get('cache-control'), 'private, no-cache');
    }
    assert.equal((await tileOf(api, ROME, { 'If-None-Match': '"other"' })).status, 200);
    await api.patch(paris, { name: 'Elsewhere' });
    const elsewhere = await tileOf(api, ROME, { 'If-None-Match': etag });
    assert.equal(elsewhere.status, 304, 'a change elsewhere keeps the tile');
    await api.patch(rome, { color: '#112233' });
    const changed = await tileOf(api, ROME, { 'If-None-Match': etag });
    assert.equal(changed.status, 200);
    assert.equal(decodedTile(changed.bytes)[0]?.properties['color'], '#112233');
    const next = changed.headers.get('etag') as string;
    await api.patch(paris, { center: { lat: 41.9, lng: 12.6 } });
    const moved = await tileOf(api, ROME, { 'If-None-Match': next });
    assert.deepEqual(
      [...moved.areas].sort((a, b) => a - b),
      [rome, paris],
    );
    await api.remove(rome);
    const removed = await tileOf(api, ROME, { 'If-None-Match': moved.headers.get('etag') as string });
    assert.deepEqual(removed.areas, [paris]);
    assert.equal((await tileOf(api, PARIS)).status, 204);
    await api.remove(paris);
  });

  test('shows the areas that the organization shares beside the own ones, and none of a stranger', async () => {
    const { admin, pod } = service;
    const members: AreaApi[] = [];
    for (const email of ['one@tiles.example', 'other@tiles.example']) {
      await admin.run('account:create', '--email', email, '--name', 'M', '--organization', 'Tiles');
      const { key } = await admin.key(email);
      members.push({ ...api, pod, key, post: api.post });
    }
    const [one, other] = members as [AreaApi, AreaApi];
    const make = async ({ key }: AreaApi, body: object) => {
      const reply = await fetch(`${pod.api}/api/v3/areas`, {
        method: 'POST',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      });
      return ((await reply.json()) as { data: { id: number } }).data.id;
    };
    const own = await make(one, circle(41.9, 12.5));
    const shared = await make(other, circle(41.8, 12.5));
    await make(other, circle(41.7, 12.5));
    await admin.run('area:share', '--id', String(shared));
    const stranger = await service.newAccount();
    const theirs = await stranger.make(circle(41.9, 12.5));
    const byId = (areas: readonly number[]) => [...areas].sort((a, b) => a - b);
    assert.deepEqual(byId((await tileOf(one, ROME)).areas), byId([own, shared]));
    assert.deepEqual((await tileOf(stranger, ROME)).areas, [theirs]);
    const nothing = await service.newAccount();
    assert.equal((await tileOf(nothing, ROME)).status, 204);
  });

  test('that is none is a 400, and a path of another form a 404', async () => {
    for (const name of [
      '23/0/0',
      '1/2/0',
      '1/0/2',
      '0/0/1',
      '-1/0/0',
      '1/0/-1',
      '1.0/0/0',
      '01/0/0',
      '+1/0/0',
      'a/b/c',
      '1/%31/x',
      '1//0',
      '22/4194304/0',
      '9007199254740993/0/0',
    ]) {
      assert.equal(gist(await api.send('GET', `/../tiles/areas/${name}.mvt`)), '400 BAD_REQUEST', name);
    }
    for (const name of ['0/0/0', '0/0/0.png', '0/0.mvt', '0/0/0/0.mvt']) {
      assert.equal(gist(await api.send('GET', `/../tiles/areas/${name}`)), '404 NOT_FOUND', name);
    }
    assert.equal((await tileOf(api, '22/4194303/4194303')).status, 204);
    assert.equal(gist(await api.send('POST', '/../tiles/areas/0/0/0.mvt')), '405 METHOD_NOT_ALLOWED');
  });

  test('is there for sessions under /api/v1 too', async () => {
    const rome = await api.make(circle(41.9, 12.5));
    const { pod, admin } = service;
    await setPassword(admin, OWNER);
    const token = await logIn(pod, OWNER);
    const reply = await fetch(`${pod.api}/api/v1/tiles/areas/${ROME}.mvt`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    assert.equal(reply.status, 200);
    const areas = decodedTile(new Uint8Array(await reply.arrayBuffer()));
    assert.deepEqual(
      areas.map(({ id }) => id),
      [rome],
    );
    await api.remove(rome);
  });

  test('needs read_areas', async () => {
    const { key } = await service.admin.key('owner@example.com', { scopes: 'read_devices' });
    const reply = await rawRequest(service.pod.api, '/api/v3/tiles/areas/0/0/0.mvt', {
      headers: { 'X-API-Key': key },
    });
    assert.equal(reply.status, 403);
  });

  test('of an account with endless tracks holds up nobody else', async () => {
    const attacker = await service.newAccount();
    const features = Array.from({ length: 4 }, (_, area) => ({
      type: 'Feature',
      properties: { name: `Zigzag ${area}`, bufferDistance: 400 },
      geometry: {
        type: 'LineString',
        coordinates: Array.from({ length: 200 }, (_, n) => [
          12 + n / 200 + area / 1e5,
          n % 2 === 0 ? 41 : 42,
        ]),
      },
    }));
    assert.equal((await attacker.import({ type: 'FeatureCollection', features })).status, 201);
    const victim = await service.newAccount();
    const own = await victim.make(circle(41.9, 12.5));
    const order: string[] = [];
    const attack = Promise.all(
      Array.from({ length: 3 }, async () => {
        const { status } = await tileOf(attacker, ROME);
        order.push('attacker');
        return status;
      }),
    );
    for (let n = 0; n < 3; n++) {
      assert.equal((await victim.contains(own, 41.9, 12.5)).body.data.inside, true);
      assert.deepEqual((await tileOf(victim, ROME)).areas, [own]);
      order.push('victim');
    }
    assert.deepEqual(new Set(await attack), new Set([200]));
    assert.equal(order.at(-1), 'attacker');
  });
});
