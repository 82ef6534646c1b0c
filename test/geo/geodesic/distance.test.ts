import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import geodesic from 'geographiclib-geodesic';
import { distanceM } from '../../../src/geo/wgs84.ts';
import { runs } from '../../support/torture.ts';
import { even } from '../shapes.ts';

type Pair = readonly [latA: number, lngA: number, latB: number, lngB: number];

/** Metres as computed by GeographicLib 2.2; 0 means exactly 0. */
const hardCases: readonly (readonly [name: string, ...pair: Pair, expectedM: number])[] = [
  ['equal positions', 12.3, 45.6, 12.3, 45.6, 0],
  ['one pole, two longitudes', 90, 10, 90, -120, 0],
  ['one meridian, two names', -16.5, 180, -16.5, -180, 0],
  ['Madrid to Mexico City', 40.4168, -3.7038, 19.4326, -99.1332, 9076988.261495505],
  ['two ends of a vehicle', 52.52, 13.405, 52.52004, 13.40507, 6.510720400971402],
  ['a tenth of a millimetre along a meridian', 48, 11, 48.000000001, 11, 0.0001111895433222955],
  ['a tenth of a millimetre over 180°', -17, 179.9999999996, -17, -179.9999999995, 0.00009583744477163539],
  ['over 180°', -16.5, 179.9, -16.6, -179.9, 24045.265393659734],
  ['pole to pole', -90, 0, 90, 0, 20003931.458625447],
  ['pole to equator', 90, 0, 0, 0, 10001965.729312724],
  ['over the pole', 89, 10, 89, -170, 223387.72982839972],
  ['next to a pole', 89.9999999, 0, 89.9999999, 120, 0.0193459636010622],
  ['a quarter of the equator', 0, 0, 0, 90, 10018754.171394622],
  ['equator, up to where it is the shortest way', 0, 0, 0, 179.3966, 19970338.16101162],
  ['equator, just beyond it', 0, 0, 0, 179.4, 19970715.516595997],
  ['antipodes on the equator', 0, 0, 0, 180, 20003931.458625447],
  ['antipodes at 30°', 30, 0, -30, 180, 20003931.458625447],
  ['antipodes over 180°', -41.3, 174.8, 41.3, -5.2, 20003931.458625447],
  ["no convergence in Vincenty's iteration", 0, 0, 0.5, 179.5, 19936288.578965314],
  ["no solution in Vincenty's iteration", 0, 0, 0.5, 179.7, 19944127.420750458],
  ['a metre off the antipode', 30, 0, -29.99999, 179.99999, 20003930.35009179],
  ['a nanodegree off the antipode', 45, -100, -45.000000001, 80.000000001, 20003931.458514318],
  ['nearly antipodal, both north of the equator', 0.1, 0, 0.2, 179.8, 19968298.316691108],
  [
    'nearly antipodal, a centimetre off the equator',
    7.416574602699068e-7,
    0,
    -2.2047832374369718e-11,
    179.99999999995958,
    20003931.37661965,
  ],
  [
    'nearly antipodal, a nanometre off the pole',
    89.99999999999997,
    169,
    -89.99999928913036,
    -10.3,
    20003931.37922559,
  ],
  ['nearly antipodal at the poles', 89.999999, 17, -89.9999999, -60, 20003931.343901526],
  ['2.5° off the antipode', 20, 20, -18, -158.5, 19740749.877496477],
];

describe('distanceM in hard cases', () => {
  for (const [name, latA, lngA, latB, lngB, expectedM] of hardCases) {
    test(`distance: ${name}`, () => {
      const actualM = distanceM(latA, lngA, latB, lngB);
      if (expectedM === 0) assert.equal(actualM, 0);
      else assertClose(actualM, expectedM);
    });
  }
});

describe('distanceM for any two positions', () => {
  test('is within 1e-9 of GeographicLib', () => {
    check((a, b, c, d) => assertClose(distanceM(a, b, c, d), geographicLibM(a, b, c, d)));
  });

  test('is the same number in both directions', () => {
    check((latA, lngA, latB, lngB) => {
      assert.equal(distanceM(latA, lngA, latB, lngB), distanceM(latB, lngB, latA, lngA));
    });
  });

  test('is the same number from a pole to every longitude of a parallel', () => {
    for (let n = 0; n < runs(2_000); n++) {
      const lat = n % 5 === 0 ? 90 - 10 ** (-n / 200) : (180 * n) / runs(2_000) - 90;
      for (const pole of [90, -90]) {
        const lengthM = distanceM(pole, 0, lat, 0);
        for (const lng of [7 + n / 17, -123.4, 180])
          assert.equal(distanceM(lat, lng, pole, n % 360), lengthM, `${pole} ${lat} ${lng}`);
      }
    }
  });

  test('is 0 from a position to itself', () => {
    check((latA, lngA) => assert.equal(distanceM(latA, lngA, latA, lngA), 0));
  });

  test('is the same for longitudes that differ by whole turns', () => {
    check((latA, lngA, latB, lngB) => {
      const expectedM = distanceM(latA, lngA, latB, lngB);
      assertClose(distanceM(latA, lngA + 360, latB, lngB), expectedM);
      assertClose(distanceM(latA, lngA, latB, lngB - 720), expectedM);
    });
  });

  test('keeps nine digits of less than a decimetre, also over 180°', () => {
    const offset = fc.oneof(even(-1e-6, 1e-6), even(-1e-9, 1e-9));
    const position = fc.tuple(degrees(89), fc.oneof(degrees(179), fc.constant(180)), offset, offset);
    fc.assert(
      fc.property(position, ([lat, lng, dLat, dLng]) => {
        const otherLat = lat + dLat;
        const otherLng = lng + dLng > 180 ? dLng - 180 : lng + dLng;
        const lngGap = otherLng < -179 && lng === 180 ? otherLng + 180 : otherLng - lng;
        const expectedM = lineElementM(lat, otherLat, lngGap);
        const actualM = distanceM(lat, lng, otherLat, otherLng);
        assert.ok(
          Math.abs(actualM - expectedM) <= 1e-9 * expectedM + 1e-100,
          `${actualM} instead of ${expectedM}`,
        );
      }),
      { seed: 3, numRuns: runs(750) },
    );
  });
});

function degrees(limit: number): fc.Arbitrary<number> {
  return fc.oneof(
    even(-limit, limit),
    fc.integer({ min: -limit, max: limit }),
    fc.double({ min: -1, max: 1, noNaN: true }),
  );
}

/** From degrees down to 1e-14, each size as likely as the next. */
const smallAngle = fc
  .tuple(even(-14, 1), fc.constantFrom(-1, 0, 1))
  .map(([exponent, sign]) => sign * 10 ** exponent);

const clampLat = (lat: number): number => Math.max(-90, Math.min(90, lat));
const lat = fc.oneof(
  degrees(90),
  smallAngle.map((gap) => 90 - Math.abs(gap)),
  smallAngle.map((gap) => Math.abs(gap) - 90),
);
const lng = degrees(180);

const pair: fc.Arbitrary<Pair> = fc
  .record({
    lat,
    lng,
    otherLat: lat,
    otherLng: lng,
    dLat: smallAngle,
    dLng: smallAngle,
    kind: fc.constantFrom('any', 'near', 'meridional', 'equatorial', 'antipodal', 'over a pole'),
  })
  .map(({ lat, lng, otherLat, otherLng, dLat, dLng, kind }): Pair => {
    if (kind === 'near') return [lat, lng, clampLat(lat + dLat), lng + dLng];
    if (kind === 'meridional') return [lat, lng, otherLat, lng];
    if (kind === 'equatorial') return [0, lng, 0, otherLng];
    if (kind === 'antipodal') return [lat, lng, clampLat(dLat - lat), lng + 180 + dLng];
    if (kind === 'over a pole') return [lat, lng, otherLat, lng + 180];
    return [lat, lng, otherLat, otherLng];
  });

function check(promise: (...pair: Pair) => void): void {
  fc.assert(
    fc.property(pair, (pair) => promise(...pair)),
    { seed: 1, numRuns: runs(1_250) },
  );
}

function geographicLibM(...[latA, lngA, latB, lngB]: Pair): number {
  return geodesic.Geodesic.WGS84.Inverse(latA, lngA, latB, lngB).s12 as number;
}

/** 1e-9 of the length, and the 15 nm that GeographicLib itself may be off. */
function assertClose(actualM: number, expectedM: number): void {
  const toleranceM = 1e-9 * expectedM + 15e-9;
  assert.ok(Math.abs(actualM - expectedM) <= toleranceM, `${actualM} instead of ${expectedM}`);
}

/** The length of a step too short to bend: ds² = M² dlat² + N² cos²lat dlng², taken half way. */
function lineElementM(latA: number, latB: number, lngGap: number): number {
  const [a, f, degree] = [6378137, 1 / 298.257223563, Math.PI / 180];
  const middle = ((latA + latB) / 2) * degree;
  const w = 1 - f * (2 - f) * Math.sin(middle) ** 2;
  const northM = ((a * (1 - f) ** 2) / w ** 1.5) * (latB - latA) * degree;
  const eastM = (a / Math.sqrt(w)) * Math.cos(middle) * lngGap * degree;
  return Math.hypot(northM, eastM);
}
