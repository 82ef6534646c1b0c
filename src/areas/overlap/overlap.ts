import type { Bounds } from '../../geo/measure.ts';
import { circleBounds, circleMeasures, corridorBounds, extentOf, ringAreaM2 } from '../../geo/measure.ts';
import { unwrapLine, unwrapRing } from '../../geo/path.ts';
import { distanceM, type Edges } from '../../geo/wgs84.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { type AreaGeometry, type Circle, toLatLngs } from '../area.ts';
import type { RingEdges } from './polygonOverlap.ts';
import { clipOverlapM2, planarRing, ringEdges, ringOverlapM2, shiftsBetween } from './polygonOverlap.ts';
import { commonBands, polylineSlices } from './polylineOverlap.ts';
import { circleSlices, polygonSlices, type Slices, sliceOverlapM2 } from './sliceOverlap.ts';

/** Vertices of two polygons that polygon-clipping usually intersects within a few milliseconds. */
const CLIPPED_VERTICES_MAX = 1_000;

/** An area prepared to be compared with many others. */
export interface Outline {
  readonly geometry: AreaGeometry;
  readonly areaM2: number;
  readonly box: Box;
  /** Null for other types. */
  readonly polygon: PolygonOutline | null;
  /** New at each call: slices are read from south to north, once. */
  slices(): Slices;
}

interface PolygonOutline {
  readonly planar: Edges;
  /** Made when they are first asked for. */
  edges(): RingEdges;
}

/** An area's outline. In steps, because the area of a polyline is measured in slices, which takes a few milliseconds. */
export function* outlineOf(geometry: AreaGeometry): Steps<Outline> {
  switch (geometry.type) {
    case 'circle':
    case 'point': {
      const { center, radiusM } = geometry;
      const { areaM2 } = circleMeasures(center.lat, radiusM);
      const box = continuous(circleBounds(center, radiusM));
      return { geometry, areaM2, box, polygon: null, slices: () => circleSlices(geometry) };
    }
    case 'polygon': {
      const ring = unwrapRing(toLatLngs(geometry.points));
      const planar = planarRing(ring);
      const box = extentOf(planar);
      let edges: RingEdges | undefined;
      const polygon: PolygonOutline = {
        planar,
        edges: () => {
          edges ??= ringEdges(planar);
          return edges;
        },
      };
      return { geometry, areaM2: ringAreaM2(ring), box, polygon, slices: () => polygonSlices(planar) };
    }
    case 'polyline': {
      const slices = () => polylineSlices(geometry);
      const box = continuous(corridorBounds(unwrapLine(toLatLngs(geometry.points)), geometry.bufferM));
      const areaM2 = yield* sliceOverlapM2(slices(), slices());
      return { geometry, areaM2, box, polygon: null, slices };
    }
  }
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
  const relation = relationOf(a, b) ?? relationOf(b, a);
  if (relation === 'apart') return 0;
  if (relation === 'inside') return Math.min(a.areaM2, b.areaM2);
  const areaM2 =
    a.polygon !== null && b.polygon !== null
      ? yield* polygonsM2(a.polygon, b.polygon)
      : yield* slicesM2(a, b);
  return Math.min(areaM2, a.areaM2, b.areaM2);
}

function* polygonsM2(a: PolygonOutline, b: PolygonOutline): Steps<number> {
  const isShort = a.planar.lngs.length + b.planar.lngs.length <= CLIPPED_VERTICES_MAX;
  const clippedM2 = isShort ? clipOverlapM2(a.planar, b.planar) : null;
  return clippedM2 ?? (yield* ringOverlapM2(a.edges(), b.edges()));
}

function* slicesM2(a: Outline, b: Outline): Steps<number> {
  const arePolylines = a.geometry.type === 'polyline' && b.geometry.type === 'polyline';
  const bands = arePolylines ? yield* commonBands(a.geometry, b.geometry) : undefined;
  return yield* sliceOverlapM2(a.slices(), b.slices(), bands);
}

/** How an area is related to another one; null where that is not known at once. */
function relationOf(area: Outline, other: Outline): 'inside' | 'apart' | null {
  if (other.polygon !== null) return relationToRing(area.box, other.polygon.planar, other.box);
  if (!('radiusM' in other.geometry)) return null;
  if ('radiusM' in area.geometry) return relationToCircle(area.geometry, other.geometry);
  return isBoxInCircle(area.box, other.geometry) ? 'inside' : null;
}

/** Bounds with continuous longitudes: across 180°, east is above 180. */
type Box = Bounds;

/**
 * Where everything within a box is: in a polygon, apart from it, or null where the box may have a part of the boundary.
 * Only the boxes of edges are compared, which is exact.
 */
function relationToRing(box: Box, ring: Edges, ringBox: Box): 'inside' | 'apart' | null {
  for (const shift of shiftsBetween(ringBox, box)) {
    const isInside = isBoxInside({ ...box, west: box.west + shift, east: box.east + shift }, ring);
    if (isInside !== false) return isInside === null ? null : 'inside';
  }
  return 'apart';
}

/** Null where the box of an edge meets this one. Otherwise counts the edges west of it. */
function isBoxInside({ south, north, west, east }: Box, { lngs, lats }: Edges): boolean | null {
  let isInside = false;
  for (let n = 1; n < lngs.length; n++) {
    const [lngA, lngB, latA, latB] = [lngs[n - 1]!, lngs[n]!, lats[n - 1]!, lats[n]!];
    if ((latA < south && latB < south) || (latA > north && latB > north)) continue;
    if (lngA > east && lngB > east) continue;
    if (!(lngA < west && lngB < west)) return null;
    if (latA <= south !== latB <= south) isInside = !isInside;
  }
  return isInside;
}

/**
 * True when everything within a box is in a circle. Along a parallel and along a meridian the distance from a centre is
 * greatest at an end, so the corners decide. Not around a pole, where a circle has all longitudes.
 */
function isBoxInCircle({ south, west, north, east }: Box, { center, radiusM }: Circle): boolean {
  if (north > STEADY_LAT || south < -STEADY_LAT) return false;
  return [south, north].every((lat) =>
    [west, east].every((lng) => distanceM(center.lat, center.lng, lat, lng) <= radiusM),
  );
}

/** Null where the circle is partly inside the other one, or around it. */
function relationToCircle(circle: Circle, other: Circle): 'inside' | 'apart' | null {
  const gapM = distanceM(circle.center.lat, circle.center.lng, other.center.lat, other.center.lng);
  if (gapM >= circle.radiusM + other.radiusM) return 'apart';
  return gapM + circle.radiusM <= other.radiusM ? 'inside' : null;
}

const STEADY_LAT = 85;
