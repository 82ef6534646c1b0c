import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TrackPoint } from '../../../src/history/summary/motionWalk.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, WEEK_MS, weekStartMs } from '../../../src/lib/time.ts';
import { packPoints } from '../../support/history/packPoints.ts';
import { manualClock } from '../../support/manualClock.ts';
import { OWNER, ownerPod } from '../../support/ownerPod.ts';
import { naiveCounts, placeOnGrid } from './naiveCells.ts';
import { alphasOfPicture, cellsOfVectors } from './readTile.ts';

const START_MS = Date.now();
const clock = manualClock(START_MS);
const IMEIS = ['350000000000001', '350000000000002', '350000000000003'] as const;
const owner = ownerPod({ clock }, async ({ admin }) => {
  await admin.account('member@example.com', { organization: 'Fleet' });
  await admin.account('other@example.com', { organization: 'Fleet' });
  await admin.account('stranger@example.com', { plan: 'basic' });
  await admin.device(OWNER, IMEIS[0]);
  await admin.device('member@example.com', IMEIS[1]);
  await admin.device('other@example.com', IMEIS[2], '--organization');
});

/** A point every 10 s, a hundred metres to the east each, from a latitude in Rome on. */
const drive = (endMs: number, { count = 40, lat = 41.9 } = {}): TrackPoint[] =>
  Array.from({ length: count }, (_, n) => ({
    recordedAtMs: endMs - (count - 1 - n) * 10_000,
    ...{ lat, lng: 12.5 + n * 0.0012, speedKmh: 36 },
  }));

async function send(imei: string, track: readonly TrackPoint[]): Promise<void> {
  const { accepted } = await owner.pod.points(
    track.map(({ recordedAtMs, lat, lng, speedKmh }) => ({
      ...{ imei, recorded_at: new Date(recordedAtMs).toISOString() },
      ...{ latitude: lat, longitude: lng, speed_kmh: speedKmh },
    })),
  );
  assert.equal(accepted, track.length);
}

async function tile(name: string, key: string, headers: Readonly<Record<string, string>> = {}) {
  const reply = await fetch(`${owner.pod.api}/api/v3/tiles/tracks/${name}`, {
    headers: { 'X-API-Key': key, ...headers },
  });
  return {
    ...{ status: reply.status, headers: reply.headers, etag: reply.headers.get('etag') ?? '' },
    bytes: Buffer.from(await reply.arrayBuffer()),
  };
}

/** The tile of zoom 13 in which a track begins, and the cells of it that the track is drawn through. */
function tileWith(track: readonly TrackPoint[]): { name: string; cells: Map<string, number> } {
  const [x, y] = placeOnGrid(track[0]!).map((at) => Math.floor(at / 256)) as [number, number];
  const cells = new Map<string, number>();
  for (const [cell, count] of naiveCounts([track])) {
    const [column, row] = cell.split('/').map(Number) as [number, number];
    if (column >> 8 === x && row >> 8 === y) cells.set(`${column & 255}/${row & 255}`, count);
  }
  assert.ok(cells.size > 20, `${cells.size} cells`);
  return { name: `13/${x}/${y}`, cells };
}

const inTile = (cells: ReadonlyMap<string, number>) =>
  [...cells.keys()]
    .filter((cell) => cell.split('/').every((at) => Number(at) >= 0 && Number(at) < 256))
    .sort();

/** Later than any tile may be of before. */
function wait(): void {
  clock.set(clock() + 6 * MINUTE_MS);
}

const keyOf = async (email: string): Promise<string> => (await owner.admin.key(email)).key;

describe('where the fleet has driven', () => {
  test('is there from the first minute on, as vectors and as a picture, and tells by its headers how it is kept', async () => {
    const track = drive(START_MS - MINUTE_MS);
    const { name, cells } = tileWith(track);
    const before = await tile(`${name}.mvt`, owner.key);
    assert.deepEqual([before.status, before.bytes.length], [204, 0]);
    assert.equal((await tile(`${name}.mvt`, owner.key, { 'If-None-Match': before.etag })).status, 304);
    await send(IMEIS[0], track);
    wait();
    const vectors = await tile(`${name}.mvt`, owner.key, { 'If-None-Match': before.etag });
    assert.equal(vectors.status, 200);
    assert.equal(vectors.headers.get('content-type'), 'application/vnd.mapbox-vector-tile');
    assert.equal(vectors.headers.get('cache-control'), 'private, no-cache');
    assert.equal(vectors.headers.get('x-api-status'), 'beta');
    assert.deepEqual(inTile(cellsOfVectors(vectors.bytes, 16)), inTile(cells));
    const picture = await tile(`${name}.png`, owner.key);
    assert.equal(picture.headers.get('content-type'), 'image/png');
    assert.deepEqual([...alphasOfPicture(picture.bytes).keys()].sort(), inTile(cells));
    for (const format of ['mvt', 'png']) {
      const { etag } = format === 'mvt' ? vectors : picture;
      wait();
      const kept = await tile(`${name}.${format}`, owner.key, { 'If-None-Match': etag });
      assert.deepEqual([kept.status, kept.bytes.length, kept.etag], [304, 0, etag], format);
      for (const world of ['0/0/0', '7/68/47'])
        assert.equal((await tile(`${world}.${format}`, owner.key)).status, 200, world);
    }
  });

  test('is the same to the byte before and after its points are packed', async () => {
    const dayMs = weekStartMs(START_MS) - WEEK_MS + 2 * DAY_MS;
    const track = drive(dayMs + 12 * HOUR_MS, { lat: 48.8 });
    const { name, cells } = tileWith(track);
    const key = await keyOf('member@example.com');
    await send(IMEIS[1], track);
    const names = [name, '14/8760/5638', '9/273/176', '0/0/0', '22/2242588/1443540'].flatMap((each) => [
      `${each}.mvt`,
      `${each}.png`,
    ]);
    const all = async () => Promise.all(names.map(async (each) => (await tile(each, key)).bytes));
    // By the clock of the pod the day is not closed yet.
    clock.set(dayMs + DAY_MS);
    const asRows = await all();
    assert.deepEqual(inTile(cellsOfVectors(asRows[0]!, 16)), inTile(cells));
    clock.set(START_MS);
    await packPoints(owner.sql);
    const [{ rows } = { rows: 1 }] = await owner.sql<{ rows: number }[]>`
      select count(*)::int as rows from position where recorded_at < ${new Date(dayMs + DAY_MS)}`;
    assert.equal(rows, 0);
    assert.deepEqual(await all(), asRows);
  });

  test('is that of the own world and of the shared one, and of no other', async () => {
    const own = drive(START_MS - HOUR_MS, { lat: 45.1 });
    const shared = drive(START_MS - HOUR_MS, { lat: 45.1009 });
    await send(IMEIS[1], own);
    await send(IMEIS[2], shared);
    wait();
    const { name } = tileWith(own);
    const seen = async (email: string) => {
      const { status, bytes } = await tile(`${name}.mvt`, await keyOf(email));
      return status === 204 ? [] : inTile(cellsOfVectors(bytes, 16));
    };
    const [ownCells, sharedCells] = [inTile(tileWith(own).cells), inTile(tileWith(shared).cells)];
    assert.deepEqual(await seen('member@example.com'), [...ownCells, ...sharedCells].sort());
    assert.deepEqual(await seen('other@example.com'), sharedCells);
    assert.deepEqual(await seen('stranger@example.com'), []);
  });

  test('goes as far back as the plan retains whole weeks', async () => {
    const mondayMs = weekStartMs(START_MS) - 6 * WEEK_MS;
    const track = drive(mondayMs + 12 * HOUR_MS, { lat: 50.1 });
    await owner.admin.device('stranger@example.com', '350000000000009');
    await send('350000000000009', track);
    await packPoints(owner.sql);
    const { name } = tileWith(track);
    const status = async (nowMs: number) => {
      clock.set(nowMs);
      return (await tile(`${name}.mvt`, await keyOf('stranger@example.com'))).status;
    };
    assert.equal(await status(mondayMs + 30 * DAY_MS), 200);
    assert.equal(await status(mondayMs + 30 * DAY_MS + 1), 204);
    clock.set(START_MS);
  });

  test('is refused for what is no tile, to a key without read_history, and for other methods', async () => {
    for (const name of ['23/0/0', '1/2/0', '0/0/1', '01/0/0', 'a/b/c']) {
      for (const format of ['mvt', 'png']) {
        const reply = await owner.pod.get(`/api/v3/tiles/tracks/${name}.${format}`, owner.key);
        assert.deepEqual([reply.status, reply.body.error.code], [400, 'BAD_REQUEST'], name);
      }
    }
    for (const name of ['0/0/0', '0/0/0.jpg', '0/0.mvt'])
      assert.equal((await owner.pod.get(`/api/v3/tiles/tracks/${name}`, owner.key)).status, 404, name);
    const { key } = await owner.admin.key(OWNER, { scopes: 'read_devices,read_locations,read_areas' });
    const refused = await owner.pod.get('/api/v3/tiles/tracks/0/0/0.png', key);
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'INSUFFICIENT_SCOPE']);
  });
});
