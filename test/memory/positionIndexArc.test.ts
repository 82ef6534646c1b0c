import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distanceM } from '../../src/geometry/distance.ts';
import { writeSurfacePoint } from '../../src/geometry/surfacePoint.ts';
import { arcM, chordOfArc, overArcSlope } from '../../src/memory/positionIndexArc.ts';
import { STEPS_PER_M } from '../../src/memory/positionIndexLattice.ts';
import { seededRandom } from '../support/seededRandom.ts';

const FROM_STEPS = 300_000 * STEPS_PER_M;

function chordSteps(latA: number, lngA: number, latB: number, lngB: number): number {
  const ends = new Float64Array(6);
  writeSurfacePoint(latA, lngA, ends, 0);
  writeSurfacePoint(latB, lngB, ends, 3);
  const [x = 0, y = 0, z = 0, u = 0, v = 0, w = 0] = ends;
  return Math.hypot(x - u, y - v, z - w) * STEPS_PER_M;
}

test('an arc and its chord say the same', () => {
  for (let chord = 0; chord < 2 * 6_371_000 * STEPS_PER_M; chord += 123_456_789) {
    assert.ok(Math.abs(chordOfArc(arcM(chord)) - chord) <= 1e-6 * chord);
  }
  assert.equal(chordOfArc(Infinity), Infinity);
  assert.equal(chordOfArc(21_000_000), Infinity);
});

test('moved by some metres, a geodesic changes as the arc over its chord does, but for the slope', () => {
  const random = seededRandom(9);
  const even = (size: number) => size * (random() - 0.5);
  let tightest = 0;
  for (let n = 0; n < 150_000; n++) {
    const [latA, latB, lngB] = [even(180), even(179), even(360)];
    const chord = chordSteps(latA, 0, latB, lngB);
    const stepsLat = Math.min(90, latB + even(0.05));
    const stepsLng = lngB + even(0.05) / Math.cos((latB * Math.PI) / 180);
    const movedM = distanceM(latB, lngB, stepsLat, stepsLng);
    const slope = overArcSlope(chord + movedM * STEPS_PER_M);
    if (chord < FROM_STEPS || slope === Infinity || movedM < 100) continue;
    const overArcM = distanceM(latA, 0, latB, lngB) - arcM(chord);
    const movedOverArcM =
      distanceM(latA, 0, stepsLat, stepsLng) - arcM(chordSteps(latA, 0, stepsLat, stepsLng));
    const change = Math.abs(movedOverArcM - overArcM) / movedM;
    assert.ok(change <= slope, `${change} > ${slope} from ${latA}, 0 to ${latB}, ${lngB}`);
    tightest = Math.max(tightest, change / slope);
  }
  assert.ok(tightest > 0.4 && tightest < 0.55, `${tightest} of what is allowed for`);
});

test('around the antipode it is not bounded', () => {
  assert.equal(overArcSlope(2 * 6_371_000 * STEPS_PER_M), Infinity);
  assert.ok(overArcSlope(chordSteps(0, 0, 0, 155)) < Infinity);
});
