import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { insertDevices } from '../../../src/devices/devices.sql.ts';
import type { Fleet } from '../../../src/devices/fleet.memory.ts';
import type { TrackPoint } from '../../../src/history/summary/motionWalk.ts';
import type { CellCounts } from '../../../src/history/tracks/cells.ts';
import { RecentTracks } from '../../../src/history/tracks/recentTracks.ts';
import { HOUR_MS, MINUTE_MS, weekStartMs } from '../../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { newTurns } from '../../support/workTurns.ts';
import { cellOfCode, naiveCounts } from './naiveCells.ts';

const NOW_MS = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
let sql: Sql;
before(async () => {
  const { url } = await createDatabase();
  sql = openSql(url, { maxConnections: 2, name: 'test' });
});
after(() => sql.end());

let devices = 0;

/** A device that has driven to the east for some hours until now, each on a street of its own. */
async function driven(worldId: number, hours: number, stepSeconds: number): Promise<DrivenDevice> {
  const imei = String(350_000_000_000_000 + ++devices);
  const draft = { worldId, name: null, plate: null, model: null, groups: [] };
  const [device] = await sql.begin((tx) => insertDevices(tx, [{ imei, ...draft }]));
  const count = (hours * 3_600) / stepSeconds;
  const track = Array.from({ length: count }, (_, n) => ({
    recordedAtMs: NOW_MS - (count - 1 - n) * stepSeconds * 1_000,
    ...{ lat: 40 + devices / 10, lng: 9 + n * 0.0012, speedKmh: 30 },
  }));
  await ensureWeeks(sql, POSITIONS, [weekStartMs(NOW_MS - hours * HOUR_MS), weekStartMs(NOW_MS)]);
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
    select ${device?.id}, to_timestamp(${NOW_MS / 1_000}::float8 - (${count}::int - 1 - n) * ${stepSeconds}::int),
      ${40 + devices / 10}, 9 + n * 0.0012::float8, 0, 30, 0, 0
    from generate_series(0, ${count}::int - 1) n`;
  return { id: device?.id ?? 0, imei, track };
}

interface DrivenDevice {
  readonly id: number;
  readonly imei: string;
  readonly track: readonly TrackPoint[];
}

/** What memory has of these devices. */
function fleetOf(worlds: ReadonlyMap<number, readonly DrivenDevice[]>): Fleet {
  const listed = ([worldId]: readonly number[], afterImei: string, limit: number) =>
    (worlds.get(worldId ?? 0) ?? [])
      .filter(({ imei }) => imei > afterImei)
      .slice(0, limit)
      .map(({ id, imei }) => {
        const device = { id, imei, position: { recordedAtMs: NOW_MS } };
        return { device: { ...device, taken: () => device } };
      });
  return { listed } as unknown as Fleet;
}

async function newWorld(): Promise<number> {
  const [row] = await sql<{ id: number }[]>`insert into world default values returning id`;
  return row?.id ?? 0;
}

const cellsOf = ({ codes, counts }: CellCounts) =>
  new Map(Array.from(codes, (code, n) => [cellOfCode(code), counts[n]!]));
const sorted = (cells: ReadonlyMap<string, number>) => [...cells].sort(([a], [b]) => (a < b ? -1 : 1));

describe('cells of points that are rows', () => {
  test('are those of all devices of the world, also where a device has more rows than are read at a time', async () => {
    const [world, other] = [await newWorld(), await newWorld()];
    const own = [await driven(world, 2, 10), await driven(world, 6, 1), await driven(world, 1, 30)];
    const theirs = [await driven(other, 1, 10)];
    const fleet = fleetOf(
      new Map([
        [world, own],
        [other, theirs],
      ]),
    );
    const recent = new RecentTracks({ fleet, reads: () => sql, turns: newTurns() });
    const tracks = (of: readonly DrivenDevice[]) => sorted(naiveCounts(of.map(({ track }) => track)));
    assert.deepEqual(sorted(cellsOf(await recent.of(1, world, NOW_MS))), tracks(own));
    assert.deepEqual(sorted(cellsOf(await recent.of(1, other, NOW_MS))), tracks(theirs));
  });

  test('of a world with too many points are those of the last hours of all devices, soon', async () => {
    const world = await newWorld();
    const own = [await driven(world, 10, 60), await driven(world, 10, 60), await driven(world, 10, 60)];
    const ports = { fleet: fleetOf(new Map([[world, own]])), reads: () => sql, turns: newTurns() };
    const recent = new RecentTracks(ports, { points: 500, worlds: 2 });
    const lastHour = naiveCounts(
      own.map(({ track }) => track.filter(({ recordedAtMs }) => recordedAtMs > NOW_MS - HOUR_MS)),
    );
    const has = (cells: ReadonlyMap<string, number>) => [...lastHour.keys()].every((cell) => cells.has(cell));
    assert.equal(has(cellsOf(await recent.of(1, world, NOW_MS))), false, 'it was cut');
    let found = new Map<string, number>();
    for (let n = 0; n < 8; n++) found = cellsOf(await recent.of(1, world, NOW_MS + n));
    assert.equal(has(found), false, 'within a minute it is not read again');
    // Later by the clock of the pod, as if the points were as old as before.
    for (let n = 1; n < 9 && !has(found); n++)
      found = cellsOf(await recent.of(1, world, NOW_MS - n * 6 * MINUTE_MS));
    assert.equal(has(found), true);
  });

  test('are read once for all who ask, again after an error, and kept for some worlds', async () => {
    const world = await newWorld();
    const own = [await driven(world, 1, 10)];
    let [reads, isFailing] = [0, true];
    const counting = () => {
      reads++;
      if (isFailing) throw new Error('no connection');
      return sql;
    };
    const ports = { fleet: fleetOf(new Map([[world, own]])), reads: counting, turns: newTurns() };
    const recent = new RecentTracks(ports, { points: 1e6, worlds: 2 });
    await assert.rejects(() => recent.of(1, world, NOW_MS), /no connection/);
    isFailing = false;
    reads = 0;
    const [one, two] = await Promise.all([recent.of(1, world, NOW_MS), recent.of(2, world, NOW_MS)]);
    assert.equal(one, two);
    assert.equal(reads, 1);
    const stale = await recent.of(1, world, NOW_MS + 2 * MINUTE_MS);
    assert.equal(stale, one, 'nobody waits for a minute that is missing');
    assert.equal(reads, 2);
    for (let n = 0; n < 2; n++) await recent.of(1, await newWorld(), NOW_MS);
    reads = 0;
    await recent.of(1, world, NOW_MS);
    assert.equal(reads, 1, 'it was forgotten for those that came later');
  });
});
