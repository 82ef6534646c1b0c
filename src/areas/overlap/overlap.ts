import { type Bounds, circleBounds, corridorBounds } from '../../geo/bounds.ts';
import { distanceM } from '../../geo/distance.ts';
import { circleMeasures, ringAreaM2 } from '../../geo/measure.ts';
import { type Ring, unwrapLine, unwrapRing } from '../../geo/path.ts';
import { parallelRadiusM, RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { type AreaGeometry, type Circle, type Polyline, toLatLngs } from '../area.ts';
import {
  clipOverlapM2,
  type PlanarRing,
  planarRing,
  type RingEdges,
  ringEdges,
  ringOverlapM2,
} from './polygonOverlap.ts';
import { trackBands, trackSlices } from './polylineOverlap.ts';
import { type Slices, sliceOverlapM2 } from './sliceOverlap.ts';

/** Vertices of two polygons that polygon-clipping usually intersects within a few milliseconds. */
const CLIPPED_VERTICES_MAX = 1_000;

/** An area prepared to be compared with many others. */
export interface Outline {
  readonly areaM2: number;
  readonly box: Box;
  /** Set for circles and places. */
  readonly disc: Circle | null;
  readonly track: Polyline | null;
  /** Set for polygons. */
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

const METRES_PER_DEGREE = 111_000;
/** Slices of a polygon as high as its mean edge, but not countless ones. */
const LEAST_DETAIL_SHARE = 1 / 500;

/** A polygon, its edges straight in longitude and latitude. */
function ringSlices(ring: Ring): Slices {
  const { lngs, lats } = planarRing(ring);
  const south = Math.min(...lats);
  const north = Math.max(...lats);
  // Edges by their southern ends, to be taken up as the parallel rises.
  const edges = lngs
    .slice(1)
    .map((_, n) => (lats[n]! <= lats[n + 1]! ? [n, n + 1] : [n + 1, n]) as [number, number])
    .filter(([low, high]) => lats[low] !== lats[high])
    .sort(([a], [b]) => lats[a]! - lats[b]!);
  let next = 0;
  let active: [number, number][] = [];
  return {
    south,
    north,
    detailM: (north - south) * METRES_PER_DEGREE * LEAST_DETAIL_SHARE,
    breaks: [],
    at: (lat) => {
      active = active.filter(([, high]) => lats[high]! > lat);
      for (; next < edges.length && lats[edges[next]![0]]! <= lat; next++) {
        if (lats[edges[next]![1]]! > lat) active.push(edges[next]!);
      }
      const crossings = active.map(([low, high]) => {
        const share = (lat - lats[low]!) / (lats[high]! - lats[low]!);
        return lngs[low]! + share * (lngs[high]! - lngs[low]!);
      });
      return crossings.sort((a, b) => a - b);
    },
  };
}

/** The half width is found to this share of the radius. */
const TOLERANCE_SHARE = 1e-7;
const MAX_STEPS = 60;

/** A circle or place: all positions within its radius by geodesic distance. */
function discSlices({ center, radiusM }: Circle): Slices {
  const { south, north } = circleBounds(center, radiusM);
  return {
    south,
    north,
    detailM: radiusM / 4,
    breaks: [],
    at: (lat) => {
      const half = halfWidthDegrees(center.lat, radiusM, lat);
      return half === 0 ? [] : [center.lng - half, center.lng + half];
    },
  };
}

/**
 * How far east of the centre's meridian the circle meets a parallel, 0 to 180 degrees: by false position (the Illinois
 * rule), from a first guess on the plane.
 */
function halfWidthDegrees(centerLat: number, radiusM: number, lat: number): number {
  const excessM = (dLng: number) => distanceM(centerLat, 0, lat, dLng) - radiusM;
  let low = 0;
  let lowM = excessM(low);
  if (lowM >= 0) return 0;
  let high = 180;
  let highM = excessM(high);
  if (highM <= 0) return 180;
  // A right triangle of the plane has the radius and the way along the meridian.
  const alongM = Math.sqrt(radiusM * radiusM - (lowM + radiusM) ** 2);
  const perDegreeM = Math.max(parallelRadiusM(lat) * RADIANS_PER_DEGREE, Number.MIN_VALUE);
  let guess = Math.min(alongM / perDegreeM, 179);
  for (let step = 0; step < MAX_STEPS; step++) {
    const missM = excessM(guess);
    if (Math.abs(missM) <= TOLERANCE_SHARE * radiusM) return guess;
    if (missM < 0) {
      low = guess;
      lowM = missM;
      highM /= 2;
    } else {
      high = guess;
      highM = missM;
      lowM /= 2;
    }
    guess = low + ((high - low) * lowM) / (lowM - highM);
  }
  return guess;
}

/** The extent of an area in degrees. Longitudes are continuous: across 180°, east is above 180. */
interface Box {
  readonly south: number;
  readonly west: number;
  readonly north: number;
  readonly east: number;
}

/**
 * Where everything within a box is: in a polygon, apart from it, or null where the box may have a part of the boundary.
 * Only the boxes of edges are compared, which is exact.
 */
function placeInRing(box: Box, ring: PlanarRing, ringBox: Box): 'inside' | 'apart' | null {
  // A polygon stands once in every full turn of longitudes.
  const lowest = Math.ceil((ringBox.west - box.east) / 360);
  const highest = Math.floor((ringBox.east - box.west) / 360);
  for (let turn = lowest; turn <= highest; turn++) {
    const isInside = isBoxInside(box.south, box.north, box.west + turn * 360, box.east + turn * 360, ring);
    if (isInside !== false) return isInside === null ? null : 'inside';
  }
  return 'apart';
}

/** Null where the box of an edge meets this one. Otherwise counts the edges that lie west of it. */
function isBoxInside(
  south: number,
  north: number,
  west: number,
  east: number,
  { lngs, lats }: PlanarRing,
): boolean | null {
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
function isBoxInDisc({ south, west, north, east }: Box, { center, radiusM }: Circle): boolean {
  if (north > STEADY_LAT || south < -STEADY_LAT) return false;
  return [south, north].every((lat) =>
    [west, east].every((lng) => distanceM(center.lat, center.lng, lat, lng) <= radiusM),
  );
}

/** Where a circle is: in another one, apart from it, or null where it is partly inside, or around it. */
function placeInDisc(disc: Circle, other: Circle): 'inside' | 'apart' | null {
  const gapM = distanceM(disc.center.lat, disc.center.lng, other.center.lat, other.center.lng);
  if (gapM >= disc.radiusM + other.radiusM) return 'apart';
  return gapM + disc.radiusM <= other.radiusM ? 'inside' : null;
}

const STEADY_LAT = 85;
