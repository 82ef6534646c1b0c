import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { OpenPeriod } from '../../../src/history/summary/calendarLedger.ts';
import { LocalDays } from '../../../src/history/summary/localDays.ts';
import type { TrackPoint } from '../../../src/history/summary/motionWalk.ts';
import { Summary, type SummaryPeriods } from '../../../src/history/summary/summary.ts';
import { HOUR_MS } from '../../../src/lib/time.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { readTraces } from '../../support/ingest/readTraces.ts';
import { skipWithoutData } from '../../support/ingest/recordings.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';
import { naivePeriod, naiveTrips } from './naiveSummary.ts';

const START_MS = Date.UTC(2026, 2, 28, 21);
/** Of latitude, at the equator. */
const M_PER_DEGREE = 110_574.3;

function summarize(
  track: readonly TrackPoint[],
  by: SummaryPeriods,
  { zone = 'UTC', fromMs = START_MS, toMs = START_MS + 1_000 * HOUR_MS, pagePoints = 7 } = {},
): readonly OpenPeriod[] {
  const days = LocalDays.of(zone) as LocalDays;
  const summary = new Summary({ by, days, fromMs, toMs });
  for (let at = 0; at < track.length; at += pagePoints) {
    const page = track.slice(at, at + pagePoints);
    inOneGo(
      summary.take({
        count: page.length,
        recordedAtMs: page.map((point) => point.recordedAtMs),
        lats: page.map((point) => point.lat),
        lngs: page.map((point) => point.lng),
        speedsKmh: page.map((point) => point.speedKmh),
      }),
    );
  }
  return summary.finish() as OpenPeriod[]; // the window says both ends
}

/** What stands in a table: seconds after the start, metres to the north, km/h. */
type Row = readonly [seconds: number, northM: number, speedKmh: number];

const trackOf = (rows: readonly Row[]): TrackPoint[] =>
  rows.map(([seconds, northM, speedKmh]) => ({
    recordedAtMs: START_MS + seconds * 1_000,
    lat: northM / M_PER_DEGREE,
    lng: 12,
    speedKmh,
  }));

/** A row every `stepSeconds`, from one time on and before another, at a place that moves with the speed. */
function rows(
  fromSeconds: number,
  toSeconds: number,
  stepSeconds: number,
  speedKmh: number,
  fromM: number,
): Row[] {
  const count = Math.ceil((toSeconds - fromSeconds) / stepSeconds);
  return Array.from({ length: count }, (_, n) => [
    fromSeconds + n * stepSeconds,
    fromM + (n * stepSeconds * speedKmh) / 3.6,
    speedKmh,
  ]);
}

/** What a track is, and in one line: the total, and begin and end of each trip in seconds. */
const CASES: readonly [name: string, rows: readonly Row[], says: string][] = [
  ['nothing', [], '0.00 km, 0 s moving, 0 parked, 0 gap'],
  ['a drive', rows(0, 601, 10, 36, 0), '6.00 km, 600 s moving, 0 parked, 0 gap, trip 0-600'],
  [
    'a drive between two parkings, from the last point of one to the first of the other',
    [...rows(0, 300, 10, 0, 0), ...rows(300, 600, 10, 36, 100), ...rows(600, 901, 10, 0, 3_100)],
    '3.10 km, 310 s moving, 590 parked, 0 gap, trip 290-600',
  ],
  [
    'a stand of 120 s, which is a parking',
    [...rows(0, 100, 10, 36, 0), ...rows(100, 221, 10, 0, 1_000), ...rows(230, 331, 10, 36, 1_100)],
    '2.10 km, 210 s moving, 120 parked, 0 gap, trip 0-100, trip 220-330',
  ],
  [
    'a stand of 119 s, which is none',
    [
      ...rows(0, 100, 10, 36, 0),
      ...rows(100, 211, 10, 0, 1_000),
      [219, 1_000, 0],
      ...rows(229, 330, 10, 36, 1_100),
    ],
    '2.10 km, 329 s moving, 0 parked, 0 gap, trip 0-329',
  ],
  ['slow points only', rows(0, 61, 10, 4.9, 0), '0.00 km, 0 s moving, 60 parked, 0 gap'],
  [
    'exactly 5 km/h, which is fast',
    rows(0, 601, 10, 5, 0),
    '0.83 km, 600 s moving, 0 parked, 0 gap, trip 0-600',
  ],
  [
    'fast points at the place where the vehicle stands, which are noise',
    [...rows(0, 300, 10, 0, 0), [300, 40, 20], [310, -40, 30], ...rows(320, 601, 10, 0, 10)],
    '0.00 km, 0 s moving, 600 parked, 0 gap',
  ],
  [
    'a departure that begins near the place of the parking',
    [...rows(0, 300, 10, 0, 0), [300, 20, 10], [310, 45, 10], [320, 145, 36], [330, 245, 36]],
    '0.24 km, 40 s moving, 290 parked, 0 gap, trip 290-330',
  ],
  [
    'exactly ten minutes without a point, which are no gap',
    [...rows(0, 101, 10, 36, 0), ...rows(700, 801, 10, 36, 7_000)],
    '8.00 km, 800 s moving, 0 parked, 0 gap, trip 0-800',
  ],
  [
    'a gap in a trip, which is neither moving nor parked nor a way',
    [...rows(0, 101, 10, 36, 0), ...rows(701, 802, 10, 36, 7_000)],
    '2.00 km, 200 s moving, 0 parked, 601 gap, trip 0-801',
  ],
  [
    'a gap in a parking',
    [...rows(0, 101, 10, 0, 0), ...rows(4_000, 4_101, 10, 0, 3_000), [4_110, 3_040, 9], [4_120, 3_000, 0]],
    '0.00 km, 0 s moving, 220 parked, 3900 gap',
  ],
  [
    'gaps at both ends of a trip, which do not belong to it',
    [...rows(0, 201, 10, 0, 0), ...rows(1_000, 1_101, 10, 36, 5_000), ...rows(2_000, 2_201, 10, 0, 9_000)],
    '1.00 km, 100 s moving, 400 parked, 1700 gap, trip 1000-1100',
  ],
  [
    'a fast point between gaps, which is no trip',
    [...rows(0, 201, 10, 0, 0), [1_000, 5_000, 40], ...rows(2_000, 2_201, 10, 0, 9_000)],
    '0.00 km, 0 s moving, 400 parked, 1800 gap',
  ],
];

describe('the summary of a track', () => {
  for (const [name, of, says] of CASES) {
    test(`counts ${name}`, () => {
      const track = trackOf(of);
      const [{ distanceM, movingMs, parkedMs, gapMs }] = summarize(track, 'total') as [OpenPeriod];
      const [moving, parked, gap] = [movingMs, parkedMs, gapMs].map((ms) => ms / 1_000);
      const trips = summarize(track, 'trip').map(
        ({ fromMs, toMs }) => `, trip ${(fromMs - START_MS) / 1_000}-${(toMs - START_MS) / 1_000}`,
      );
      const total = `${(distanceM / 1_000).toFixed(2)} km, ${moving} s moving, ${parked} parked, ${gap} gap`;
      assert.equal(total + trips.join(''), says);
    });
  }

  test('is 0 km for a day of a parked vehicle with the noise of its receiver', () => {
    const random = seededRandom(7);
    const noiseM = () => 6 * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const track: TrackPoint[] = [];
    for (let seconds = 0; seconds <= 86_400; seconds += 10) {
      const [northM, eastM] = [noiseM(), noiseM()];
      const point = { lat: 45 + northM / M_PER_DEGREE, lng: 9 + eastM / M_PER_DEGREE / Math.SQRT1_2 };
      const before = track.at(-1);
      // As ingest derives it from two positions.
      const metres =
        before === undefined ? 0 : Math.hypot(point.lat - before.lat, point.lng - before.lng) * M_PER_DEGREE;
      track.push({ recordedAtMs: START_MS + seconds * 1_000, ...point, speedKmh: (metres / 10) * 3.6 });
    }
    assert.ok(track.filter(({ speedKmh }) => speedKmh >= 5).length > 500, 'many points look fast');
    const [total] = summarize(track, 'total') as [OpenPeriod];
    assert.deepEqual([total.distanceM, total.movingMs, total.parkedMs], [0, 0, 86_400_000]);
    assert.deepEqual(summarize(track, 'trip'), []);
  });

  test('measures a track over 180° the short way', () => {
    const track = [179.98, 179.99, -180, -179.99].map((lng, n) => ({
      ...{ recordedAtMs: START_MS + n * 60_000, lat: 0, lng, speedKmh: 60 },
    }));
    const [total] = summarize(track, 'total') as [OpenPeriod];
    assert.equal(Math.round(total.distanceM), 3_340);
  });

  test('divides an interval over midnight by time, and says days without points between others', () => {
    const track = trackOf([...rows(0, 9_001, 10, 36, 0), ...rows(3 * 86_400, 3 * 86_400 + 101, 10, 36, 0)]);
    const days = summarize(track, 'day', { zone: 'Europe/Rome' });
    assert.deepEqual(
      days.map(({ fromMs, points, gapMs }) => [new Date(fromMs).toISOString(), points, gapMs / 1_000]),
      [
        ['2026-03-28T21:00:00.000Z', 720, 0],
        ['2026-03-28T23:00:00.000Z', 181, 23 * 3_600 - 1_800],
        ['2026-03-29T22:00:00.000Z', 0, 86_400],
        ['2026-03-30T22:00:00.000Z', 11, 82_800],
      ],
    );
    assert.deepEqual(
      days.map(({ distanceM }) => Math.round(distanceM)),
      [72_000, 18_000, 0, 1_000],
    );
  });
});

/** Drives, stands, gaps and noise in any order. */
const ANY_TRACK = fc
  .array(
    fc.record({
      stepMs: fc.constantFrom(1, 1e3, 1e4, 3e4, 6e4, 119_999, 120_000, 600_000, 600_001, 4e7),
      northM: fc.constantFrom(0, 0, 5, -20, 45, 60, 300, -1_000),
      eastM: fc.constantFrom(0, 0, 0, 30, -51),
      speedKmh: fc.constantFrom(0, 0, 0, 4.9, 5, 30, 30, 130),
    }),
    { maxLength: 60 },
  )
  .map((steps) => {
    let at = { recordedAtMs: START_MS, lat: 44, lng: 179.999, speedKmh: 0 };
    return steps.map(({ stepMs, northM, eastM, speedKmh }): TrackPoint => {
      const lng = at.lng + eastM / 80_000;
      at = {
        recordedAtMs: at.recordedAtMs + stepMs,
        lat: at.lat + northM / M_PER_DEGREE,
        lng: lng > 180 ? lng - 360 : lng,
        speedKmh,
      };
      return at;
    });
  });

const ZONES = ['UTC', 'Europe/Rome', 'Asia/Kathmandu', 'Africa/Cairo', 'Pacific/Kiritimati'];

/** Sums of the same numbers in another order. */
const rounded = (period: object): object =>
  JSON.parse(
    JSON.stringify(period, (_, value) => (typeof value === 'number' ? Math.round(value * 1e3) / 1e3 : value)),
  );

describe('on any track', () => {
  const options = { numRuns: runs(150) };

  test('totals, days and trips are those of a naive replay, however the track is cut into pages', () => {
    fc.assert(
      fc.property(
        ANY_TRACK,
        fc.constantFrom(...ZONES),
        fc.integer({ min: 1, max: 61 }),
        (track, zone, pagePoints) => {
          const [total] = summarize(track, 'total', { pagePoints }) as [OpenPeriod];
          const { fromMs, toMs, ...sums } = total;
          assert.deepEqual(rounded(sums), rounded(naivePeriod(track, fromMs, toMs)));
          assert.deepEqual(
            summarize(track, 'trip', { pagePoints }).map(rounded),
            naiveTrips(track).map(rounded),
          );
          const days = summarize(track, 'day', { zone, pagePoints });
          let daysMs = 0;
          for (const { fromMs, toMs, ...sums } of days) {
            assert.deepEqual(rounded(sums), rounded(naivePeriod(track, fromMs, toMs)));
            daysMs += sums.movingMs + sums.parkedMs + sums.gapMs;
          }
          assert.equal(daysMs, (track.at(-1)?.recordedAtMs ?? 0) - (track[0]?.recordedAtMs ?? 0));
        },
      ),
      options,
    );
  });
});

describe('runs of points', () => {
  test('add up to the same bits as the points one by one', () => {
    fc.assert(
      fc.property(
        ANY_TRACK,
        fc.constantFrom<SummaryPeriods>('total', 'day', 'trip'),
        fc.integer({ min: 2, max: 61 }),
        (track, by, pagePoints) => {
          const asked = { zone: 'Europe/Rome', pagePoints };
          assert.deepEqual(summarize(track, by, asked), summarize(track, by, { ...asked, pagePoints: 1 }));
        },
      ),
      { numRuns: runs(300) },
    );
  });
});

describe('on recorded tracks', { skip: skipWithoutData }, () => {
  test('the summary is that of a naive replay', async () => {
    const tracks = await readTraces(START_MS);
    assert.ok(tracks.length >= 20);
    for (const track of tracks.slice(0, runs(3))) {
      const fromMs = track[0]?.recordedAtMs ?? 0;
      const toMs = (track.at(-1)?.recordedAtMs ?? 0) + 1;
      const [total] = summarize(track, 'total', { fromMs, toMs, pagePoints: 1_000 }) as [OpenPeriod];
      const { fromMs: _, toMs: __, ...sums } = total;
      assert.deepEqual(rounded(sums), rounded(naivePeriod(track, fromMs, toMs)));
      assert.deepEqual(summarize(track, 'trip').map(rounded), naiveTrips(track).map(rounded));
      for (const by of ['total', 'day'] as const)
        assert.deepEqual(
          summarize(track, by, { pagePoints: 1_000 }),
          summarize(track, by, { pagePoints: 1 }),
        );
    }
  });
});
