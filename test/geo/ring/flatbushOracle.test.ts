import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FlatbushEdges } from '../../../bench/contenders/flatbushEdges.ts';
import { buildRingIndex } from '../../../src/geo/edgeIndex.ts';
import { nearestEdgeM } from '../../../src/geo/nearestEdge.ts';
import { unwrapRing } from '../../../src/geo/path.ts';
import { ringSide } from '../../../src/geo/ringSide.ts';
import { runs } from '../../support/torture.ts';
import { starRings, wrapLng } from '../shapes.ts';

/** What both promise of a distance: a millimetre, and 1e-5 of it. */
const TOLERANCE_M = 1e-3;
const TOLERANCE_SHARE = 1e-5;

test('containment and the nearest edge are those of the edges that Flatbush finds', () => {
  const offset = fc.double({ min: -1, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      starRings(300).filter((points) => widthOf(points.map(({ lat }) => lat)) < 1),
      fc.array(fc.tuple(offset, offset), { minLength: 10, maxLength: 20 }),
      (points, offsets) => {
        const ring = unwrapRing(points);
        const ours = buildRingIndex(ring);
        const flatbush = new FlatbushEdges(ring);
        const beside = offsets.map(([y, x]) => ({
          lat: points[0]!.lat + 0.5 * y,
          lng: wrapLng(points[0]!.lng + 0.5 * x),
        }));
        for (const { lat, lng } of [...points.slice(0, 5), ...beside]) {
          assert.equal(ringSide(ours, lat, lng) !== 'out', flatbush.contains(lat, lng));
          const [foundM, expectedM] = [nearestEdgeM(ours.edges, lat, lng), flatbush.nearestM(lat, lng)];
          const allowedM = TOLERANCE_M + TOLERANCE_SHARE * expectedM;
          assert.ok(Math.abs(foundM - expectedM) <= allowedM, `${foundM} instead of ${expectedM}`);
        }
      },
    ),
    { seed: 32, numRuns: runs(100), endOnFailure: true },
  );
});

const widthOf = (values: readonly number[]): number => Math.max(...values) - Math.min(...values);
