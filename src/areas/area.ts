import type { LatLng } from '../geo/latLng.ts';

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

export type AreaGeometry = Disc | Polygon | Track;
export type AreaType = AreaGeometry['type'];

/** A circle, or a place: a point with a margin. */
export interface Disc {
  readonly type: 'circle' | 'point';
  readonly center: LatLng;
  readonly radiusM: number;
}

export interface Polygon {
  readonly type: 'polygon';
  readonly points: Vertices;
}

export interface Track {
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
