import type { Region } from '../../devices/index/regionWalk.ts';
import type { Box } from '../../devices/living/boxRegion.ts';
import { isLatLng } from '../../geo/wgs84.ts';
import { type Answer, errorAnswer, validationAnswer } from '../../http/answer.ts';
import { isBlank, type Parameter, parseDecimal, parseId, type Query } from '../../http/parameters.ts';
import { isJsonObject, isMissing, type JsonObject } from '../../lib/parseText.ts';
import { type FieldError, fail, ok, type Result } from '../../lib/result.ts';
import type { AreaGeometry } from '../area.ts';
import { completeDraft, parseDraft } from '../areaDraft.ts';
import { AREA_ERRORS, AREA_WARNINGS, type AreaWarning } from '../areaFields.ts';
import { readGeometry } from '../geojson.ts';
import { type Shape, toShape } from '../shape.ts';

export const BBOX = {
  name: 'bbox',
  in: 'query',
  required: false,
  description:
    'Only devices in this box: west,south,east,north in degrees. A west above the east crosses 180°. The boundary is inside.',
  schema: { type: 'string' },
  example: '12.4,41.8,12.6,42',
} as const satisfies Parameter;

export const AREA_ID = {
  name: 'area_id',
  in: 'query',
  required: false,
  description: 'Only devices in this area, in its present shape; instead of `bbox`.',
  schema: { type: 'integer', minimum: 1 },
} as const satisfies Parameter;

export const BBOX_MESSAGE =
  'bbox must be west,south,east,north: longitudes from -180 to 180, latitudes from -90 to 90, and south not above north';
export const AREA_ID_MESSAGE = 'area_id must be a positive integer';
export const TWO_PLACES_MESSAGE = 'send either bbox or area_id';

/** Where devices are asked for, as a query says it; null: anywhere. */
export type AskedPlace = { readonly box: Box } | { readonly areaId: number } | null;

export function readPlace(query: Query): Result<AskedPlace, Answer> {
  const { bbox, area_id: id } = query;
  const hasBox = bbox !== undefined && !isBlank(bbox);
  const hasId = id !== undefined && !isBlank(id);
  if (hasBox && hasId) return fail(errorAnswer('BAD_REQUEST', TWO_PLACES_MESSAGE));
  if (hasId) {
    const areaId = parseId(id);
    return areaId === null ? fail(errorAnswer('BAD_REQUEST', AREA_ID_MESSAGE)) : ok({ areaId });
  }
  const box = readBox(query);
  if (!box.ok) return box;
  return ok(box.value === null ? null : { box: box.value });
}

/** The box that a query asks for, null without one; or the 400 that says what is wrong. A blank one is none. */
export function readBox({ bbox }: Query): Result<Box | null, Answer> {
  if (bbox === undefined || isBlank(bbox)) return ok(null);
  const box = boxOf(bbox);
  return box === null ? fail(errorAnswer('BAD_REQUEST', BBOX_MESSAGE)) : ok(box);
}

function boxOf(text: string): Box | null {
  const numbers = text.split(',').map((part) => parseDecimal(part.trim()));
  const [west, south, east, north] = numbers;
  if (numbers.length !== 4 || !isLatLng(south, west) || !isLatLng(north, east)) return null;
  const box = { west, south, east, north } as Box;
  return box.south > box.north ? null : box;
}

/** The positions that an area of this shape contains. */
export function shapeRegion(shape: Shape): Region {
  return {
    contains: (lat, lng) => shape.contains(lat, lng),
    sideOf: (lat, lng, radiusM) => {
      const distanceM = shape.signedDistanceM(lat, lng);
      // Distances are exact to a hundred-thousandth.
      const leastM = 1.001 * radiusM + 1e-4 * Math.abs(distanceM);
      return distanceM > leastM ? 'out' : distanceM < -leastM ? 'in' : 'cut';
    },
  };
}

/** The positions that at least one of these contains. */
function unionRegion(regions: readonly Region[]): Region {
  const [first] = regions;
  if (first !== undefined && regions.length === 1) return first;
  return {
    contains: (lat, lng) => regions.some((region) => region.contains(lat, lng)),
    sideOf: (lat, lng, radiusM) => {
      let isOut = true;
      for (const region of regions) {
        const side = region.sideOf(lat, lng, radiusM);
        if (side === 'in') return 'in';
        if (side === 'cut') isOut = false;
      }
      return isOut ? 'out' : 'cut';
    },
  };
}

/** Each of them is asked about every position near the boundary. */
export const POLYGONS_MAX = 50;

export const PLACE_ERRORS = {
  required: { field: 'geojson', code: 'REQUIRED', message: 'geojson or area is required' },
  twice: { field: 'area', code: 'INVALID', message: 'geojson and area cannot both be given' },
  areaInvalid: { field: 'area', code: 'INVALID', message: 'area must be an object' },
  noPolygon: {
    field: 'geojson',
    code: 'INVALID_GEOJSON',
    message: 'geojson must be a Polygon, a MultiPolygon, or a Feature of one',
  },
  tooMany: {
    field: 'geojson',
    code: 'LIMIT_REACHED',
    message: `geojson has more than ${POLYGONS_MAX} polygons`,
  },
} as const satisfies Readonly<Record<string, FieldError>>;

/** A region that was sent, with warnings for its sender. */
export interface SentRegion {
  readonly region: Region;
  readonly warnings: readonly AreaWarning[];
}

/**
 * `geojson` or `area` of a body by the rules of areas, or the 422 that POST /areas would answer. May take some
 * milliseconds.
 */
export function readSentRegion(body: JsonObject): Result<SentRegion, Answer> {
  const { geojson, area } = body;
  const wrong = (error: FieldError) => fail(validationAnswer([error]));
  if (!isMissing(geojson)) return isMissing(area) ? readPolygons(geojson) : wrong(PLACE_ERRORS.twice);
  if (isMissing(area)) return wrong(PLACE_ERRORS.required);
  if (!isJsonObject(area)) return wrong(PLACE_ERRORS.areaInvalid);
  const { type, center, radius_m, buffer_m, points } = area;
  // What is not saved needs no name.
  const draft = parseDraft({ name: '-', type, center, radius_m, buffer_m, points });
  if (!draft.ok) return fail(validationAnswer(draft.error));
  const valid = completeDraft(draft.value);
  if (!valid.ok) return fail(validationAnswer(valid.error));
  return ok({ region: regionOf([valid.value.definition.geometry]), warnings: valid.value.warnings });
}

function readPolygons(geojson: unknown): Result<SentRegion, Answer> {
  const isFeature = isJsonObject(geojson) && geojson['type'] === 'Feature';
  const geometry = isFeature ? geojson['geometry'] : geojson;
  const isPolygonal = isJsonObject(geometry) && POLYGONAL.includes(geometry['type']);
  if (!isPolygonal) return fail(validationAnswer([PLACE_ERRORS.noPolygon]));
  const { type, coordinates } = geometry;
  const isTooMany =
    type === 'MultiPolygon' && Array.isArray(coordinates) && coordinates.length > POLYGONS_MAX;
  if (isTooMany) return fail(validationAnswer([PLACE_ERRORS.tooMany]));
  const parts = readGeometry(geometry);
  if (!parts.ok) return fail(validationAnswer([AREA_ERRORS.geojsonInvalid]));
  const geometries: AreaGeometry[] = [];
  const warnings = new Set<AreaWarning>();
  for (const part of parts.value) {
    if (part.type !== 'polygon') return fail(validationAnswer([PLACE_ERRORS.noPolygon]));
    if (!part.points.ok) return fail(validationAnswer([part.points.error]));
    if (part.hadHoles) warnings.add(AREA_WARNINGS.warnHolesIgnored);
    if (part.points.value.simplified) warnings.add(AREA_WARNINGS.warnSimplifiedDuplicates);
    geometries.push({ type: 'polygon', points: part.points.value.points });
  }
  return ok({ region: regionOf(geometries), warnings: [...warnings] });
}

const POLYGONAL: readonly unknown[] = ['Polygon', 'MultiPolygon'];

function regionOf(geometries: readonly AreaGeometry[]): Region {
  return unionRegion(geometries.map((geometry) => shapeRegion(toShape(geometry))));
}
