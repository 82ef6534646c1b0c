import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { toShape } from '../../src/areas/shape.ts';
import { AreaReplay } from '../../src/explain/backtest/areaReplay.ts';
import {
  BACKTEST_SIZES,
  type BacktestRequest,
  type BacktestSizes,
  Backtests,
} from '../../src/explain/backtest/backtests.ts';
import { MANY_RANGES } from '../../src/history/points.sql.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { type MemoryPod, openMemoryPod } from '../coherence/memoryPod.ts';
import { validArea } from '../support/http/areas.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { newTurns } from '../support/workTurns.ts';
import { storeTrips, TRIP_AREA } from './storedTrips.ts';

const OWNER = 'owner@example.com';
const START_MS = Math.floor(Date.now() / 1_000 - 86_400) * 1_000;
const imeiOf = (n: number): string => String(350_000_000_000_000 + n);
/** One that fills pages alone, many that share one, and some without points. */
const LONG = { imeis: [imeiOf(100)], count: 2 * MANY_RANGES.rows + 5 };
const SHORT = { imeis: Array.from({ length: 700 }, (_, n) => imeiOf(1_000 + n)), count: 20 };
const EXACT = { imeis: [imeiOf(5_000)], count: MANY_RANGES.rows };
const EMPTY = Array.from({ length: 50 }, (_, n) => imeiOf(3_000 + n));

let pod: MemoryPod;
let request: BacktestRequest;
const { definition } = validArea(TRIP_AREA);
const shape = toShape(definition.geometry);

before(async () => {
  const { url } = await createDatabase();
  const admin = adminOf(url);
  await admin.account(OWNER);
  const all = [...LONG.imeis, ...SHORT.imeis, ...EXACT.imeis, ...EMPTY];
  await admin.importDevices(
    OWNER,
    all.map((imei) => ({ imei })),
  );
  pod = openMemoryPod(url);
  await pod.follower.start();
  for (const { imeis, count } of [LONG, SHORT, EXACT]) await storeTrips(pod.sql, imeis, count, START_MS);
  const [account] = await pod.sql<{ id: number; world_id: number }[]>`select id, world_id from account`;
  assert.ok(account);
  request = {
    accountId: account.id,
    worldIds: [account.world_id],
    shape,
    areaId: null,
    oldestMs: 0,
    imeis: null,
    fromMs: START_MS + 7_000,
    toMs: START_MS + 30_000_000,
    dwellSeconds: [0, 30, 90],
    hasLeft: () => false,
  };
});
after(() => pod.close());

/** The client of the pod, which calls `onCopy` before each page is read and counts what is read at a time. */
function watched(onCopy: () => void) {
  const { sql } = pod;
  const seen = { copies: 0, reading: 0, mostAtOnce: 0 };
  const copy: Sql['copy'] = async (query, use) => {
    onCopy();
    seen.copies++;
    seen.mostAtOnce = Math.max(seen.mostAtOnce, ++seen.reading);
    await sql.copy(query, use);
    seen.reading--;
  };
  const query = (...args: Parameters<Sql>) => sql(...args);
  return { seen, sql: Object.assign(query, { ...sql, copy }) as Sql };
}

function backtests(sql: Sql = pod.sql, sizes: Partial<BacktestSizes> = {}): Backtests {
  const ports = { reads: () => sql, fleet: pod.fleet, turns: newTurns() };
  return new Backtests(ports, { ...BACKTEST_SIZES, ...sizes });
}

test('all pages together are what one replay of all points is, and one page is read at a time', async () => {
  const { sql, seen } = watched(() => undefined);
  const outcome = await backtests(sql).run(request);
  assert.ok(outcome.kind === 'done');
  const replay = new AreaReplay(shape, request.dwellSeconds, request.fromMs);
  let devices = 0;
  for (const imei of [...LONG.imeis, ...SHORT.imeis, ...EXACT.imeis]) {
    const rows = await pod.sql<{ ms: number; latitude: number; longitude: number }[]>`
      select extract(epoch from recorded_at)::float8 * 1000 as ms, latitude, longitude
      from position join device on id = device_id
      where imei = ${imei} and recorded_at between ${new Date(START_MS)} and ${new Date(request.toMs)} order by 1`;
    const columns = {
      count: rows.length,
      lates: new Float64Array(rows.length),
      recordedAtMs: Float64Array.from(rows, ({ ms }) => ms),
      lats: Float64Array.from(rows, ({ latitude }) => latitude),
      lngs: Float64Array.from(rows, ({ longitude }) => longitude),
    };
    replay.begin(imei);
    inOneGo(replay.take(columns, new Set()));
    replay.end();
    devices++;
  }
  const gist = ({ tallies, points }: Pick<AreaReplay, 'tallies' | 'points'>) => [
    points,
    ...tallies.map(({ dwellSeconds, entries, exits, devices: visitors, insideMs, listed }) => [
      ...[dwellSeconds, entries, exits, visitors, insideMs, listed],
    ]),
  ];
  assert.deepEqual(gist(outcome), gist(replay));
  assert.equal(outcome.devices, devices);
  assert.ok((outcome.tallies[0]?.entries ?? 0) > 300);
  assert.equal(seen.mostAtOnce, 1);
  assert.ok(seen.copies >= 5, `${seen.copies} pages`);
});

test('more points than are read are refused with their number, before any is read', async () => {
  const { sql, seen } = watched(() => undefined);
  const imeis = SHORT.imeis.slice(0, 3);
  const window = { ...request, imeis, fromMs: START_MS };
  assert.deepEqual(await backtests(sql, { points: 59 }).run(window), {
    kind: 'too_many',
    points: 60,
    devices: 3,
  });
  assert.equal(seen.copies, 0);
  assert.equal((await backtests(sql, { points: 60 }).run(window)).kind, 'done');
});

test('one that takes more processor time than it may is refused', async () => {
  assert.deepEqual(await backtests(pod.sql, { workMs: 0 }).run(request), { kind: 'too_much_work' });
});

test('points that show who was inside before the window count as well', async () => {
  const imeis = SHORT.imeis.slice(0, 1);
  const window = { ...request, imeis, fromMs: START_MS + 15_000, dwellSeconds: [10] };
  const tooMany = { kind: 'too_many', points: 16, devices: 1 } as const;
  for (const points of [4, 15]) assert.deepEqual(await backtests(pod.sql, { points }).run(window), tooMany);
  assert.equal((await backtests(pod.sql, { points: 16 }).run(window)).kind, 'done');
});

test('are counted in full, however few one statement counts', async () => {
  const imeis = [...SHORT.imeis.slice(0, 7), ...LONG.imeis, ...EMPTY, ...SHORT.imeis.slice(7, 9)];
  const window = { ...request, imeis, fromMs: START_MS, toMs: START_MS + 40_000_000 };
  const points = 9 * SHORT.count + LONG.count;
  const devices = imeis.length;
  for (const counted of [1_000, 32_773, 140, 20_000_000]) {
    const few = { counted, points: points - 1 };
    assert.deepEqual(await backtests(pod.sql, few).run(window), { kind: 'too_many', points, devices });
    assert.equal((await backtests(pod.sql, { counted, points }).run(window)).kind, 'done');
  }
});

describe('an account', () => {
  test('has two at a time, and may start another when one is answered', async () => {
    const many = backtests();
    const two = [many.run(request), many.run(request)];
    assert.deepEqual(await many.run(request), { kind: 'busy' });
    const other = many.run({ ...request, accountId: request.accountId + 1 });
    for (const outcome of await Promise.all([...two, other])) assert.equal(outcome.kind, 'done');
    assert.equal((await many.run(request)).kind, 'done');
  });

  test('that hangs up is done at the next page, and has its place back', async () => {
    let hasLeft = false;
    const { sql, seen } = watched(() => {
      if (seen.copies === 1) hasLeft = true;
    });
    const many = backtests(sql);
    for (let n = 0; n < 3; n++) {
      hasLeft = false;
      seen.copies = 0;
      assert.deepEqual(await many.run({ ...request, hasLeft: () => hasLeft }), { kind: 'left' });
      assert.ok(seen.copies <= 6, `${seen.copies / 2} pages, of rows and of what is packed`);
      assert.equal(seen.reading, 0);
    }
  });

  test('has its place back after an error of Postgres', async () => {
    const { sql } = watched(() => {
      throw new Error('no page today');
    });
    const many = backtests(sql);
    for (let n = 0; n < 3; n++) await assert.rejects(many.run(request), /no page today/);
  });
});
