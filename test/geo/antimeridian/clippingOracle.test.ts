import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { intersection } from 'polyclip-ts';
import polygonClipping from 'polygon-clipping';
import { clipRing } from '../../../bench/contenders/compareRings.ts';
import { cutRing } from '../../../src/geo/antimeridianCut.ts';
import { doublePlanarArea, unwrapRing } from '../../../src/geo/path.ts';
import type { LatLng } from '../../../src/geo/wgs84.ts';
import { runs } from '../../support/torture.ts';
import { hardRings, starRings } from '../shapes.ts';

const TOLERANCE_DEG2 = 1e-9;

for (const [name, intersect] of [
  ['polyclip-ts', intersection],
  ['polygon-clipping', polygonClipping.intersection],
] as const) {
  test(`cutRing covers the same areas east and west of 180° as the intersections of ${name}`, () => {
    let cut = 0;
    fc.assert(
      fc.property(fc.oneof(starRings(40), hardRings), (points) => {
        const ring = unwrapRing(points);
        fc.pre(ring.pole === null && ring.turns === 0);
        const parts = cutRing(ring);
        if (parts.length > 1) cut++;
        const [east, west] = areas(parts);
        const [expectedEast, expectedWest] = areas(clipRing(intersect, ring));
        assert.ok(Math.abs(east - expectedEast) <= TOLERANCE_DEG2, `${east} instead of ${expectedEast}`);
        assert.ok(Math.abs(west - expectedWest) <= TOLERANCE_DEG2, `${west} instead of ${expectedWest}`);
      }),
      { seed: 31, numRuns: runs(100), endOnFailure: true },
    );
    assert.ok(cut >= 15, `only ${cut} rings crossed 180°`);
  });
}

/** Square degrees of the parts in the eastern and in the western hemisphere. */
function areas(parts: readonly (readonly LatLng[])[]): [east: number, west: number] {
  let [east, west] = [0, 0];
  for (const part of parts) {
    const closed = [...part, part[0]!];
    const area =
      doublePlanarArea(
        closed.map(({ lng }) => lng),
        closed.map(({ lat }) => lat),
      ) / 2;
    if (part.reduce((sum, { lng }) => sum + lng, 0) > 0) east += Math.abs(area);
    else west += Math.abs(area);
  }
  return [east, west];
}
