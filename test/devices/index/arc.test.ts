import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arcExcessSlope, arcM, chordOfArc } from '../../../src/devices/index/farSearch.ts';
import { STEPS_PER_M } from '../../../src/devices/index/trie.ts';
import { distanceM, writeSurfacePoint } from '../../../src/geo/wgs84.ts';
import { seededRandom } from '../../support/seededRandom.ts';

const FROM_STEPS = 300_000 * STEPS_PER_M;

function chordSteps(latA: number, lngA: number, latB: number, lngB: number): number {
  const ends = new Float64Array(6);
  writeSurfacePoint(latA, lngA, ends, 0);
  writeSurfacePoint(latB, lngB, ends, 3);
  const [x = 0, y = 0, z = 0, u = 0, v = 0, w = 0] = ends;
  return Math.hypot(x - u, y - v, z - w) * STEPS_PER_M;
}

test('arcM and chordOfArc are inverse to each other', () => {
  for (let chord = 0; chord < 2 * 6_371_000 * STEPS_PER_M; chord += 123_456_789) {
    assert.ok(Math.abs(chordOfArc(arcM(chord)) - chord) <= 1e-6 * chord);
  }
  assert.equal(chordOfArc(Infinity), Infinity);
  assert.equal(chordOfArc(21_000_000), Infinity);
});

test('the excess of a geodesic over its arc changes no faster than arcExcessSlope, when one end moves', () => {
  const random = seededRandom(9);
  const even = (size: number) => size * (random() - 0.5);
  let tightest = 0;
  for (let n = 0; n < 150_000; n++) {
    const [latA, latB, lngB] = [even(180), even(179), even(360)];
    const chord = chordSteps(latA, 0, latB, lngB);
    const stepsLat = Math.min(90, latB + even(0.05));
    const stepsLng = lngB + even(0.05) / Math.cos((latB * Math.PI) / 180);
    const movedM = distanceM(latB, lngB, stepsLat, stepsLng);
    const slope = arcExcessSlope(chord + movedM * STEPS_PER_M);
    if (chord < FROM_STEPS || slope === Infinity || movedM < 100) continue;
    const excessM = distanceM(latA, 0, latB, lngB) - arcM(chord);
    const movedExcessM =
      distanceM(latA, 0, stepsLat, stepsLng) - arcM(chordSteps(latA, 0, stepsLat, stepsLng));
    const change = Math.abs(movedExcessM - excessM) / movedM;
    assert.ok(change <= slope, `${change} > ${slope} from ${latA}, 0 to ${latB}, ${lngB}`);
    tightest = Math.max(tightest, change / slope);
  }
  assert.ok(tightest > 0.4 && tightest < 0.55, `${tightest} of what is allowed for`);
});

test('arcExcessSlope is infinite around the antipode', () => {
  assert.equal(arcExcessSlope(2 * 6_371_000 * STEPS_PER_M), Infinity);
  assert.ok(arcExcessSlope(chordSteps(0, 0, 0, 155)) < Infinity);
});
