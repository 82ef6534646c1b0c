import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import geodesic from 'geographiclib-geodesic';
import { maxChordM, maxGeodesicM } from '../../src/devices/index/nearestHits.ts';
import { runs } from '../support/torture.ts';
import { even } from './shapes.ts';

test('chords and geodesics between any two positions are within the bounds that each sets for the other', () => {
  const lat = fc.oneof(even(-90, 90), fc.constantFrom(-90, 0, 90));
  const azimuth = fc.oneof(even(-180, 180), fc.constantFrom(0, 90));
  const lengthM = fc.oneof(
    even(0, 20_100_000),
    even(19_900_000, 20_003_931),
    even(0, 7.3).map((exponent) => 10 ** exponent),
  );
  fc.assert(
    fc.property(lat, azimuth, lengthM, (lat, azimuth, lengthM) => {
      const { lat2 = 0, lon2 = 0 } = geodesic.Geodesic.WGS84.Direct(lat, 0, azimuth, lengthM);
      const { s12 = 0 } = geodesic.Geodesic.WGS84.Inverse(lat, 0, lat2, lon2);
      const chordM = Math.hypot(...ecefM(lat, 0).map((x, axis) => x - (ecefM(lat2, lon2)[axis] as number)));
      assert.ok(chordM <= maxChordM(s12) + 1e-7, `${chordM} at ${s12}`);
      assert.ok(s12 <= maxGeodesicM(chordM) + 2e-8 + 1e-12 * s12, `${s12} at ${chordM}`);
    }),
    { seed: 1, numRuns: runs(2_500) },
  );
});

test('on the equator the longest chord is at most 0.4 % too long', () => {
  for (let lengthM = 1000; lengthM <= 19_900_000; lengthM += 1000) {
    const longerChordM = 2 * 6378137 * Math.sin((1.004 * lengthM) / (2 * 6378137));
    assert.ok(longerChordM > maxChordM(lengthM), `${lengthM}`);
  }
});

test('the upper bound of a geodesic is within a millimetre nearby, and never below its chord', () => {
  for (let chordM = 0; chordM <= 10_000; chordM += 10) {
    const overM = maxGeodesicM(chordM) - chordM;
    assert.ok(overM >= 0 && overM < 0.00105, `${overM} at ${chordM}`);
  }
  assert.equal(maxGeodesicM(2 * 6_335_439.4), Infinity);
});

function ecefM(lat: number, lng: number): [number, number, number] {
  const [phi, lambda, e2] = [(lat * Math.PI) / 180, (lng * Math.PI) / 180, 0.0066943799901413165];
  const n = 6378137 / Math.sqrt(1 - e2 * Math.sin(phi) ** 2);
  const axis = n * Math.cos(phi);
  return [axis * Math.cos(lambda), axis * Math.sin(lambda), n * (1 - e2) * Math.sin(phi)];
}
