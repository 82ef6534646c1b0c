import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { insertDevices } from '../../src/devices/devices.sql.ts';
import type { PointColumns } from '../../src/history/codec/pointColumns.ts';
import { ARRIVAL, DeviceGone, PAGE_POINTS, pointPages } from '../../src/history/points.sql.ts';
import { insertLatePositions } from '../../src/ingest/latePoints.sql.ts';
import { insertNewPositions, type StoredFix } from '../../src/ingest/points.sql.ts';
import { weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const [IN_TIME, LATE] = [0, 1];
const WEEK_MS = 7 * 86_400_000;
const FIRST_MS = Date.UTC(2026, 0, 5);
const END_OF_TIME_MS = 253_402_300_799_999;
/** More than two pages in one week, and weeks with one point, several, or none. */
const TIMES_MS = [
  ...Array.from({ length: 2 * PAGE_POINTS + 10 }, (_, n) => FIRST_MS + n * 10_000),
  ...[FIRST_MS + WEEK_MS - 1, FIRST_MS + WEEK_MS, FIRST_MS + 3 * WEEK_MS + 5, FIRST_MS + 40 * WEEK_MS],
];

let sql: Sql;
let worldId: number;
let deviceId: number;
const stored: StoredFix[] = [];
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 2, name: 'test' });
  const [row] = await sql<{ id: number }[]>`insert into world default values returning id`;
  worldId = row?.id ?? 0;
  const draft = { worldId, name: null, plate: null, model: null, groups: [] };
  const drafts = ['350000000000001', '350000000000002'].map((imei) => ({ imei, ...draft }));
  const [first, other] = await sql.begin((tx) => insertDevices(tx, drafts));
  deviceId = first?.id ?? 0;
  await ensureWeeks(sql, POSITIONS, [...new Set(TIMES_MS.map(weekStartMs))]);
  const random = seededRandom(3);
  for (const recordedAtMs of TIMES_MS) {
    const place = { lat: random() * 180 - 90, lng: -180 + random() * 1e-12, altitudeM: -random() };
    const odometerKm = random() < 0.5 ? null : random() * 1e6;
    const motion = { speedKmh: 1e-300, heading: 359.9, satellites: 12, odometerKm };
    stored.push({ deviceId, recordedAtMs, ...place, ...motion });
  }
  await sql.begin(async (tx) => {
    await insertLatePositions(tx, stored, FIRST_MS, () => assert.fail());
    await insertLatePositions(tx, [{ ...(stored[0] as StoredFix), deviceId: other?.id ?? 0 }], FIRST_MS, () =>
      assert.fail(),
    );
  });
});
after(() => sql.end());

function fixesOf(page: PointColumns): StoredFix[] {
  return Array.from({ length: page.count }, (_, n) => ({
    deviceId,
    recordedAtMs: page.recordedAtMs[n] as number,
    lat: page.lats[n] as number,
    lng: page.lngs[n] as number,
    altitudeM: page.altitudesM[n] as number,
    speedKmh: page.speedsKmh[n] as number,
    heading: page.headings[n] as number,
    satellites: page.satellites[n] as number,
    odometerKm: Number.isNaN(page.odometersKm[n]) ? null : (page.odometersKm[n] as number),
  }));
}

async function read(fromMs: number, toMs: number): Promise<StoredFix[]> {
  const fixes: StoredFix[] = [];
  for await (const page of pointPages(sql, [99, worldId], deviceId, { fromMs, toMs })) {
    assert.ok(page.count > 0 && page.count <= PAGE_POINTS);
    fixes.push(...fixesOf(page));
  }
  return fixes;
}

test('every point of the device comes once, oldest first, with the bits that were stored', async () => {
  assert.deepEqual(await read(FIRST_MS, END_OF_TIME_MS), stored);
});

test('a window has its points, both ends included, wherever it begins and ends', async () => {
  const end = fc.oneof(
    fc.constantFrom(...TIMES_MS.slice(-6), FIRST_MS, ...TIMES_MS.slice(PAGE_POINTS - 1, PAGE_POINTS + 1)),
    fc.integer({ min: FIRST_MS - WEEK_MS, max: FIRST_MS + 41 * WEEK_MS }),
  );
  await fc.assert(
    fc.asyncProperty(end, end, fc.integer({ min: -1, max: 1 }), async (fromMs, at, off) => {
      const toMs = at + off;
      const expected = stored.filter(({ recordedAtMs: ms }) => ms >= fromMs && ms <= toMs);
      assert.deepEqual(await read(fromMs, toMs), expected);
    }),
    { numRuns: runs(30) },
  );
});

test('points come with how they came, where that is asked for and known', async () => {
  const draft = { worldId, imei: '350000000000003', name: null, plate: null, model: null, groups: [] };
  const [device] = await sql.begin((tx) => insertDevices(tx, [draft]));
  const id = device?.id ?? 0;
  const fixAt = (n: number) => ({ ...(stored[n] as StoredFix), deviceId: id });
  const begun = Date.now();
  const [row] = await sql.begin(async (tx) => {
    await insertNewPositions(tx, [fixAt(0), fixAt(2)]);
    await insertLatePositions(tx, [fixAt(1)], FIRST_MS, () => assert.fail());
    return tx<{ now: Date }[]>`select now()`;
  });
  const receivedAtMs = row?.now.getTime() ?? 0;
  assert.ok(Math.abs(receivedAtMs - begun) < 60_000);
  // As an import by SQL stores it.
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
    values (${id}, ${new Date(TIMES_MS[3] as number)}, 0, 0, 0, 0, 0, 0)`;
  const marks: (readonly [number | undefined, number | undefined])[] = [];
  const window = { fromMs: FIRST_MS, toMs: END_OF_TIME_MS };
  for await (const page of pointPages(sql, [worldId], id, window, ARRIVAL)) {
    for (let n = 0; n < page.count; n++) marks.push([page.lates[n], page.receivedAtMs[n]]);
  }
  assert.deepEqual(marks, [
    [IN_TIME, receivedAtMs],
    [LATE, receivedAtMs],
    [IN_TIME, receivedAtMs],
    [Number.NaN, Number.NaN],
  ]);
  for await (const page of pointPages(sql, [worldId], id, window)) assert.equal(page.lates.length, 0);
});

test('a device that is in none of the worlds is not there, also when it leaves between two pages', async () => {
  const window = { fromMs: FIRST_MS, toMs: END_OF_TIME_MS };
  await assert.rejects(pointPages(sql, [worldId + 1], deviceId, window).next(), DeviceGone);
  await assert.rejects(pointPages(sql, [worldId], deviceId + 99, window).next(), DeviceGone);
  const pages = pointPages(sql, [worldId], deviceId, window);
  assert.equal((await pages.next()).done, false);
  const [row] = await sql<{ id: number }[]>`insert into world default values returning id`;
  await sql`update device set world_id = ${row?.id} where id = ${deviceId}`;
  // One page is read ahead.
  await assert.rejects(async () => {
    for await (const _ of pages);
  }, DeviceGone);
  await sql`update device set world_id = ${worldId} where id = ${deviceId}`;
});

test('whoever leaves after a page leaves no connection behind, and no error that nobody hears', async () => {
  for (let n = 0; n < 5; n++) {
    for await (const page of pointPages(sql, [worldId], deviceId, {
      fromMs: FIRST_MS,
      toMs: END_OF_TIME_MS,
    })) {
      assert.equal(page.count, PAGE_POINTS);
      break;
    }
  }
  assert.equal((await read(FIRST_MS, FIRST_MS)).length, 1);
});

test('the columns of few points have room for few', async () => {
  const window = { fromMs: FIRST_MS + WEEK_MS, toMs: END_OF_TIME_MS };
  let count = 0;
  for await (const page of pointPages(sql, [worldId], deviceId, window)) {
    count += page.count;
    assert.ok(page.recordedAtMs.buffer.byteLength < 1_000);
  }
  assert.equal(count, 3);
});
