import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { insertDevices } from '../../../src/devices/devices.sql.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { emptyColumns } from '../../../src/history/codec/pointColumns.ts';
import type { DeviceChoice } from '../../../src/history/fleet/chosenDevices.ts';
import { type FleetPointPorts, fleetPoints } from '../../../src/history/fleet/fleetPoints.ts';
import type { PointRange } from '../../../src/history/packedPoints.sql.ts';
import { type PointsRead, readInOrder, type StoredPoints } from '../../../src/history/points.sql.ts';
import { weekStartMs } from '../../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { newTurns } from '../../support/workTurns.ts';

const FIRST_MS = Date.UTC(2026, 0, 5, 12);
const WINDOW = { fromMs: FIRST_MS, toMs: FIRST_MS + 3_600_000 };
/** Of the first so many that several statements read them; the others have one point each. */
const [MANY, ONE] = [40_000, 300];
const ALL: DeviceChoice = { groups: null, imeis: null, afterImei: '0' };
const imeiOf = (n: number) => String(350_000_000_000_000 + n);

let sql: Sql;
let worldId: number;
let ids: readonly number[];
/** Statements that were begun. */
let statements = 0;
let ports: FleetPointPorts;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 2, name: 'test' });
  const [row] = await sql<{ id: number }[]>`insert into world default values returning id`;
  worldId = row?.id ?? 0;
  const draft = { worldId, name: null, plate: null, model: null, groups: [] };
  const drafts = Array.from({ length: ONE + 1 }, (_, n) => ({ imei: imeiOf(n), ...draft }));
  const devices = await sql.begin((tx) => insertDevices(tx, drafts));
  ids = devices.map(({ id }) => id);
  const fleet = new Fleet();
  for (const [n, { id }] of devices.entries()) {
    fleet.putDevice({ ...(drafts[n] as (typeof drafts)[number]), id, editedAtMs: 0 });
  }
  await ensureWeeks(sql, POSITIONS, [weekStartMs(FIRST_MS)]);
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
    select ${ids[0]}::bigint, ${new Date(FIRST_MS)}::timestamptz + make_interval(secs => n * 0.05), 41, 12, 0, 0, 0, 9
    from generate_series(1, ${MANY}) n
    union all
    select id, ${new Date(FIRST_MS)}::timestamptz, 41, 12, 0, 0, 0, 9 from unnest(${ids.slice(1)}::bigint[]) id`;
  const counted = new Proxy(sql, {
    get: (target, name: keyof Sql) => {
      if (name === 'copy') statements++;
      return target[name];
    },
  });
  ports = { fleet, reads: () => counted, turns: newTurns() };
});
after(() => sql.end());

const reader = () => ({ accountId: 1, worldIds: [worldId] });

/** How many points each device has, in the order in which they come. */
async function counts(): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for await (const pages of fleetPoints(ports, reader(), ALL, WINDOW)) {
    for (let next = pages.next(); next.done !== true; next = pages.next()) {
      const { imei, page } = next.value;
      found.set(imei, (found.get(imei) ?? 0) + page.count);
    }
  }
  return found;
}

test('a reader who waits costs one more statement and no connection', async () => {
  statements = 0;
  const parts = fleetPoints(ports, reader(), ALL, WINDOW);
  assert.equal((await parts.next()).done, false);
  // Ends when the statement that is under way has ended.
  await parts.return();
  assert.equal(statements, 2);
});

test('devices with a point each are read many with one statement', async () => {
  statements = 0;
  const found = await counts();
  assert.deepEqual(
    [...found.keys()],
    Array.from({ length: ONE + 1 }, (_, n) => imeiOf(n)),
  );
  assert.deepEqual([found.get(imeiOf(0)), found.get(imeiOf(1))], [MANY, 1]);
  assert.ok(statements < 10, `${statements} statements`);
});

test('a device that memory still has and Postgres has not is left out', async () => {
  const [other] = await sql<{ id: number }[]>`insert into world default values returning id`;
  await sql`update device set world_id = ${other?.id} where id = any(${ids.slice(0, 2)}::bigint[])`;
  assert.deepEqual(
    [...(await counts()).keys()],
    Array.from({ length: ONE - 1 }, (_, n) => imeiOf(n + 2)),
  );
  await sql`update device set world_id = ${worldId} where id = any(${ids.slice(0, 2)}::bigint[])`;
});

/** Reads so many devices, of whose statements each comes to the end of `full` ranges at most; returns how many each asked for. */
async function widths(devices: number, full: number): Promise<number[]> {
  const widths: number[] = [];
  const seen: number[] = [];
  const ranges = Array.from({ length: devices }, (_, n) => ({ deviceId: n, fromMs: 0, toMs: 9 }));
  const read = async (part: readonly PointRange[]): Promise<PointsRead> => {
    widths.push(part.length);
    seen.push(...part.slice(0, full).map(({ deviceId }) => deviceId));
    const found = part.slice(0, full).map((_, n) => storedPoints(n));
    return { found, until: { n: found.length - 1, ms: 9 } };
  };
  for await (const { found } of readInOrder(ranges, read)) assert.ok(found.length > 0);
  assert.deepEqual(
    seen,
    ranges.map(({ deviceId }) => deviceId),
  );
  return widths;
}

function storedPoints(n: number): StoredPoints {
  return { n, fromMs: 0, toMs: 9, rows: { ...emptyColumns(1), count: 1 }, packed: [], columns: [] };
}

test('a statement asks for few more ranges than the one before could read', async () => {
  assert.deepEqual(await widths(5, 1), [5, 2, 2, 2, 1]);
  assert.deepEqual((await widths(300, 2)).slice(0, 3), [128, 3, 3]);
  assert.deepEqual(await widths(600, 200), [128, 128, 128, 128, 88]);
});
