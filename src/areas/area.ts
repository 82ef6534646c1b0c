import { type Bounds, circleBounds, corridorBounds, ringBounds } from '../geo/bounds.ts';
import { circleMeasures, pathLengthM, ringCentroid, ringMeasures } from '../geo/measure.ts';
import { unwrapLine, unwrapRing } from '../geo/path.ts';
import type { LatLng } from '../geo/wgs84.ts';

/**
 * An area as its owner defined it: validated, complete and normalised (no closing repetition, no nearly coincident
 * vertices). Everything else about it is computed, see areaMeasures.ts and shape.ts.
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

export const AREA_TYPES: readonly AreaType[] = ['circle', 'polygon', 'polyline', 'point'];

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
  /** Who made it: the namespace of its external id. */
  readonly accountId: number;
  readonly definition: AreaDefinition;
  readonly measures: AreaMeasures;
  readonly createdAtMs: number;
  /** Rises with every write. */
  readonly revision: number;
}
