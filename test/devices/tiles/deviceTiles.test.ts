import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Device } from '../../../src/devices/device.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { readFilter } from '../../../src/devices/living/deviceFilter.ts';
import { deviceTile } from '../../../src/devices/tiles/deviceTile.ts';
import { deviceTilesRoute } from '../../../src/devices/tiles/deviceTiles.routes.ts';
import { KeptTiles } from '../../../src/devices/tiles/keptTiles.memory.ts';
import type { Answer } from '../../../src/http/answer.ts';
import { BulkCalls } from '../../../src/http/bulkCalls.ts';
import { AtOnce, inOneGo, type Steps, WorkTurns } from '../../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, positionAt } from '../../support/devices.ts';
import { decodedPoints, onMap, tileOfPlace } from '../../support/deviceTile.ts';
import { stepTurns } from '../../support/feeds/stepTurns.ts';
import {
  type Asked,
  anyFilter,
  anyPlace,
  changeDevice,
  filledFleet,
  NOW_MS,
  oneOf,
  passes,
  queryOf,
} from '../../support/filteredFleet.ts';
import { RouteCalls } from '../../support/http/routeCalls.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';

const WORLDS = [1, 2, 3];
const VIEWS = [[1], [1, 2], [3, 2], [9], [9, 1]];
const DEVICES = 5_000;
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

interface Tile {
  readonly z: number;
  readonly x: number;
  readonly y: number;
}

/** The tiles of a fleet, as a pod serves them. */
function serve(fleet: Fleet, turns = new WorkTurns<string | number>(3)) {
  const ports = { fleet, bulkCalls: new BulkCalls(turns), atOnce: new AtOnce(turns) };
  const route = deviceTilesRoute(ports);
  return (view: readonly number[], { z, x, y }: Tile, asked: Asked = {}, nowMs = NOW_MS, etag?: string) => {
    const caller = { worldIds: [...view], accountId: view[0] ?? 1, nowMs };
    const query = Object.keys(asked).length === 0 ? '' : queryOf(asked);
    const params = { z: `${z}`, x: `${x}`, y: `${y}` };
    const headers: Record<string, string> = etag === undefined ? {} : { 'if-none-match': etag };
    return new RouteCalls([route], caller).get(route.path, query, params, headers);
  };
}

const bytesOf = ({ body }: Answer): Buffer | null => body as Buffer | null;
const etagOf = ({ headers }: Answer): string => headers?.['ETag'] as string;

function isIn({ z, x, y }: Tile, { position }: Device): boolean {
  if (position === null) return false;
  const at = tileOfPlace(z, position.lat, position.lng);
  return at.x === x && at.y === y;
}

function statusOf({ position }: Device, nowMs: number): string {
  const ageMs = nowMs - (position?.recordedAtMs ?? 0);
  const stands = (position?.speedKmh ?? 0) < 5;
  return ageMs > (stands ? 1_440 : 10) * MINUTE_MS ? 'offline' : stands ? 'parked' : 'moving';
}

/** What a tile has to show, worked out from the list of all devices. */
function expected(fleet: Fleet, view: readonly number[], tile: Tile, asked: Asked, nowMs: number) {
  return fleet
    .page(view, 0, Number.MAX_SAFE_INTEGER)
    .filter((device) => isIn(tile, device) && passes(device, asked, nowMs))
    .map((device) => ({ device: device.taken(), status: statusOf(device, nowMs) }));
}

type Shown = ReturnType<typeof expected>;

const unitsOf = (share: number, z: number) => (share * 2 ** z * 4_096) % 4_096;

function assertShows(bytes: Buffer | null, shown: Shown, { z }: Tile, label: string): void {
  const { layer, points } = decodedPoints(bytes);
  if (shown.length <= 2_000) {
    assert.equal(layer, shown.length === 0 ? null : 'devices', label);
    const properties = shown.map(({ device, status }) => {
      const { imei, name, plate } = device.fields;
      const { speedKmh, recordedAtMs } = device.position!;
      const names = { imei, ...(name === null ? {} : { name }), ...(plate === null ? {} : { plate }) };
      const recorded_at = Math.floor(recordedAtMs / 1_000);
      return { ...names, status, heading: 0, speed_kmh: speedKmh, recorded_at };
    });
    assert.deepEqual(
      points.map((point) => point.properties),
      properties,
      label,
    );
    for (const [n, { device }] of shown.entries()) {
      const at = onMap(device.position!.lat, device.position!.lng);
      const point = points[n]!;
      // A step of the map has 16 units at zoom 22.
      const off = 1 + 2 ** Math.max(0, z - 18);
      assert.ok(Math.abs(point.x - unitsOf(at.x, z)) <= off, `${label}: x of ${n}`);
      assert.ok(Math.abs(point.y - unitsOf(at.y, z)) <= off, `${label}: y of ${n}`);
      assert.ok(point.x >= 0 && point.x < 4_096 && point.y >= 0 && point.y < 4_096, label);
    }
    return;
  }
  assert.equal(layer, 'clusters', label);
  const cells = new Map<string, { moving: number; parked: number; offline: number; x: number; y: number }>();
  for (const { device, status } of shown) {
    const at = onMap(device.position!.lat, device.position!.lng);
    const name = `${Math.floor(at.y * 2 ** (z + 4))} ${Math.floor(at.x * 2 ** (z + 4))}`;
    const cell = cells.get(name) ?? { moving: 0, parked: 0, offline: 0, x: 0, y: 0 };
    cells.set(name, { ...cell, x: cell.x + at.x, y: cell.y + at.y });
    cells.get(name)![status as 'moving']++;
  }
  assert.equal(points.length, cells.size, label);
  const left = new Map(cells);
  for (const { x, y, properties } of points) {
    const [name, cell] = [...left].find(([, { moving, parked, offline, ...sum }]) => {
      const count = moving + parked + offline;
      const isNear =
        Math.abs(unitsOf(sum.x / count, z) - x) <= 1 + 2 ** Math.max(0, z - 18) &&
        Math.abs(unitsOf(sum.y / count, z) - y) <= 1 + 2 ** Math.max(0, z - 18);
      return isNear && properties['count'] === count;
    }) ?? [undefined, undefined];
    assert.ok(cell !== undefined, `${label}: a cluster at ${x} ${y}`);
    left.delete(name!);
    const { moving, parked, offline } = cell;
    assert.deepEqual(
      properties,
      { count: moving + parked + offline, moving, parked, offline, unknown: 0 },
      label,
    );
  }
}

describe('a tile of devices', () => {
  test('agrees with a loop over all devices while they change and time passes, also when it is a 304', async () => {
    let kept = 0;
    let clusters = 0;
    for (let seed = 1; seed <= runs(1); seed++) {
      const random = seededRandom(seed);
      const fleet = filledFleet(random, DEVICES, WORLDS);
      const tileAt = serve(fleet);
      const filters: Asked[] = [{}, {}, {}, anyFilter(random), anyFilter(random)];
      const seen = new Map<string, { etag: string; shown: Shown }>();
      let nowMs = NOW_MS;
      for (let n = 0; n < 120; n++) {
        const changes = oneOf(random, [0, 0, 1, 30]);
        for (let change = 0; change < changes; change++)
          changeDevice(fleet, random, 1 + Math.floor(random() * (DEVICES + 20)), WORLDS);
        if (random() < 0.2) nowMs += oneOf(random, [1, 5, 60, 599, 700, 90_000]) * SECOND_MS;
        const view = oneOf(random, VIEWS);
        const asked = oneOf(random, filters);
        const place = random() < 0.3 ? anyPlace(random) : { lat: 41.9, lng: 12.5 };
        const tile = tileOfPlace(oneOf(random, [0, 0, 1, 8, 11, 16, 22]), place.lat, place.lng);
        const name = JSON.stringify([view, asked, tile]);
        const label = `seed ${seed}, question ${n}, ${name}`;
        const before = seen.get(name);
        const answer = await tileAt(view, tile, asked, nowMs, before?.etag);
        const shown = expected(fleet, view, tile, asked, nowMs);
        if (answer.status === 304) {
          kept++;
          assert.deepEqual(textOf(before!.shown), textOf(shown), label);
          continue;
        }
        const bytes = bytesOf(answer);
        assert.equal(answer.status, shown.length === 0 ? 204 : 200, label);
        if (shown.length > 2_000) clusters++;
        assertShows(bytes, shown, tile, label);
        seen.set(name, { etag: etagOf(answer), shown });
      }
    }
    assert.ok(kept > 5 && clusters > 5, `${kept} were kept, ${clusters} had clusters`);
  });

  test('agrees in steps too, as of one moment, even if devices change between them', () => {
    let changes = 0;
    for (let seed = 1; seed <= runs(1); seed++) {
      const random = seededRandom(200 + seed);
      for (const asked of [{}, { status: 'moving,parked' }, anyFilter(random)] as Asked[]) {
        const fleet = filledFleet(random, DEVICES, WORLDS);
        const change = () => {
          changes++;
          changeDevice(fleet, random, 1 + Math.floor(random() * DEVICES), WORLDS);
        };
        const filter = readFilter(asked as Record<string, string>, []);
        assert.ok(filter.ok);
        let nowMs = NOW_MS;
        for (const z of [0, 0, 3, 10]) {
          nowMs += 11 * MINUTE_MS;
          const tile = tileOfPlace(z, 41.9, 12.5);
          const mark = eachStep(fleet.living.tileMark([1, 2], tile, nowMs), change);
          const shown = expected(fleet, [1, 2], tile, asked, mark.nowMs);
          const { content } = eachStep(fleet.living.tile([1, 2], tile, filter.value, mark), change);
          const label = `seed ${seed}, ${queryOf(asked)}, zoom ${z}`;
          assertShows(inOneGo(deviceTile(content, tile)), shown, tile, label);
        }
      }
    }
    assert.ok(changes > 0, 'there were steps');
  });

  test('has each located device once at every zoom, so that the devices of four tiles are those above them', async () => {
    const random = seededRandom(31);
    const fleet = filledFleet(random, 3_000, [1]);
    const end = (Math.atan(Math.sinh(Math.PI)) * 180) / Math.PI;
    const sides = [0, 90, -180, 180, 45].flatMap((lng) =>
      [90, -90, end, -end, 0, (Math.atan(Math.sinh(Math.PI / 2)) * 180) / Math.PI].map((lat) => ({
        lat,
        lng,
      })),
    );
    for (const [n, { lat, lng }] of sides.entries()) {
      fleet.putDevice(fieldsOf({ id: 5_000 + n, imei: imeiOf(200_000 + n), worldId: 1 }));
      fleet.move(5_000 + n, positionAt(lat, lng, NOW_MS));
    }
    const tileAt = serve(fleet);
    const count = async (tile: Tile) => {
      const { points } = decodedPoints(bytesOf(await tileAt([1], tile)));
      return points.reduce((sum, { properties }) => sum + Number(properties['count'] ?? 1), 0);
    };
    const all = fleet.page([1], 0, DEVICES).filter(({ position }) => position !== null);
    const children = ({ z, x, y }: Tile): Tile[] =>
      [0, 1, 2, 3].map((n) => ({ z: z + 1, x: 2 * x + (n & 1), y: 2 * y + (n >> 1) }));
    let open: Tile[] = [{ z: 0, x: 0, y: 0 }];
    assert.equal(await count(open[0]!), all.length);
    for (let z = 0; z < 22; z++) {
      const next: Tile[] = [];
      for (const tile of open) {
        const parts = await Promise.all(children(tile).map(count));
        assert.equal(
          parts.reduce((a, b) => a + b),
          await count(tile),
          JSON.stringify(tile),
        );
        next.push(...children(tile).filter((_, n) => parts[n]! > 0));
      }
      // Those with many devices, and a few more.
      open = next.length <= 12 ? next : [...next.slice(0, 6), ...next.slice(-6)];
    }
  });

  test('shows thousands on one spot as one cluster at every zoom, and a few that stay when they leave', async () => {
    const fleet = new Fleet();
    const spot = (id: number) => positionAt(41.9, 12.5, NOW_MS, { speedKmh: id % 3 === 0 ? 30 : 0 });
    for (let id = 1; id <= 3_000; id++) {
      fleet.putDevice(fieldsOf({ id, imei: imeiOf(id), worldId: 1 }));
      fleet.move(id, spot(id));
    }
    const tileAt = serve(fleet);
    for (const z of [0, 5, 18, 22]) {
      const { layer, points } = decodedPoints(bytesOf(await tileAt([1], tileOfPlace(z, 41.9, 12.5))));
      assert.equal(layer, 'clusters');
      assert.deepEqual(
        points.map(({ properties }) => properties),
        [{ count: 3_000, moving: 1_000, parked: 2_000, offline: 0, unknown: 0 }],
      );
    }
    for (let id = 1; id <= 3_000; id++) if (id > 5) fleet.move(id, positionAt(-33, 151, NOW_MS + SECOND_MS));
    for (const z of [0, 22]) {
      const tile = tileOfPlace(z, 41.9, 12.5);
      assertShows(
        bytesOf(await tileAt([1], tile)),
        expected(fleet, [1], tile, {}, NOW_MS),
        tile,
        `zoom ${z}`,
      );
    }
  });

  test('keeps its ETag while nothing in it changes, and tells nothing of others by it', async () => {
    const fleet = new Fleet();
    const put = (id: number, worldId: number, lat: number) => {
      fleet.putDevice(fieldsOf({ id, imei: imeiOf(id), worldId }));
      fleet.move(id, positionAt(lat, 12.5, NOW_MS));
    };
    put(1, 1, 41.9);
    put(2, 2, 41.9);
    put(3, 1, 10);
    const tile = tileOfPlace(8, 41.9, 12.5);
    const tileAt = serve(fleet);
    const first = etagOf(await tileAt([1], tile));
    const alone = new Fleet();
    alone.putDevice(fieldsOf({ id: 7, imei: imeiOf(1), worldId: 5 }));
    alone.move(7, positionAt(41.9, 12.5, NOW_MS));
    assert.equal(
      etagOf(await serve(alone)([5], tile)),
      first,
      'it is made of what the tile shows, on every pod',
    );
    const again = async (nowMs = NOW_MS) => (await tileAt([1], tile, {}, nowMs, first)).status;
    assert.equal(await again(), 304);
    fleet.move(2, positionAt(41.9001, 12.5, NOW_MS + 1));
    fleet.move(3, positionAt(10.5, 12.5, NOW_MS + 1));
    assert.equal(await again(), 304, 'a foreign device, and one elsewhere, have moved');
    // When it was looked at after ten minutes, it was not offline.
    assert.equal(await again(NOW_MS + 11 * MINUTE_MS), 304);
    // Its newest point is a day old, and no other has come.
    assert.equal(await again(NOW_MS + 1_440 * MINUTE_MS + SECOND_MS), 200, 'it is offline');
    const offline = etagOf(await tileAt([1], tile));
    fleet.putDevice(fieldsOf({ id: 1, imei: imeiOf(1), worldId: 1, name: 'Renamed' }));
    assert.equal((await tileAt([1], tile, {}, NOW_MS, offline)).status, 200, 'it has another name');
    put(4, 1, 41.95);
    const both = etagOf(await tileAt([1], tile));
    fleet.putRemoval(1, { deviceId: 4, imei: imeiOf(4), xid: 0, atMs: NOW_MS }, true);
    assert.equal((await tileAt([1], tile, {}, NOW_MS, both)).status, 200, 'one of two was removed');
    const aged = await tileAt([1], tile, { max_age_seconds: '60' }, NOW_MS + 60 * SECOND_MS);
    assert.equal(aged.status, 204, 'a later second was asked for before');
  });

  test('is empty where there is nobody, and an error where it is no tile or the filter is none', async () => {
    const tileAt = serve(new Fleet());
    const nobody = await tileAt([1], { z: 0, x: 0, y: 0 });
    assert.deepEqual([nobody.status, nobody.body], [204, null]);
    const kept = await tileAt([1, 2], { z: 3, x: 1, y: 1 }, {}, NOW_MS, etagOf(nobody));
    assert.equal(kept.status, 304);
    for (const tile of [
      { z: 23, x: 0, y: 0 },
      { z: 1, x: 2, y: 0 },
      { z: 1, x: 0, y: -1 },
      { z: 1.5, x: 0, y: 0 },
    ])
      assert.equal((await tileAt([1], tile)).status, 400, JSON.stringify(tile));
    for (const asked of [{ status: 'driving' }, { group: ',' }, { max_age_seconds: '0' }])
      assert.equal((await tileAt([1], { z: 0, x: 0, y: 0 }, asked)).status, 400, JSON.stringify(asked));
  });
});

/** Runs steps with something else between them, and returns the result. */
function eachStep<T>(steps: Steps<T>, between: () => void): T {
  for (let n = 0; ; n++) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (n < 40) for (let k = 0; k < 5; k++) between();
  }
}

/** Everything that a tile may show of its devices. */
function textOf(shown: Shown): string {
  return shown
    .map(({ device, status }) => `${device.names} ${status} ${JSON.stringify(device.position)}`)
    .join();
}

test('another account is answered while one asks for the tiles of a large fleet', async () => {
  const fleet = new Fleet();
  for (let id = 1; id <= 15_000; id++) {
    fleet.putDevice(fieldsOf({ id, imei: imeiOf(id), worldId: id === 1 ? 2 : 1 }));
    // Half of them on one spot.
    fleet.move(id, id % 2 === 0 ? positionAt(1, 1) : positionAt((id % 120) - 60, (id % 359) - 179));
  }
  const tileAt = serve(fleet);
  let answered = 0;
  const attack = Array.from({ length: 10 }, async (_, n) => {
    const asked = n % 2 === 0 ? {} : { status: 'moving,parked,offline' };
    assert.equal((await tileAt([1], { z: 0, x: 0, y: 0 }, asked)).status, 200);
    answered++;
  });
  const { points } = decodedPoints(bytesOf(await tileAt([2], { z: 0, x: 0, y: 0 })));
  assert.equal(points.length, 1);
  assert.ok(answered < 10, 'it does not wait for the large fleet');
  await Promise.all(attack);
});

test('filtered clusters of a large fleet are made in many turns, of which another account has every second one', async () => {
  const fleet = new Fleet();
  for (let id = 1; id <= 36_000; id++) {
    fleet.putDevice(fieldsOf({ id, imei: imeiOf(id), worldId: id % 6 === 0 ? 2 : 1 }));
    fleet.move(id, positionAt((id % 120) - 60, (id % 359) - 179));
  }
  const turns = stepTurns();
  const tileAt = serve(fleet, turns);
  const whole = { z: 0, x: 0, y: 0 };
  const answered = { 1: 0, 2: 0 };
  const ask = async (worldId: 1 | 2) => {
    const answer = await tileAt([worldId], whole, { status: 'moving,parked,offline' });
    assert.equal(decodedPoints(bytesOf(answer)).layer, 'clusters');
    answered[worldId]++;
  };
  const turnsUntil = async (isDone: () => boolean) => {
    let count = 0;
    for (; !isDone(); count++) await new Promise((resolve) => setImmediate(resolve));
    return count;
  };
  // What is made once for a world is there.
  await Promise.all([ask(1), ask(2)]);
  void ask(2);
  const alone = await turnsUntil(() => answered[2] === 2);
  const attack = Array.from({ length: 10 }, () => ask(1));
  void ask(2);
  const beside = await turnsUntil(() => answered[2] === 3);
  assert.ok(answered[1] <= 3, `${answered[1] - 1} tiles of the large fleet came before`);
  const more = await turnsUntil(() => answered[1] === 11);
  assert.ok(more > 20, `${alone} turns alone, ${beside} beside it, ${more} more for the large fleet`);
  await Promise.all(attack);
});

describe('the ETags that are kept', () => {
  const mark = { stamps: [1, 2], nowMs: 1_000 };
  const kept = { stamps: [1, 2], untilMs: 2_000, etag: 'x' };

  test('are good as long as no stamp is another and their time has not come', () => {
    const tiles = new KeptTiles();
    tiles.put(1, 'name', kept);
    assert.equal(tiles.etag(1, 'name', mark), 'x');
    assert.equal(tiles.etag(1, 'name', { ...mark, nowMs: 2_000 }), 'x');
    assert.equal(tiles.etag(1, 'name', { ...mark, nowMs: 2_001 }), null);
    assert.equal(tiles.etag(1, 'name', { ...mark, stamps: [1, 3] }), null);
    assert.equal(tiles.etag(2, 'name', mark), null);
    assert.equal(tiles.etag(1, 'name'.repeat(99), mark), null);
  });

  test('are bounded for each account and for all, and those that were used long ago go first', () => {
    const tiles = new KeptTiles(3, 7);
    for (let n = 0; n < 5; n++) tiles.put(1, `${n}`, kept);
    assert.equal(tiles.size, 3);
    assert.deepEqual([tiles.etag(1, '1', mark), tiles.etag(1, '2', mark)], [null, 'x']);
    for (let n = 0; n < 3; n++) tiles.put(2, `${n}`, kept);
    tiles.put(1, '4', kept);
    tiles.put(3, '0', kept);
    assert.equal(tiles.size, 7);
    tiles.put(3, '1', kept);
    assert.deepEqual([tiles.size, tiles.etag(2, '0', mark), tiles.etag(1, '4', mark)], [5, null, 'x']);
  });
});
