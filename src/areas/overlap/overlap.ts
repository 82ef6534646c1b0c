import type { Steps } from '../../base/workTurns.ts';
import { circleMeasures, ringAreaM2 } from '../../geometry/ring/measure.ts';
import { type Ring, unwrapRing } from '../../geometry/ring/ring.ts';
import { type AreaGeometry, toLatLngs } from '../area.ts';
import { clipOverlapM2 } from './clipOverlap.ts';
import { discSlices } from './discSlices.ts';
import type { Slices } from './intervals.ts';
import { ringSlices } from './ringSlices.ts';
import { sliceOverlapM2 } from './sliceOverlap.ts';
import { trackSlices } from './trackSlices.ts';

/** Vertices of two polygons that polygon-clipping intersects within a few milliseconds; it cannot be interrupted. */
const CLIPPED_VERTICES_MAX = 1_000;

/** An area prepared to be compared with many others. */
export interface Outline {
  readonly areaM2: number;
  /** Of polygons. */
  readonly ring: Ring | null;
  /** New at each call: slices are read from south to north, once. */
  slices(): Slices;
}

/** An area's outline. For a track, whose area is measured in slices, a few milliseconds; hence in steps. */
export function* outlineOf(geometry: AreaGeometry): Steps<Outline> {
  switch (geometry.type) {
    case 'circle':
    case 'point': {
      const { areaM2 } = circleMeasures(geometry.center.lat, geometry.radiusM);
      return { areaM2, ring: null, slices: () => discSlices(geometry) };
    }
    case 'polygon': {
      const ring = unwrapRing(toLatLngs(geometry.points));
      return { areaM2: ringAreaM2(ring), ring, slices: () => ringSlices(ring) };
    }
    case 'polyline': {
      const slices = () => trackSlices(geometry);
      return { areaM2: yield* sliceOverlapM2(slices(), slices()), ring: null, slices };
    }
  }
}

/**
 * The area in square metres that two areas have in common. Polygons are intersected by polygon-clipping. Everything
 * else is measured in slices, and so are very long polygons and those that polygon-clipping cannot intersect. Never
 * more than the smaller of the two.
 */
export function* overlapM2(a: Outline, b: Outline): Steps<number> {
  const clipped = a.ring !== null && b.ring !== null ? clippedM2(a.ring, b.ring) : null;
  const areaM2 = clipped ?? (yield* sliceOverlapM2(a.slices(), b.slices()));
  return Math.min(areaM2, a.areaM2, b.areaM2);
}

function clippedM2(a: Ring, b: Ring): number | null {
  return a.lngs.length + b.lngs.length <= CLIPPED_VERTICES_MAX ? clipOverlapM2(a, b) : null;
}
