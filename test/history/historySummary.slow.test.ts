import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TrackPoint } from '../../src/history/summary/motionWalk.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { readBothVersions } from '../support/http/readBothVersions.ts';
import { manualClock } from '../support/manualClock.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { naivePeriod, naiveTrips } from './summary/naiveSummary.ts';

const VAN = '350000000000001';
const SILENT = '350000000000002';
const FOREIGN = '350000000000003';
const BASIC = '350000000000004';
/** The Monday after the clock of Rome was put back. */
const NOW_MS = Date.UTC(2026, 9, 26, 12);
const iso = (ms: number) => new Date(ms).toISOString();

/** Three days of drives and stands up to now, a point every 20 s with some gaps, and one point 40 days ago. */
function track(): TrackPoint[] {
  const random = seededRandom(17);
  const points: TrackPoint[] = [];
  let [lat, speedKmh] = [41, 0];
  for (let ms = NOW_MS - 3 * DAY_MS; ms <= NOW_MS; ms += random() < 0.002 ? 3_000_000 : 20_000) {
    if (random() < 0.03) speedKmh = random() < 0.4 ? 0 : random() * 90;
    lat += (speedKmh / 3.6) * 20 * 9e-6 * (random() < 0.5 ? 1 : -1);
    points.push({ recordedAtMs: ms, lat, lng: 12.5, speedKmh });
  }
  return points;
}

describe('GET /devices/{imei}/history/summary', () => {
  const points = track();
  let basicKey = '';
  const devices = [{ imei: VAN }, { imei: SILENT }];
  const owner = ownerPod({ clock: manualClock(NOW_MS), devices }, async ({ pod, admin }) => {
    await admin.account('other@example.com');
    await admin.device('other@example.com', FOREIGN);
    await admin.account('basic@example.com', { plan: 'basic' });
    await admin.device('basic@example.com', BASIC);
    basicKey = (await admin.key('basic@example.com')).key;
    const ages = [30 * DAY_MS, 30 * DAY_MS + 1];
    await pod.points(
      ages.map((ageMs) => ({ imei: BASIC, recorded_at: NOW_MS - ageMs, latitude: 1, longitude: 1 })),
    );
    for (let at = 0; at < points.length; at += 5_000)
      await pod.points(
        points.slice(at, at + 5_000).map(({ recordedAtMs, lat, lng, speedKmh }) => ({
          ...{ imei: VAN, recorded_at: recordedAtMs, latitude: lat, longitude: lng, speed_kmh: speedKmh },
        })),
      );
  });
  const get = (query: string, imei = VAN, key = owner.key) =>
    readBothVersions(owner.pod, `/devices/${imei}/history/summary${query}`, key);
  const passage = (point: TrackPoint | null) =>
    point && { latitude: point.lat, longitude: point.lng, recorded_at: iso(point.recordedAtMs) };
  const near = (a: number, b: number, hint: string) =>
    assert.ok(Math.abs(a - b) <= 1e-6 * (1 + Math.abs(b)), `${hint}: ${a}, ${b}`);

  /** Compares an item with a period of the naive replay. */
  function assertPeriod(
    item: Record<string, unknown>,
    period: Omit<ReturnType<typeof naivePeriod>, 'x'>,
  ): void {
    const { distance_km, average_speed_kmh, from: _, to: __, date: ___, ...exact } = item;
    assert.deepEqual(exact, {
      points: period.points,
      moving_seconds: period.movingMs / 1_000,
      parked_seconds: period.parkedMs / 1_000,
      gap_seconds: period.gapMs / 1_000,
      max_speed_kmh: period.maxSpeedKmh,
      first: passage(period.first),
      last: passage(period.last),
    });
    near(distance_km as number, period.distanceM / 1_000, 'distance');
    if (period.movingMs === 0) assert.equal(average_speed_kmh, null);
    else near(average_speed_kmh as number, (period.distanceM / period.movingMs) * 3_600, 'average');
  }

  test('adds up all that the plan retains by default, over many pages, from the first point to the last', async () => {
    assert.ok(points.length > 8_192);
    const { body } = await get('');
    const [first, last] = [points[0] as TrackPoint, points.at(-1) as TrackPoint];
    assert.equal(body.data.length, 1);
    assert.ok(!('date' in body.data[0]), 'only days have a date');
    assert.deepEqual([body.data[0].from, body.data[0].to], [iso(first.recordedAtMs), iso(last.recordedAtMs)]);
    assert.deepEqual(body.meta, { query: { from: null, to: null, by: 'total', tz: 'UTC' } });
    assertPeriod(body.data[0], naivePeriod(points, first.recordedAtMs, last.recordedAtMs + 1));
    assert.ok(
      body.data[0].distance_km > 100 && body.data[0].parked_seconds > 3_600 && body.data[0].gap_seconds > 0,
    );
  });

  test('adds up days of a zone, of which the one with the change of the clock has 25 hours', async () => {
    const borders = ['2026-10-23T12:00', '2026-10-23T22:00', '2026-10-24T22:00', '2026-10-25T23:00'].map(
      (at) => `${at}:00.000Z`,
    );
    for (const [query, first, last] of [
      [`&from=${borders[0]}&to=${iso(NOW_MS)}`, borders[0], iso(NOW_MS)],
      ['', '2026-10-22T22:00:00.000Z', '2026-10-26T23:00:00.000Z'],
    ] as const) {
      const { body } = await get(`?by=day&tz=Europe/Rome${query}`);
      const periods = body.data as { from: string; to: string; date: string }[];
      const dates = ['2026-10-23', '2026-10-24', '2026-10-25', '2026-10-26'];
      assert.deepEqual(
        periods.map(({ date }) => date),
        dates,
      );
      const ends = periods.map(({ from, to }) => [from, to]);
      const [, one, two, three] = borders;
      assert.deepEqual(ends, [
        [first, one],
        [one, two],
        [two, three],
        [three, last],
      ]);
      for (const day of periods) {
        const toMs = Date.parse(day.to) + (day.to === iso(NOW_MS) ? 1 : 0);
        assertPeriod({ ...day }, naivePeriod(points, Date.parse(day.from), toMs));
      }
    }
  });

  test('shows each trip', async () => {
    const { body } = await get('?by=trip');
    const trips = naiveTrips(points);
    assert.ok(trips.length > 3);
    assert.deepEqual(
      body.data.map((trip: { from: string; to: string }) => [trip.from, trip.to]),
      trips.map(({ fromMs, toMs }) => [iso(fromMs), iso(toMs)]),
    );
    trips.forEach((trip, n) => {
      assertPeriod(body.data[n], trip);
    });
  });

  test('looks at nothing outside of its window, and at both ends of it', async () => {
    const [fromMs, toMs] = [points[1_000]?.recordedAtMs ?? 0, points[6_000]?.recordedAtMs ?? 0];
    const { body } = await get(`?from=${iso(fromMs)}&to=${iso(toMs)}`);
    assertPeriod(body.data[0], naivePeriod(points.slice(1_000, 6_001), fromMs, toMs + 1));
  });

  const NOTHING = {
    ...{ points: 0, distance_km: 0, moving_seconds: 0, parked_seconds: 0, gap_seconds: 0 },
    max_speed_kmh: null,
    average_speed_kmh: null,
    first: null,
    last: null,
  };

  test('is one empty period for a time without points, and no day and no trip', async () => {
    const window = { from: iso(NOW_MS - DAY_MS), to: iso(NOW_MS) };
    const query = `from=${window.from}&to=${window.to}`;
    assert.deepEqual((await get(`?${query}`, SILENT)).body.data, [{ ...window, ...NOTHING }]);
    assert.deepEqual((await get('', SILENT)).body.data, [{ from: null, to: null, ...NOTHING }]);
    assert.deepEqual((await get('?from=2026-10-26T13:00&to=2026-10-26T12:59')).body.data[0].points, 0);
    for (const by of ['day', 'trip'])
      assert.deepEqual((await get(`?by=${by}&${query}`, SILENT)).body.data, []);
  });

  test('refuses what it cannot read with 400, whatever the device', async () => {
    for (const [query, message] of [
      ['?by=week', 'by must be one of total, day, trip'],
      ['?tz=Rome', 'tz must be a name of the IANA time zone database, such as Europe/Rome'],
      ['?from=yesterday', 'from and to must be ISO 8601 times'],
      ['?by=day&by=day', 'a query parameter is given twice'],
    ] as const) {
      for (const imei of [VAN, FOREIGN]) {
        const { status, body } = await get(query, imei);
        assert.deepEqual([status, body.error], [400, { code: 'BAD_REQUEST', message }], query);
      }
    }
    assert.equal((await get('?by=%20&tz=')).status, 200);
    assert.equal((await get('', 'x')).body.error.code, 'BAD_REQUEST');
  });

  test('answers the same for a foreign device and for one that there is not', async () => {
    for (const imei of [FOREIGN, '350000000000009'])
      assert.equal((await get('', imei)).body.error.code, 'DEVICE_NOT_FOUND');
  });

  test('shows a reader what the plan of the reader retains', async () => {
    const from = iso(NOW_MS - 30 * DAY_MS);
    const { body } = await get('?from=2001-01-01', BASIC, basicKey);
    assert.deepEqual([body.data[0].from, body.meta.query.from, body.data[0].points], [from, from, 1]);
    assert.equal((await get('?from=2001-01-01&to=2002-01-01', BASIC, basicKey)).body.data[0].points, 0);
  });
});
