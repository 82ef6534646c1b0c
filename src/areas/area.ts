import {
  type Bounds,
  circleBounds,
  circleMeasures,
  corridorBounds,
  pathLengthM,
  ringBounds,
  ringCentroid,
  ringMeasures,
} from '../geo/measure.ts';
import { openRing, simplify, unwrapLine, unwrapRing } from '../geo/path.ts';
import { isSelfIntersecting } from '../geo/selfIntersection.ts';
import type { LatLng } from '../geo/wgs84.ts';
import { type FieldError, fail, ok, type Result } from '../lib/result.ts';
import { formatIso } from '../lib/time.ts';
import { AREA_ERRORS, AREA_LIMITS } from './areaFields.ts';

/**
 * An area as its owner defined it: validated, complete and normalised (no closing repetition, no nearly coincident
 * vertices). Everything else about it is computed.
 */
export interface AreaDefinition {
  /** Trimmed, 1 to 100 code points. */
  readonly name: string;
  /** #rrggbb, in the case it was sent in. */
  readonly color: string;
  readonly geometry: AreaGeometry;
  readonly externalId: string | null;
  readonly dwellSeconds: number;
}

export type AreaGeometry = Circle | Polygon | Polyline;
export type AreaType = AreaGeometry['type'];

/** A circle, or a point with a radius. */
export interface Circle {
  readonly type: 'circle' | 'point';
  readonly center: LatLng;
  readonly radiusM: number;
}

export interface Polygon {
  readonly type: 'polygon';
  readonly points: Vertices;
}

export interface Polyline {
  readonly type: 'polyline';
  readonly points: Vertices;
  readonly bufferM: number;
}

/**
 * lat, lng, lat, lng, … in degrees; polygons without the closing repetition, winding as it was sent. Two numbers a
 * vertex, since every pod holds every area.
 */
export type Vertices = Float64Array;

/** The vertices as positions. */
export function toLatLngs(vertices: Vertices): LatLng[] {
  const points: LatLng[] = [];
  for (let i = 0; i < vertices.length; i += 2) points.push({ lat: vertices[i]!, lng: vertices[i + 1]! });
  return points;
}

/** The positions as vertices; -0 becomes 0. */
export function toVertices(points: readonly LatLng[]): Vertices {
  const vertices = new Float64Array(2 * points.length);
  for (let i = 0; i < points.length; i++) {
    vertices[2 * i] = points[i]!.lat + 0;
    vertices[2 * i + 1] = points[i]!.lng + 0;
  }
  return vertices;
}

export interface ValidPoints {
  readonly points: Vertices;
  /** Nearly coincident vertices were dropped. */
  readonly simplified: boolean;
}

/**
 * The points as an area of that type stores them, or the first error: too many, too few once nearly coincident ones are
 * dropped, or edges that meet. The repeated last point of a polygon does not count.
 */
export function validatePoints(
  type: 'polygon' | 'polyline',
  positions: readonly LatLng[],
): Result<ValidPoints, FieldError> {
  const isPolygon = type === 'polygon';
  const open = isPolygon ? openRing(positions) : positions;
  if (open.length > AREA_LIMITS.maxPoints) return fail(AREA_ERRORS.pointsTooMany);
  const points = simplify(open, isPolygon);
  if (points.length < (isPolygon ? AREA_LIMITS.polygonMinPoints : AREA_LIMITS.polylineMinPoints)) {
    return fail(AREA_ERRORS.pointsTooFew);
  }
  if (isPolygon && isSelfIntersecting(unwrapRing(points))) return fail(AREA_ERRORS.selfIntersection);
  return ok({ points: toVertices(points), simplified: points.length < open.length });
}

/** What is computed from an area's geometry. */
export interface AreaMeasures {
  /** Polygons and circles. */
  readonly areaM2: number | null;
  readonly perimeterM: number | null;
  /** Polylines. */
  readonly lengthM: number | null;
  /** Bounds of everything in the area, including its radius or buffer. */
  readonly bounds: Bounds;
  /** The given centre of a circle or point, the centroid of a polygon, null for a polyline. */
  readonly center: LatLng | null;
}

export function areaMeasures(geometry: AreaGeometry): AreaMeasures {
  switch (geometry.type) {
    case 'point':
    case 'circle': {
      const { center, radiusM } = geometry;
      const measures = geometry.type === 'circle' ? circleMeasures(center.lat, radiusM) : NO_MEASURES;
      return { ...measures, lengthM: null, bounds: circleBounds(center, radiusM), center };
    }
    case 'polygon': {
      const ring = unwrapRing(toLatLngs(geometry.points));
      const bounds = ringBounds(ring);
      return { ...ringMeasures(ring), lengthM: null, bounds, center: within(bounds, ringCentroid(ring)) };
    }
    case 'polyline': {
      const path = unwrapLine(toLatLngs(geometry.points));
      const bounds = corridorBounds(path, geometry.bufferM);
      return { ...NO_MEASURES, lengthM: pathLengthM(path), bounds, center: null };
    }
  }
}

const NO_MEASURES = { areaM2: null, perimeterM: null };

/** The centroid of a sliver is what little rounding left of its area, at worst NaN: its bounds then give the middle. */
function within({ south, west, north, east }: Bounds, centroid: LatLng): LatLng {
  const { lat, lng } = centroid;
  const width = east < west ? east - west + 360 : east - west;
  const fromWest = lng < west ? lng - west + 360 : lng - west;
  if (lat >= south && lat <= north && fromWest <= width) return centroid;
  const middle = west + width / 2;
  return { lat: (south + north) / 2, lng: middle > 180 ? middle - 360 : middle };
}

/** An area as Postgres holds it. */
export interface StoredArea {
  readonly id: number;
  readonly worldId: number;
  /** The account that created it: the namespace of its external id. */
  readonly accountId: number;
  readonly definition: AreaDefinition;
  readonly measures: AreaMeasures;
  readonly createdAtMs: number;
  /** Rises with every write. */
  readonly revision: number;
}

/** Wire form of an area, field by field as the API document lists them. */
export function areaView({ id, definition, measures, createdAtMs }: StoredArea) {
  const { geometry } = definition;
  return {
    id,
    name: definition.name,
    color: definition.color,
    type: geometry.type,
    center: measures.center,
    radius_m: 'radiusM' in geometry ? geometry.radiusM : null,
    buffer_m: 'bufferM' in geometry ? geometry.bufferM : null,
    points: 'points' in geometry ? toLatLngs(geometry.points) : [],
    external_id: definition.externalId,
    dwell_seconds: definition.dwellSeconds,
    metrics: { area_m2: measures.areaM2, perimeter_m: measures.perimeterM, length_m: measures.lengthM },
    bounds: measures.bounds,
    created_at: formatIso(createdAtMs),
  };
}

export type AreaView = ReturnType<typeof areaView>;

/** What identifies an area to a reader, where another answer is about it. */
export function areaName({ id, definition }: Pick<StoredArea, 'id' | 'definition'>) {
  const { name, geometry, externalId } = definition;
  return { id, name, type: geometry.type, external_id: externalId };
}
