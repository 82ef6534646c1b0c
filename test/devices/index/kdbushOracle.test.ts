import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { distance } from 'geokdbush';
import { KdbushPositions, OVER_FETCH } from '../../../bench/contenders/comparePositions.ts';
import type { NearHit } from '../../../src/devices/index/nearestHits.ts';
import { PositionIndex } from '../../../src/devices/index/positionIndex.ts';
import { wrapLng } from '../../geo/shapes.ts';
import { runs } from '../../support/torture.ts';

type Position = readonly [lat: number, lng: number];

/** The great circle of geokdbush's sphere differs from the geodesic by at most this share. */
const SPHERE_ERROR = 0.006;
/** The sphere's distance of two names of a pole is not quite 0. */
const ROUNDING_M = 1e-3;

const unit = fc.integer({ min: -1e6, max: 1e6 }).map((n) => n / 1e6);
const anywhere = fc
  .tuple(unit, unit)
  .map(([u, v]): Position => [(Math.asin(u) * 180) / Math.PI, wrapLng(180 * v)]);
const around = ([lat, lng]: Position, sizeDeg: number) =>
  fc
    .tuple(unit, unit)
    .map(([u, v]): Position => [Math.max(-90, Math.min(90, lat + sizeDeg * u)), wrapLng(lng + sizeDeg * v)]);

const spreads: readonly (readonly [name: string, position: fc.Arbitrary<Position>])[] = [
  ['all over the globe', anywhere],
  ['in a few crowded towns', fc.oneof(around([41.9, 12.5], 0.1), around([-33.9, 151.2], 0.01), anywhere)],
  [
    'around both poles',
    fc.oneof(around([90, 0], 3), around([-90, 40], 0.5), fc.constant<Position>([90, 20])),
  ],
  [
    'on both sides of 180°',
    fc.oneof(around([-17, 180], 1), around([64, -180], 0.01), fc.constant<Position>([0, 180])),
  ],
];

describe('near finds the same devices as geokdbush with its answers ranked by geodesics', () => {
  for (const [name, position] of spreads) {
    test(`for devices ${name}`, () => {
      const devices = fc.array(position, { minLength: 2, maxLength: 400, size: 'max' });
      const questions = fc.array(fc.oneof(position, anywhere), { minLength: 5, maxLength: 10 });
      fc.assert(
        fc.property(devices, questions, fc.integer({ min: 1, max: 60 }), (all, places, limit) => {
          const ours = new PositionIndex();
          for (const [slot, [lat, lng]] of all.entries()) ours.put(slot, lat, lng);
          const kdbush = new KdbushPositions(Float64Array.from(all.flat()));
          for (const place of places) {
            assert.deepEqual(ours.near(...place, limit), nearest(kdbush, all, place, limit));
          }
        }),
        { seed: 30, numRuns: runs(40), endOnFailure: true },
      );
    });
  }
});

/** Fetches more until no device left out can be among the nearest. */
function nearest(
  kdbush: KdbushPositions,
  devices: readonly Position[],
  [lat, lng]: Position,
  limit: number,
): NearHit[] {
  for (let extra = OVER_FETCH; ; extra *= 2) {
    const hits = kdbush.nearestRanked(lat, lng, limit, extra);
    if (limit + extra >= devices.length) return hits;
    const farthest = devices[kdbush.nearest(lat, lng, limit + extra).at(-1)!]!;
    const farthestM = 1_000 * distance(lng, lat, farthest[1], farthest[0]);
    if (farthestM * (1 - SPHERE_ERROR) - ROUNDING_M > hits.at(-1)!.distanceM) return hits;
  }
}
