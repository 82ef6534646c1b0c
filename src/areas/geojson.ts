import { cutLine, cutRing } from '../geo/antimeridianCut.ts';
import { rejoinLines, rejoinRings } from '../geo/antimeridianRejoin.ts';
import { openRing, unwrapLine, unwrapRing } from '../geo/path.ts';
import { isLatLng, type LatLng } from '../geo/wgs84.ts';
import type { Schema } from '../http/openapi/schema.ts';
import { choice, ID, list, nullable, number, ref, shapeOf, text } from '../http/openapi/schema.ts';
import { isJsonObject } from '../lib/parseText.ts';
import { type FieldError, fail, ok, type Result } from '../lib/result.ts';
import { formatIso } from '../lib/time.ts';
import { type AreaGeometry, type StoredArea, toLatLngs, type ValidPoints, validatePoints } from './area.ts';
import { AREA_ERRORS, AREA_FACTS } from './areaFields.ts';

/** The part of a GeoJSON geometry that makes one area. */
export type GeometryPart = PointPart | PathPart;

interface PointPart {
  readonly type: 'point';
  readonly center: Result<LatLng, FieldError>;
  readonly hadHoles: false;
}

interface PathPart {
  readonly type: 'polygon' | 'polyline';
  readonly points: Result<ValidPoints, FieldError>;
  readonly hadHoles: boolean;
}

/** What is wrong with a geometry that cannot even be divided into parts. */
export const GEOMETRY_ERRORS = ['errGeoJsonInvalid', 'errGeometryUnsupported'] as const;

type GeometryError = (typeof GEOMETRY_ERRORS)[number];

/**
 * A GeoJSON geometry (RFC 7946 section 3.1) as the parts that become areas, at least one. What was cut along the
 * antimeridian (section 3.1.9) is joined again first, so more than one part is a Multi* geometry of several areas.
 * A position is [lng, lat] with more numbers ignored. Rings may be open or closed, in either winding; interior rings
 * are dropped. Errors of positions stay in their part, so that the other parts are read.
 */
export function readGeometry(value: unknown): Result<readonly GeometryPart[], GeometryError> {
  if (!isJsonObject(value) || typeof value['type'] !== 'string') return fail('errGeoJsonInvalid');
  const read = PART_READERS.get(value['type']);
  if (!read) return fail('errGeometryUnsupported');
  const coordinates: unknown = value['coordinates'];
  if (!Array.isArray(coordinates)) return fail('errGeoJsonInvalid');
  const parts = read(coordinates);
  return parts.length > 0 ? ok(parts) : fail('errGeoJsonInvalid');
}

type PartReader = (coordinates: readonly unknown[]) => GeometryPart[];

const PART_READERS: ReadonlyMap<string, PartReader> = new Map<string, PartReader>([
  ['Point', (position) => [pointPart(position)]],
  ['LineString', (line) => lineParts([readLine(line)])],
  ['Polygon', (rings) => polygonParts([rings])],
  ['MultiPoint', (positions) => positions.map(pointPart)],
  ['MultiLineString', (lines) => lineParts(lines.map(readLine))],
  ['MultiPolygon', (polygons) => polygonParts(polygons)],
]);

/** True for the names of the geometries of RFC 7946, GeometryCollection included. */
export function isGeometryType(type: unknown): boolean {
  return type === 'GeometryCollection' || (typeof type === 'string' && PART_READERS.has(type));
}

function pointPart(value: unknown): PointPart {
  const center = readPosition(value);
  return { type: 'point', center: center ? ok(center) : fail(AREA_ERRORS.centerInvalid), hadHoles: false };
}

function lineParts(lines: readonly (LatLng[] | null)[]): PathPart[] {
  const sound = lines.filter((line) => line !== null);
  return pathParts('polyline', sound.length === lines.length ? rejoinLines(sound) : lines, false);
}

function polygonParts(polygons: readonly unknown[]): PathPart[] {
  const rings = polygons.map(readExteriorRing);
  const hadHoles = polygons.some((polygon) => Array.isArray(polygon) && polygon.length > 1);
  const sound = rings.filter((ring) => ring !== null);
  if (sound.length < rings.length) return pathParts('polygon', rings, hadHoles);
  const rejoined = rejoinRings(sound);
  return pathParts('polygon', rejoined.rings, hadHoles || rejoined.holesDropped);
}

function pathParts(
  type: PathPart['type'],
  paths: readonly (readonly LatLng[] | null)[],
  hadHoles: boolean,
): PathPart[] {
  return paths.map((path) => {
    const points = path ? validatePoints(type, path) : fail(AREA_ERRORS.pointsInvalid);
    return { type, points, hadHoles };
  });
}

/** The exterior ring without its closing repetition; null as for readLine. */
function readExteriorRing(polygon: unknown): LatLng[] | null {
  if (!Array.isArray(polygon)) return null;
  const ring = readLine(polygon.length > 0 ? polygon[0] : []);
  return ring && [...openRing(ring)];
}

/** The positions; null when one of them is invalid. */
function readLine(line: unknown): LatLng[] | null {
  if (!Array.isArray(line)) return null;
  const positions: LatLng[] = [];
  for (const element of line) {
    const position = readPosition(element);
    if (!position) return null;
    positions.push(position);
  }
  return positions;
}

/** Numbers, as RFC 7946 section 3.1.1 says; all after the second are ignored. */
function readPosition(value: unknown): LatLng | null {
  if (!Array.isArray(value) || !value.every((element) => typeof element === 'number')) return null;
  const [lng, lat]: unknown[] = value;
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) return null;
  return { lat: lat + 0, lng: lng + 0 };
}

/** [lng, lat] in degrees. */
type Position = readonly [number, number];

type GeoJsonGeometry =
  | { readonly type: 'Point'; readonly coordinates: Position }
  | { readonly type: 'LineString'; readonly coordinates: readonly Position[] }
  | { readonly type: 'MultiLineString'; readonly coordinates: readonly (readonly Position[])[] }
  | { readonly type: 'Polygon'; readonly coordinates: readonly (readonly Position[])[] }
  | { readonly type: 'MultiPolygon'; readonly coordinates: readonly (readonly (readonly Position[])[])[] };

/** The area as a Feature of RFC 7946; readGeometry and readProperties read the same area from it. */
export function areaFeature({
  id,
  definition,
  measures,
  createdAtMs,
}: Pick<StoredArea, 'id' | 'definition' | 'measures' | 'createdAtMs'>) {
  const { name, color, geometry, externalId, dwellSeconds } = definition;
  return {
    type: 'Feature' as const,
    id,
    geometry: geoJsonGeometry(geometry),
    properties: {
      id,
      name,
      color,
      type: geometry.type,
      radius: 'radiusM' in geometry ? geometry.radiusM : null,
      bufferDistance: 'bufferM' in geometry ? geometry.bufferM : null,
      external_id: externalId,
      dwell_seconds: dwellSeconds,
      metrics: { area_m2: measures.areaM2, perimeter_m: measures.perimeterM, length_m: measures.lengthM },
      created_at: formatIso(createdAtMs),
    },
  };
}

export type AreaFeature = ReturnType<typeof areaFeature>;

/** Rings are closed and counter-clockwise; what crosses the antimeridian is cut there into a Multi* (section 3.1.9). */
function geoJsonGeometry(geometry: AreaGeometry): GeoJsonGeometry {
  switch (geometry.type) {
    case 'circle':
    case 'point':
      return { type: 'Point', coordinates: position(geometry.center) };
    case 'polyline': {
      const lines = cutLine(unwrapLine(toLatLngs(geometry.points))).map((line) => line.map(position));
      const [line] = lines;
      if (line && lines.length === 1) return { type: 'LineString', coordinates: line };
      return { type: 'MultiLineString', coordinates: lines };
    }
    case 'polygon': {
      const rings = cutRing(unwrapRing(toLatLngs(geometry.points))).map(closedRing);
      const [ring] = rings;
      if (ring && rings.length === 1) return { type: 'Polygon', coordinates: [ring] };
      return { type: 'MultiPolygon', coordinates: rings.map((each) => [each]) };
    }
  }
}

function closedRing(points: readonly LatLng[]): Position[] {
  const positions = points.map(position);
  return [...positions, ...positions.slice(0, 1)];
}

function position({ lat, lng }: LatLng): Position {
  return [lng, lat];
}

const POSITION: Schema = {
  type: 'array',
  description: '[longitude, latitude]; more numbers are ignored.',
  items: { type: 'number' },
  minItems: 2,
};

/** A geometry of RFC 7946 and how deep its coordinates are nested: 0 is one position. */
function geometry(type: string, depth: number): Schema {
  let coordinates: Schema = POSITION;
  for (let level = 0; level < depth; level++) coordinates = list(coordinates);
  return shapeOf<{ type: string; coordinates: unknown }>({ type: choice([type]), coordinates });
}

const GEOMETRIES = {
  Point: geometry('Point', 0),
  LineString: geometry('LineString', 1),
  Polygon: geometry('Polygon', 2),
  MultiPoint: geometry('MultiPoint', 1),
  MultiLineString: geometry('MultiLineString', 2),
  MultiPolygon: geometry('MultiPolygon', 3),
};

/** What an import reads of a Feature's properties, which may hold anything else beside it. */
const OWN_PROPERTIES: Schema = {
  type: 'object',
  nullable: true,
  description: 'What becomes of the area. Other properties are ignored, and null acts as not sent.',
  properties: {
    name: nullable(text('The name; an import needs one. Trimmed.')),
    title: nullable(text('The name, where `name` is missing.')),
    color: nullable(text('#rrggbb; any other notation is ignored.')),
    stroke: nullable(text('The color, where `color` is missing.')),
    type: { description: 'circle or point on a Point. Any other value is ignored.' },
    radius: nullable(number('Metres, on a Point: it makes a circle unless `type` is point.')),
    bufferDistance: nullable(number('Metres from a line that are still inside.')),
    buffer_distance: nullable(number('Metres, where `bufferDistance` is missing.')),
    external_id: AREA_FACTS.external_id,
    dwell_seconds: nullable(AREA_FACTS.dwell_seconds),
  },
  additionalProperties: true,
};

const BBOX: Schema = { type: 'array', description: 'Ignored.', items: { type: 'number' } };

export const GEOJSON_SCHEMAS = {
  GeoJsonGeometry: { oneOf: Object.values(GEOMETRIES) },
  GeoJsonFeature: {
    type: 'object',
    required: ['type', 'geometry'],
    properties: {
      type: choice(['Feature']),
      geometry: ref('GeoJsonGeometry'),
      properties: OWN_PROPERTIES,
      id: { description: 'Ignored.', oneOf: [text(), number()] },
      bbox: BBOX,
    },
  },
  GeoJsonFeatureCollection: {
    type: 'object',
    required: ['type', 'features'],
    properties: { type: choice(['FeatureCollection']), features: list(ref('GeoJsonFeature')), bbox: BBOX },
  },
  AreaFeature: shapeOf<AreaFeature>({
    type: choice(['Feature']),
    id: ID,
    geometry: {
      oneOf: [
        GEOMETRIES.Point,
        GEOMETRIES.LineString,
        GEOMETRIES.Polygon,
        GEOMETRIES.MultiLineString,
        GEOMETRIES.MultiPolygon,
      ],
      description: 'A Multi* geometry where the area crosses the antimeridian (RFC 7946, section 3.1.9).',
    },
    properties: shapeOf<AreaFeature['properties']>({
      id: ID,
      ...AREA_FACTS,
      radius: nullable(number('Metres, of circles and points.')),
      bufferDistance: nullable(number('Metres, of polylines.')),
    }),
  }),
  AreaFeatureCollection: shapeOf<{ type: string; features: readonly unknown[] }>({
    type: choice(['FeatureCollection']),
    features: list(ref('AreaFeature')),
  }),
} as const satisfies Readonly<Record<string, Schema>>;
