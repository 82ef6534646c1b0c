import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { emptyColumns, type PointColumns } from '../../src/history/codec/pointColumns.ts';
import { historyPage } from '../../src/history/historyPage.ts';
import { formatIso } from '../../src/lib/time.ts';
import { runs } from '../support/torture.ts';

type Values = readonly [
  lat: number,
  lng: number,
  speed: number,
  heading: number,
  satellites: number,
  ms: number,
];

function columnsOf(points: readonly Values[]): PointColumns {
  const columns = emptyColumns(points.length);
  const order = ['lats', 'lngs', 'speedsKmh', 'headings', 'satellites', 'recordedAtMs'] as const;
  for (const [n, values] of points.entries())
    for (const [c, name] of order.entries()) columns[name][n] = values[c] as number;
  return columns;
}

/** The same by JSON.stringify, of points in the order in which they are shown. */
function naivePage(points: readonly Values[], limit: number): string {
  const data = points.map(([latitude, longitude, speed_kmh, heading, satellites, ms]) => ({
    ...{ latitude, longitude, speed_kmh, heading, satellites, recorded_at: formatIso(ms) },
  }));
  return JSON.stringify({ data, meta: { pagination: { limit, offset: 0, count: data.length } } });
}

const decimal = fc
  .tuple(fc.integer({ min: -(10 ** 9), max: 10 ** 9 }), fc.integer({ min: 0, max: 12 }))
  .map(([integer, digits]) => integer / 10 ** digits);
const odd = fc.constantFrom(
  ...[0, -0, 1e-6, 9.9e-7, 1e-7, -1e-6, 1e6, 999_999.999999999, -999_999.999999999, 0.1 + 0.2, 1 / 3, 5e-324],
  ...[1e21, 1e20, 180, -180, 1_000, 1_000.05, 10, 99, 100, 999, 1e-9, 1.000000001, 41.0000001, 2 ** 53],
);
const number = fc.oneof(odd, decimal, fc.double({ noNaN: true, noDefaultInfinity: true }));
const time = fc.oneof(
  fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
  fc.constantFrom(0, -1, 86_399_999, 86_400_000, 1_767_225_599_999.75),
);
const values = fc.tuple(number, number, number, number, number, time);

describe('a page of the history', () => {
  test('has the bytes of JSON.stringify, whatever the numbers and times are', () => {
    fc.assert(
      fc.property(
        fc.array(values, { maxLength: 20 }),
        fc.nat({ max: 20 }),
        fc.nat(),
        (points, cut, limit) => {
          const newest = points.slice(0, cut);
          const older = points.slice(cut);
          const pieces = [newest, older].map((each) => columnsOf(each.toReversed()));
          assert.equal(historyPage(pieces, limit).toString(), naivePage(points, limit));
        },
      ),
      { numRuns: runs(500) },
    );
  });

  test('is not cut where every number takes as many bytes as one can', () => {
    const widest = -2.2250738585072014e-308;
    const point: Values = [widest, widest, widest, widest, widest, 0];
    const points = Array.from({ length: 1_000 }, () => point);
    assert.equal(historyPage([columnsOf(points)], 1_000).toString(), naivePage(points, 1_000));
  });
});
