import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { insertDevices } from '../../../src/devices/devices.sql.ts';
import type { TrackPoint } from '../../../src/history/summary/motionWalk.ts';
import { decodeCounts, encodeCounts } from '../../../src/history/tracks/cellCounts.ts';
import type { CellCounts } from '../../../src/history/tracks/cells.ts';
import { countDriven } from '../../../src/history/tracks/countDriven.ts';
import { pruneTracks, weekOf } from '../../../src/history/tracks/tracks.sql.ts';
import { DAY_MS, WEEK_MS, weekStartMs } from '../../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../../src/postgres/partitions.ts';
import { arrayLiteral, openSql, type Sql } from '../../../src/postgres/sql.ts';
import { RawSql } from '../../../src/postgres/sqlText.ts';
import { packPoints } from '../../support/history/packPoints.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { IS_TORTURE } from '../../support/torture.ts';
import { newTurns } from '../../support/workTurns.ts';
import { cellOfCode, naiveCounts } from './naiveCells.ts';

const KILLS = IS_TORTURE ? 100 : 1;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const PACK_PROCESS = new URL('../../support/history/packProcess.ts', import.meta.url).pathname;
/** What packing and counting write. */
const FAILING = [
  ['packed_points', 'insert'],
  ['position', 'delete'],
  ['driven_cells', 'insert'],
  ['track_week', 'update'],
  ['driven_cells', 'delete'],
  ['track_tile', 'insert'],
].map(([table = '', event = '']) => [new RawSql(table), new RawSql(event)] as const);
/** A Monday that is over long enough to be packed. */
const MONDAY_MS = weekStartMs(Date.now()) - 3 * WEEK_MS;

let url: string;
let sql: Sql;
before(async () => {
  ({ url } = await createDatabase());
  sql = openSql(url, { maxConnections: 4, name: 'test' });
});
after(() => sql.end());

let worldId: number;
let devices = 0;
async function newWorld(): Promise<number> {
  const [row] = await sql<{ id: number }[]>`insert into world default values returning id`;
  return row?.id ?? 0;
}
async function newDevice(ofWorld: number): Promise<number> {
  const draft = { worldId: ofWorld, name: null, plate: null, model: null, groups: [] };
  const imei = String(350_000_000_000_000 + ++devices);
  const [device] = await sql.begin((tx) => insertDevices(tx, [{ imei, ...draft }]));
  return device?.id ?? 0;
}
beforeEach(async () => {
  worldId = await newWorld();
});

async function store(deviceId: number, points: readonly TrackPoint[]): Promise<void> {
  await ensureWeeks(sql, POSITIONS, [
    ...new Set(points.map(({ recordedAtMs }) => weekStartMs(recordedAtMs))),
  ]);
  const column = (of: (point: TrackPoint) => number) => arrayLiteral(points.map(of));
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
    select ${deviceId}, to_timestamp(at / 1000), lat, lng, 0, speed, 0, 0
    from unnest(${column((point) => point.recordedAtMs)}::float8[], ${column((point) => point.lat)}::float8[],
      ${column((point) => point.lng)}::float8[], ${column((point) => point.speedKmh)}::float8[]) p (at, lat, lng, speed)`;
}

/** Drives and stands in a town. Whole numbers of seconds apart. */
function drive(seed: number, startMs: number, count: number, stepSeconds: number): TrackPoint[] {
  const random = seededRandom(seed);
  let [lat, lng, east] = [45 + random() / 50, 9 + random() / 50, true];
  return Array.from({ length: count }, (_, n) => {
    const isStanding = n % 120 < 30;
    if (random() < 0.1) east = !east;
    if (!isStanding && east) lng += 0.0008;
    if (!isStanding && !east) lat += 0.0005 * (random() < 0.5 ? 1 : -1);
    return { recordedAtMs: startMs + n * stepSeconds * 1_000, lat, lng, speedKmh: isStanding ? 0 : 30 };
  });
}

/** The counted cells of a zoom, those of all weeks together. */
async function counted(ofWorld: number, zoom = 13): Promise<Map<string, number>> {
  const rows = await sql<{ tile: number; bytes: Buffer }[]>`
    select tile, bytes from track_tile where world_id = ${ofWorld} and zoom = ${zoom}`;
  const cells = new Map<string, number>();
  for (const { tile, bytes } of rows) {
    const { codes, counts } = decodeCounts(bytes);
    for (const [n, code] of codes.entries()) {
      const cell = cellOfCode(tile * 65_536 + code, zoom + 8);
      cells.set(cell, (cells.get(cell) ?? 0) + counts[n]!);
    }
  }
  return cells;
}

const sorted = (cells: ReadonlyMap<string, number>) =>
  [...cells].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));

function assertSame(found: ReadonlyMap<string, number>, expected: ReadonlyMap<string, number>): void {
  assert.ok(expected.size > 100, `${expected.size} cells`);
  assert.deepEqual(sorted(found), sorted(expected));
}

/** Each lower zoom has the highest count of four cells. */
async function assertZoomsBelow(expected: ReadonlyMap<string, number>): Promise<void> {
  let below = expected;
  for (let zoom = 12; zoom >= 0; zoom--) {
    const above = new Map<string, number>();
    for (const [cell, count] of below) {
      const [x, y] = cell.split('/').map((part) => Number(part) >> 1);
      above.set(`${x}/${y}`, Math.max(above.get(`${x}/${y}`) ?? 0, count));
    }
    assert.deepEqual(sorted(await counted(worldId, zoom)), sorted(above), `zoom ${zoom}`);
    below = above;
  }
}

/** Cells that wait to be counted. */
async function note(ofWorld: number, cells: CellCounts): Promise<void> {
  await sql`
    insert into driven_cells (world_id, week, cells, tiles, bytes)
    values (${ofWorld}, ${weekOf(MONDAY_MS)}, 1, 1, ${encodeCounts(cells)})`;
}

const waiting = async () => Number((await sql`select from driven_cells`).count);
const countAll = (ofWorld: number, tilesMax?: number) =>
  countDriven(
    { sql, turns: newTurns(), rest: async () => undefined, ...(tilesMax === undefined ? {} : { tilesMax }) },
    ofWorld,
    () => false,
  );

describe('packing counts where devices have driven', () => {
  test('in how many days of devices, as a naive program does, at every zoom', async () => {
    const tracks = [1, 2, 3].map((seed) => drive(seed, MONDAY_MS, 2_000, 120));
    for (const track of tracks) await store(await newDevice(worldId), track);
    await packPoints(sql);
    const expected = naiveCounts(tracks);
    assertSame(await counted(worldId), expected);
    assert.ok(Math.max(...expected.values()) > 1);
    await assertZoomsBelow(expected);
    assert.equal(await waiting(), 0);
    const [week] = await sql<{ tiles: number }[]>`select tiles from track_week where world_id = ${worldId}`;
    const tiles = await sql`select from track_tile where world_id = ${worldId} and zoom = 13`;
    assert.equal(week?.tiles, tiles.count);
  });

  test('also in more tiles than are read with one statement', async () => {
    const track = Array.from({ length: 900 }, (_, n): TrackPoint[] => {
      const [lat, lng] = [-60 + (n % 100), -170 + Math.floor(n / 100) * 20];
      const point = (more: number) => ({ lat: lat + more / 1_000, lng: lng + more / 1_000, speedKmh: 30 });
      return [0, 1].map((more) => ({
        recordedAtMs: MONDAY_MS + (n * 90 + more * 30) * 1_000,
        ...point(more),
      }));
    }).flat();
    const later = track.map((point) => ({ ...point, recordedAtMs: point.recordedAtMs + DAY_MS }));
    const deviceId = await newDevice(worldId);
    for (const day of [track, later]) {
      await store(deviceId, day);
      await packPoints(sql);
    }
    const expected = naiveCounts([track, later]);
    assertSame(await counted(worldId), expected);
    await assertZoomsBelow(expected);
  });

  test('once a day, also where a day is packed in several parts and points come late', async () => {
    const deviceId = await newDevice(worldId);
    const track = drive(4, MONDAY_MS, 15_000, 2);
    const lateOnes = track.filter((_, n) => n % 7 === 3);
    const first = track.filter((_, n) => n % 7 !== 3);
    await store(deviceId, first);
    await packPoints(sql);
    assertSame(await counted(worldId), naiveCounts([first]));
    await store(deviceId, lateOnes);
    await packPoints(sql);
    const found = await counted(worldId);
    // What was drawn between two points stays where later ones between them lie elsewhere.
    for (const cell of naiveCounts([track]).keys()) assert.equal(found.get(cell), 1);
    assert.deepEqual(new Set(found.values()), new Set([1]));
  });

  test('of a device with few points a week, day by day', async () => {
    const deviceId = await newDevice(worldId);
    const track = [0, 1, 2, 4].flatMap((day) => drive(5, MONDAY_MS + day * DAY_MS, 45, 30));
    for (const day of [0, 1, 2, 4]) {
      await store(deviceId, drive(5, MONDAY_MS + day * DAY_MS, 45, 30));
      await packPoints(sql);
    }
    const found = await counted(worldId);
    assert.deepEqual(sorted(found), sorted(naiveCounts([track])));
    assert.equal(Math.max(...found.values()), 4);
  });

  test(`and loses and doubles nothing when it is killed, ${KILLS} times (seed ${SEED})`, async (t) => {
    const random = seededRandom(SEED);
    const tracks: TrackPoint[][] = [];
    for (let n = 0; n < KILLS; n++) {
      for (let device = 0; device < 4; device++) {
        const track = drive(10 + device, MONDAY_MS + (n % 7) * DAY_MS, 1_400, 60);
        tracks.push(track);
        await store(await newDevice(worldId), track);
      }
      await sql`update packing set pass_due_at = '-infinity', leased_until = '-infinity'`;
      const packer = spawn(process.execPath, [PACK_PROCESS, url], { stdio: ['ignore', 'pipe', 'inherit'] });
      t.after(() => packer.kill('SIGKILL'));
      const ended = once(packer, 'exit');
      await once(packer.stdout, 'data');
      await sleep(random() * 150);
      packer.kill('SIGKILL');
      await ended;
    }
    await packPoints(sql);
    assertSame(await counted(worldId), naiveCounts(tracks));
  });

  test('and loses and doubles nothing whichever of its statements fails', async () => {
    await sql`
      create function fail() returns trigger language plpgsql
      as $$ begin raise exception 'on purpose'; end $$`;
    const tracks: TrackPoint[][] = [];
    for (const [table, event] of FAILING) {
      // Twice on the same streets: tiles are there already.
      const track = drive(20, MONDAY_MS + (tracks.length % 7) * DAY_MS, 1_400, 60);
      tracks.push(track);
      await store(await newDevice(worldId), track);
      await sql`create trigger fail before ${event} on ${table} for each statement execute function fail()`;
      await assert.rejects(() => packPoints(sql), /on purpose/, `${table.text} is not written`);
      await sql`drop trigger fail on ${table}`;
      await packPoints(sql);
      assertSame(await counted(worldId), naiveCounts(tracks));
    }
    await assertZoomsBelow(naiveCounts(tracks));
  });

  test('in the world that the device is in when it is packed, and in no other', async () => {
    const [other, deviceId] = [await newWorld(), await newDevice(worldId)];
    await store(deviceId, drive(6, MONDAY_MS, 300, 30));
    await packPoints(sql);
    await sql`update device set world_id = ${other} where id = ${deviceId}`;
    await store(deviceId, drive(7, MONDAY_MS + DAY_MS, 300, 30));
    await packPoints(sql);
    assertSame(await counted(worldId), naiveCounts([drive(6, MONDAY_MS, 300, 30)]));
    assertSame(await counted(other), naiveCounts([drive(7, MONDAY_MS + DAY_MS, 300, 30)]));
  });

  test('once, where several pods count at the same time', async () => {
    for (let round = 1; round <= 5; round++) {
      for (let n = 0; n < 20; n++)
        await note(worldId, { codes: Float64Array.of(7), counts: Uint8Array.of(1) });
      await Promise.all([countAll(worldId), countAll(worldId), countAll(worldId)]);
      assert.deepEqual([...(await counted(worldId)).values()], [20 * round]);
    }
  });

  test('up to a number of tiles of a world and week: who drives everywhere fills no other', async () => {
    const [attacker, victim] = [worldId, await newWorld()];
    const everywhere = Array.from({ length: 40 }, (_, n) => ({
      codes: Float64Array.of(n * 65_536 + 7),
      counts: Uint8Array.of(1),
    }));
    for (const cells of everywhere) await note(attacker, cells);
    await note(victim, everywhere[39]!);
    for (let n = 0; n < 3; n++) await note(attacker, everywhere[2]!);
    assert.equal(await countAll(attacker, 10), true);
    assert.equal(await countAll(victim, 10), true);
    const found = await counted(attacker);
    assert.equal(found.size, 10);
    assert.equal(Math.max(...found.values()), 4, 'a tile that is there counts on');
    assert.equal((await counted(victim)).size, 1);
  });

  test('and forgets weeks that are over, with everything of them', async () => {
    const deviceId = await newDevice(worldId);
    await store(deviceId, drive(8, MONDAY_MS, 300, 30));
    await store(deviceId, drive(9, MONDAY_MS + WEEK_MS, 300, 30));
    await packPoints(sql);
    assert.equal(await pruneTracks(sql, MONDAY_MS + WEEK_MS - 1), 0, 'the week is not over');
    while ((await pruneTracks(sql, MONDAY_MS + WEEK_MS)) > 0);
    assertSame(await counted(worldId), naiveCounts([drive(9, MONDAY_MS + WEEK_MS, 300, 30)]));
    const weeks = await sql<{ week: number }[]>`select week from track_week where world_id = ${worldId}`;
    assert.deepEqual(
      weeks.map(({ week }) => week),
      [weekOf(MONDAY_MS) + 1],
    );
  });
});
