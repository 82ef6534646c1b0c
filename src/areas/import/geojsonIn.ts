import { rejoinLines } from '../../geo/antimeridian/rejoinLines.ts';
import { rejoinRings } from '../../geo/antimeridian/rejoinRings.ts';
import { isLatLng, type LatLng } from '../../geo/latLng.ts';
import { openRing } from '../../geo/simplify.ts';
import type { FieldError } from '../../lib/fieldError.ts';
import { isJsonObject } from '../../lib/parseJson.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import type { DraftPoints } from '../draft/areaDraft.ts';
import { AREA_ERRORS } from '../draft/areaErrors.ts';
import { validatePoints } from '../draft/mergeDraft.ts';

/** One area's worth of a GeoJSON geometry. */
export type GeometryPart = PointPart | PathPart;

export interface PointPart {
  readonly type: 'point';
  readonly center: Result<LatLng, FieldError>;
  readonly hadHoles: false;
}

export interface PathPart {
  readonly type: 'polygon' | 'polyline';
  readonly points: Result<DraftPoints, FieldError>;
  readonly hadHoles: boolean;
}

/** What is wrong with a geometry that cannot even be divided into parts. */
export const GEOMETRY_ERRORS = ['errGeoJsonInvalid', 'errGeometryUnsupported'] as const;

export type GeometryError = (typeof GEOMETRY_ERRORS)[number];

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

/** The positions; null when one of them is none. */
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

/** Numbers, as RFC 7946 section 3.1.1 says; of more than two the others are passed over. */
function readPosition(value: unknown): LatLng | null {
  if (!Array.isArray(value) || !value.every((element) => typeof element === 'number')) return null;
  const [lng, lat]: unknown[] = value;
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) return null;
  return { lat: lat + 0, lng: lng + 0 };
}
