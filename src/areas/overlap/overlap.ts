import { type Bounds, circleBounds, corridorBounds } from '../../geo/bounds.ts';
import { circleMeasures, ringAreaM2 } from '../../geo/measure.ts';
import { unwrapLine } from '../../geo/path.ts';
import { type Ring, unwrapRing } from '../../geo/ring.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { type AreaGeometry, type Disc, type Track, toLatLngs } from '../area.ts';
import { clipOverlapM2 } from './clipOverlap.ts';
import { discSlices } from './discSlices.ts';
import type { Slices } from './intervals.ts';
import { type Box, isBoxInDisc, placeInDisc, placeInRing } from './placement.ts';
import { type PlanarRing, planarRing } from './planarRing.ts';
import { type RingEdges, ringEdges, ringOverlapM2 } from './ringOverlap.ts';
import { ringSlices } from './ringSlices.ts';
import { sliceOverlapM2 } from './sliceOverlap.ts';
import { trackBands } from './trackBands.ts';
import { trackSlices } from './trackSlices.ts';

/** Vertices of two polygons that polygon-clipping usually intersects within a few milliseconds. */
const CLIPPED_VERTICES_MAX = 1_000;

/** An area prepared to be compared with many others. */
export interface Outline {
  readonly areaM2: number;
  readonly box: Box;
  /** Of circles and places. */
  readonly disc: Disc | null;
  readonly track: Track | null;
  /** Of polygons. */
  readonly polygon: PolygonOutline | null;
  /** New at each call: slices are read from south to north, once. */
  slices(): Slices;
}

interface PolygonOutline {
  readonly ring: Ring;
  readonly planar: PlanarRing;
  /** Made when they are first asked for. */
  edges(): RingEdges;
}

/** An area's outline. For a track, whose area is measured in slices, a few milliseconds; hence in steps. */
export function* outlineOf(geometry: AreaGeometry): Steps<Outline> {
  switch (geometry.type) {
    case 'circle':
    case 'point': {
      const { center, radiusM } = geometry;
      const { areaM2 } = circleMeasures(center.lat, radiusM);
      const box = continuous(circleBounds(center, radiusM));
      return { areaM2, box, disc: geometry, track: null, polygon: null, slices: () => discSlices(geometry) };
    }
    case 'polygon':
      return polygonOutline(unwrapRing(toLatLngs(geometry.points)));
    case 'polyline': {
      const slices = () => trackSlices(geometry);
      const box = continuous(corridorBounds(unwrapLine(toLatLngs(geometry.points)), geometry.bufferM));
      const areaM2 = yield* sliceOverlapM2(slices(), slices());
      return { areaM2, box, disc: null, track: geometry, polygon: null, slices };
    }
  }
}

function polygonOutline(ring: Ring): Outline {
  const planar = planarRing(ring);
  const { lngs, lats } = planar;
  const box = {
    south: Math.min(...lats),
    west: Math.min(...lngs),
    north: Math.max(...lats),
    east: Math.max(...lngs),
  };
  let edges: RingEdges | undefined;
  const polygon: PolygonOutline = {
    ring,
    planar,
    edges: () => {
      edges ??= ringEdges(planar);
      return edges;
    },
  };
  return { areaM2: ringAreaM2(ring), box, disc: null, track: null, polygon, slices: () => ringSlices(ring) };
}

function continuous(bounds: Bounds): Box {
  return bounds.west <= bounds.east ? bounds : { ...bounds, east: bounds.east + 360 };
}

/**
 * The area in square metres that two areas have in common. Where one is inside the other or apart from it, nothing is
 * intersected. Polygons are intersected by polygon-clipping; very long ones, and those that it cannot intersect, are
 * measured edge by edge. Everything else is measured in slices. Never more than the smaller of the two.
 */
export function* overlapM2(a: Outline, b: Outline): Steps<number> {
  const place = placeIn(a, b) ?? placeIn(b, a);
  if (place !== null) return place === 'apart' ? 0 : Math.min(a.areaM2, b.areaM2);
  const areaM2 =
    a.polygon !== null && b.polygon !== null
      ? yield* polygonsM2(a.polygon, b.polygon)
      : yield* slicesM2(a, b);
  return Math.min(areaM2, a.areaM2, b.areaM2);
}

/** Where an area is from another one: inside it, apart from it, or null where that is not known at once. */
function placeIn(area: Outline, other: Outline): 'inside' | 'apart' | null {
  if (other.polygon !== null) return placeInRing(area.box, other.polygon.planar, other.box);
  if (other.disc === null) return null;
  if (area.disc !== null) return placeInDisc(area.disc, other.disc);
  return isBoxInDisc(area.box, other.disc) ? 'inside' : null;
}

function* slicesM2(a: Outline, b: Outline): Steps<number> {
  const bands = a.track !== null && b.track !== null ? yield* trackBands(a.track, b.track) : undefined;
  return yield* sliceOverlapM2(a.slices(), b.slices(), bands);
}

function* polygonsM2(a: PolygonOutline, b: PolygonOutline): Steps<number> {
  const isShort = a.ring.lngs.length + b.ring.lngs.length <= CLIPPED_VERTICES_MAX;
  const clippedM2 = isShort ? clipOverlapM2(a.ring, b.ring) : null;
  return clippedM2 ?? (yield* ringOverlapM2(a.edges(), b.edges()));
}
