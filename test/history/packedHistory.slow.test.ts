import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { PACKED_POINTS_MAX } from '../../src/history/codec/packedBlob.ts';
import { EXPORT_FORMATS } from '../../src/history/exportFormats.ts';
import { DAY_MS, weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { callApi } from '../support/http/application.ts';
import { DATA_FOLDER, endingAt, readRecordings } from '../support/ingest/recordings.ts';
import { manualClock } from '../support/manualClock.ts';
import { type OwnerPod, ownerPod } from '../support/ownerPod.ts';
import { bareRequest } from '../support/pod.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const NOW_MS = Math.floor(Date.now() / 1_000) * 1_000;
const TODAY_MS = Math.floor(NOW_MS / DAY_MS) * DAY_MS;
/** One that reports every five minutes, one every second, one now and then, one with numbers of every kind, recorded tracks. */
const IMEIS = [1, 2, 3, 4, 5].map((n) => `35000000000000${n}`);
const [DENSE, FAST, SPARSE, ODD, RECORDED] = IMEIS as [string, string, string, string, string];
const SEED = Number(process.env['FLEET_SEED'] ?? 1);
const random = seededRandom(SEED);
const upTo = (n: number): number => Math.floor(random() * n);

type Sent = { imei: string; recorded_at: number; latitude: number; longitude: number } & Partial<
  Record<'altitude_m' | 'speed_kmh' | 'heading' | 'satellites' | 'odometer_km', number>
>;

/** A drive from a time on, one point after the other. */
function drive(imei: string, startMs: number, count: number, stepMs: () => number): Sent[] {
  const rounded = (degrees: number) => Math.round(degrees * 1e6) / 1e6;
  let [recorded_at, lat, lng] = [startMs, 41.9, 12.5];
  return Array.from({ length: count }, (_, n) => {
    recorded_at += stepMs();
    lat += (random() - 0.4) / 1_000;
    lng += (random() - 0.5) / 1_000;
    const speed_kmh = n % 700 < 300 ? 0 : upTo(900) / 10;
    return {
      ...{ imei, recorded_at, latitude: rounded(lat), longitude: rounded(lng), altitude_m: upTo(300) },
      ...{ speed_kmh, heading: upTo(360), satellites: upTo(15), odometer_km: n / 10 },
    };
  });
}

const ODD_NUMBERS = [0, -0, 1e-300, 0.1 + 0.2, 1 / 3, 5e-324, 359.99999999999994, 2 ** 40 + 0.5, 12];
const oddNumber = (): number => ODD_NUMBERS[upTo(ODD_NUMBERS.length)] as number;

function oddPoints(count: number): Sent[] {
  return Array.from({ length: count }, (_, n) => ({
    imei: ODD,
    recorded_at: TODAY_MS - 20 * DAY_MS + n * 600_001 + upTo(1_000),
    latitude: n % 3 === 0 ? -89.99999999999999 : oddNumber() % 90,
    longitude: n % 2 === 0 ? 180 - 2 ** -40 : -180,
    altitude_m: oddNumber(),
    ...(n % 5 === 0 ? {} : { speed_kmh: Math.abs(oddNumber()) % 400 }),
    heading: oddNumber() % 360,
    satellites: n % 40,
    ...(n % 7 === 0 ? { odometer_km: oddNumber() } : {}),
  }));
}

/** A recorded track on each of some closed days, where there are any. */
async function recordedPoints(): Promise<Sent[]> {
  if (DATA_FOLDER === undefined) return [];
  const tracks = [...(await readRecordings()).values()];
  const points = tracks.flatMap((track, n) =>
    endingAt(track, TODAY_MS - (3 + 2 * n) * DAY_MS).map((point) => ({
      ...point,
      imei: RECORDED,
      recorded_at: Date.parse(point.recorded_at),
    })),
  );
  // A recording may have two points of one second.
  return [...new Map(points.map((point) => [point.recorded_at, point])).values()];
}

/** Stores the same points on both sides, without the sixty seconds that sending them would take. */
async function insert(sql: Sql, points: readonly Sent[]): Promise<void> {
  await ensureWeeks(sql, POSITIONS, [...new Set(points.map((point) => weekStartMs(point.recorded_at)))]);
  const column = (name: keyof Sent, missing: number | null = 0) =>
    points.map((each) => each[name] ?? missing);
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites,
      odometer_km, received_at, late)
    select d.id, to_timestamp(at / 1000), lat, lng, alt, speed, heading, sat, odo, to_timestamp((at + 1234) / 1000), false
    from unnest(${column('imei')}::text[], ${column('recorded_at')}::float8[], ${column('latitude')}::float8[],
      ${column('longitude')}::float8[], ${column('altitude_m')}::float8[], ${column('speed_kmh')}::float8[],
      ${column('heading')}::float8[], ${column('satellites')}::int[], ${column('odometer_km', null)}::float8[])
      as p (imei, at, lat, lng, alt, speed, heading, sat, odo)
    join device d on d.imei = p.imei`;
}

describe('a packed history', () => {
  const options = { clock: manualClock(NOW_MS), devices: IMEIS.map((imei) => ({ imei })) };
  const packed = ownerPod(options);
  const plain = ownerPod(options);
  const both = <T>(work: (side: OwnerPod) => Promise<T>): Promise<[T, T]> =>
    Promise.all([work(packed), work(plain)]);
  const past: Sent[] = [];

  /** Points in between, at the same times, before and after, and again. */
  function latePoints(count: number): Sent[] {
    return Array.from({ length: count }, (_, n) => {
      const near = past[upTo(past.length)] as Sent;
      if (n % 3 === 0) return near;
      const shiftMs = n % 3 === 1 ? upTo(2_000) : (upTo(60) - 30) * 3_600_000;
      const place = {
        imei: near.imei,
        recorded_at: Math.min(near.recorded_at + shiftMs, NOW_MS - 2_000),
        latitude: 41 + random(),
        longitude: near.longitude,
      };
      return n % 2 === 0 ? { ...place, speed_kmh: upTo(90) } : place;
    });
  }

  /** Sends the same points to both, and they are counted alike. */
  async function sendBoth(points: readonly Sent[]): Promise<void> {
    const [one, other] = await both(({ pod }) => pod.points(points));
    assert.deepEqual(one, other);
    past.push(...points);
  }

  async function assertAlike(path: string): Promise<void> {
    const [one, other] = await both(({ pod, key }) =>
      bareRequest(`${pod.api}${path}`, { headers: { 'X-API-Key': key } }),
    );
    assert.equal(one.status, 200, one.text.slice(0, 300));
    if (one.text !== other.text) assert.fail(`${path} differs: ${firstDifference(one.text, other.text)}`);
  }

  const timeNear = (): string => {
    const near = past[upTo(past.length)] as Sent;
    return new Date(near.recorded_at + (upTo(3) - 1) * upTo(100_000_000)).toISOString();
  };

  async function assertAllAlike(): Promise<void> {
    for (const imei of IMEIS) await assertAlike(`/api/v3/devices/${imei}/history/summary?by=trip`);
    await assertPointsAlike();
    for (let n = 0; n < runs(2); n++) {
      const base = `/api/v3/devices/${IMEIS[upTo(4)]}/history`;
      const [one, other] = [timeNear(), timeNear()];
      const window = [`from=${one}&to=${other}`, `from=${one}`, `to=${one}`][upTo(3)] as string;
      await assertAlike(`${base}?${window}&limit=${1 + upTo(999)}`);
      await assertAlike(`${base}/export?${window}`);
      await assertAlike(`${base}/summary?${window}`);
    }
  }

  async function assertPointsAlike(): Promise<void> {
    for (const imei of IMEIS) {
      const base = `/api/v3/devices/${imei}/history`;
      await assertAlike(`${base}/export?format=csv`);
      await assertAlike(`${base}?limit=1000`);
    }
    await assertBacktestAlike();
  }

  async function assertBacktestAlike(
    fromMs = NOW_MS - (10 + upTo(20)) * DAY_MS - upTo(DAY_MS),
  ): Promise<void> {
    const area = { name: 'Rome', type: 'circle', center: { lat: 41.95, lng: 12.5 }, radius_m: 9_000 };
    const from = new Date(fromMs).toISOString();
    const to = new Date(NOW_MS - upTo(8 * DAY_MS)).toISOString();
    const body = { area, from, to, dwell_seconds: [0, 60, 600] };
    const [one, other] = await both(({ pod, key }) =>
      callApi(pod, 'POST', '/v3/areas/backtest', { body, key }),
    );
    assert.equal(one.status, 200, one.text);
    assert.equal(one.text, other.text, `backtest from ${from} to ${to}`);
  }

  const rowsLeft = async (beforeMs: number): Promise<number> => {
    const [row] = await packed.sql<{ n: number }[]>`
      select count(*)::int as n from position where recorded_at < ${new Date(beforeMs)}`;
    return row?.n ?? -1;
  };

  before(async () => {
    const histories = [
      ...drive(DENSE, NOW_MS - 5 * DAY_MS, 1_400, () => 300_000 + (upTo(20) === 0 ? upTo(300_000) : 0)),
      ...drive(FAST, TODAY_MS - 6 * DAY_MS + 3_600_000, 10_200, () => 1_000),
      ...Array.from({ length: 25 }, (_, day) =>
        drive(SPARSE, TODAY_MS - (27 - day) * DAY_MS, 1 + upTo(80), () => 1_000_000),
      ).flat(),
      ...oddPoints(700),
      ...(await recordedPoints()),
    ];
    past.push(...histories);
    await both(({ sql }) => insert(sql, histories));
    // The states of the devices are as if these points had come one after the other.
    await sendBoth(
      IMEIS.map((imei) => ({ imei, recorded_at: NOW_MS - 1_000, latitude: 41.9, longitude: 12.5 })),
    );
    await sendBoth(latePoints(300));
  });

  test('answers like the rows, and points that come late while it is packed are in it once', async () => {
    const wasThere = await rowsLeft(TODAY_MS - 2 * DAY_MS);
    // Every few steps the packing is cut off, and late points come in between.
    let steps = 0;
    for (let isDone = false; !isDone; ) {
      const [result] = await Promise.all([
        packPoints(packed.sql, () => steps++ % 9 === 8),
        sendBoth(latePoints(20)),
      ]);
      isDone = result.isDone;
      assert.deepEqual(result.damaged, []);
    }
    // Days that get points while they are packed are left for the next pass, so not all are.
    const left = await rowsLeft(TODAY_MS - 2 * DAY_MS);
    assert.ok(left < 0.8 * wasThere, `${left} of ${wasThere} points are rows`);
    await assertAllAlike();
    for (const imei of [SPARSE, ODD]) {
      const base = `/api/v3/devices/${imei}/history`;
      for (const format of EXPORT_FORMATS) await assertAlike(`${base}/export?format=${format}`);
      for (const by of ['total', 'day']) await assertAlike(`${base}/summary?by=${by}&tz=Europe/Rome`);
      await assertAlike(`/api/v2/devices/${imei}/history`);
    }
  });

  test('takes late points in with the next pass, and leaves none out', async () => {
    await sendBoth(latePoints(200));
    assert.ok((await rowsLeft(TODAY_MS - 2 * DAY_MS)) > 0);
    await packPoints(packed.sql);
    assert.equal(await rowsLeft(TODAY_MS - 2 * DAY_MS), 0, 'nothing of a closed day is left as a row');
    assert.ok((await rowsLeft(NOW_MS)) > 300, 'two days stay rows');
    await assertAllAlike();
    const [first, again] = await both(({ pod }) => pod.points(past.slice(0, 1_000)));
    assert.deepEqual(first, again);
    assert.equal(first.duplicates, 1_000, 'a packed point is known when it comes again');
  });

  test('has no row too long for a page, and one for the days of a week with few points', async () => {
    const days = await packed.sql<{ imei: string; rows: number; most: number }[]>`
      select imei, count(*)::int as rows, max(count)::int as most
      from packed_points join device on device_id = id group by imei order by imei`;
    const rowsOf = (imei: string) => days.find((each) => each.imei === imei);
    assert.ok((rowsOf(SPARSE)?.rows ?? 0) < 25, `${rowsOf(SPARSE)?.rows} rows`);
    assert.ok((rowsOf(FAST)?.most ?? 0) <= PACKED_POINTS_MAX);
    const overlaps = await packed.sql`
      select from packed_points a join packed_points b on a.device_id = b.device_id and a.first_at < b.first_at
      where b.first_at <= a.last_at`;
    assert.equal(overlaps.length, 0);
  });

  test('is in no backtest and no export twice when a row is packed again that was packed before', async () => {
    // As a pod would leave it that looked for repeats before the day was packed.
    await packed.sql`
      insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
      select device_id, first_at, 0, 0, 0, 0, 0, 0 from packed_points where count > 1`;
    await assertPointsAlike();
    // The last point before the window is one of those.
    const first = await packed.sql<{ at: Date }[]>`
      select first_at as at from packed_points where count > 1 and first_at < ${new Date(NOW_MS - 9 * DAY_MS)}
      order by first_at desc limit 20`;
    for (const { at } of first) await assertBacktestAlike(at.getTime() + 1);
    await packPoints(packed.sql);
    await assertPointsAlike();
    assert.equal(await rowsLeft(TODAY_MS - 2 * DAY_MS), 0);
  });
});

function firstDifference(one: string, other: string): string {
  let at = 0;
  while (one[at] === other[at]) at++;
  return `…${one.slice(Math.max(0, at - 80), at + 120)} instead of …${other.slice(Math.max(0, at - 80), at + 120)}`;
}
