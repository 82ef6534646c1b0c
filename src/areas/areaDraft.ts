import type { LatLng } from '../geo/wgs84.ts';
import type { FieldError } from '../lib/fieldError.ts';
import { isJsonObject, isMissing, type JsonObject } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import {
  type AreaDefinition,
  type AreaGeometry,
  type AreaMeasures,
  type AreaType,
  areaMeasures,
  type Circle,
  toLatLngs,
  toVertices,
  type Vertices,
} from './area.ts';
import {
  AREA_ERRORS,
  bufferError,
  DEFAULT_COLOR,
  AREA_LIMITS as LIMITS,
  radiusError,
  readCenter,
  readColor,
  readDwellSeconds,
  readExternalId,
  readName,
  readNumber,
  readPositions,
  readType,
  type Sent,
  type ValidPoints,
  validatePoints,
} from './areaFields.ts';
import { type GeometryPart, readGeometry } from './geojson.ts';

/** The fields that both forms of a body have beside the geometry: the JSON of the API, and a Feature's properties. */
export interface OwnFields {
  readonly name: Sent<string>;
  readonly color: Sent<string>;
  readonly type: Sent<AreaType>;
  /** As sent, NaN when it was not a number: its range depends on the type. */
  readonly radiusM: number | undefined;
  /** As sent, NaN when it was not a number; only a polyline has one. */
  readonly bufferM: number | undefined;
  /** null: the stored one is to be removed. */
  readonly externalId: Sent<string | null>;
  readonly dwellSeconds: Sent<number>;
}

/**
 * The fields of one request body, parsed. Which of them belong to the area is known only with the stored area. Plain
 * data, so that another process can send it.
 */
export interface AreaDraft extends OwnFields {
  /** The type was not sent: it follows from a GeoJSON Point, which fits a stored circle just as well as a point. */
  readonly typeIsAssumed: boolean;
  readonly center: Sent<LatLng>;
  readonly points: Sent<DraftPoints>;
  /** Set when `geojson` was sent and holds no geometry of one area; nothing is known about the geometry then. */
  readonly geojsonError: FieldError | null;
  /** The polygon came with interior rings, which were dropped. */
  readonly hadHoles: boolean;
}

/** `isValid`: the points are checked by the rules of the type of the draft. Otherwise no type was sent. */
interface DraftPoints extends ValidPoints {
  readonly isValid: boolean;
}

/**
 * A body of POST, PUT or PATCH: the JSON of the API, or { geojson: Feature or Geometry } with fields beside it that win
 * over the Feature's properties. Never throws, whatever the body. Fails only for a body that is not a JSON object; every
 * other error stays in the draft, to be reported by completeDraft or mergeDraft all at once.
 */
export function parseDraft(body: unknown): Result<AreaDraft, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([AREA_ERRORS.bodyInvalid]);
  const fields: OwnFields = {
    name: readName(body['name']),
    color: readColor(body['color']),
    type: readType(body['type']),
    radiusM: readNumber(body['radius_m']),
    bufferM: readNumber(body['buffer_m']),
    externalId: readExternalId(body['external_id']),
    dwellSeconds: readDwellSeconds(body['dwell_seconds']),
  };
  if (!isMissing(body['geojson'])) return ok(geojsonDraft(body['geojson'], fields));
  const center = readCenter(body['center']);
  return ok({ ...fields, ...NO_GEOMETRY, center, points: readPoints(body['points'], fields) });
}

const NO_GEOMETRY = {
  typeIsAssumed: false,
  center: undefined,
  points: undefined,
  geojsonError: null,
  hadHoles: false,
};

/** Validated at once where the body names a type that has points, and ignored where it names another. */
function readPoints(value: unknown, { type }: OwnFields): Sent<DraftPoints> {
  const known = type?.ok ? type.value : null;
  if (known === 'circle' || known === 'point') return undefined;
  const positions = readPositions(value);
  if (!positions?.ok) return positions;
  if (known) return validDraftPoints(validatePoints(known, positions.value));
  return ok({ points: toVertices(positions.value), simplified: false, isValid: false });
}

function validDraftPoints(points: Result<ValidPoints, FieldError>): Result<DraftPoints, FieldError> {
  return points.ok ? ok({ ...points.value, isValid: true }) : points;
}

/** The draft of { geojson }: a Feature or Geometry, and the fields beside it. */
function geojsonDraft(geojson: unknown, fields: OwnFields): AreaDraft {
  const feature = isJsonObject(geojson) && geojson['type'] === 'Feature' ? geojson : null;
  const properties = readProperties(feature?.['properties']);
  const parts = readGeometry(feature ? feature['geometry'] : geojson);
  const part = parts.ok && parts.value.length === 1 ? parts.value[0] : undefined;
  if (part) return featureDraft(part, properties, fields);
  return { ...mergeFields(fields, properties), ...NO_GEOMETRY, geojsonError: AREA_ERRORS.geojsonInvalid };
}

/**
 * The properties of a Feature. They may come from programs that know nothing of areas. So a name that is not text, a
 * colour in another notation and a type of something else count as not sent, and so does null. Properties that only
 * areas have (radius, bufferDistance, external_id, dwell_seconds) are validated.
 */
export function readProperties(value: unknown): OwnFields {
  const properties: JsonObject = isJsonObject(value) ? value : {};
  const type = readType(properties['type']);
  return {
    name: readName([properties['name'], properties['title']].find(isText)),
    color: [readColor(properties['color']), readColor(properties['stroke'])].find((color) => color?.ok),
    type: type?.ok ? type : undefined,
    radiusM: readNumber(properties['radius']),
    bufferM: readNumber(properties['bufferDistance'] ?? properties['buffer_distance']),
    externalId: readExternalId(properties['external_id'] ?? undefined),
    dwellSeconds: readDwellSeconds(properties['dwell_seconds']),
  };
}

const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '';

/** Field by field what `above` says; where it says nothing, what `below` says. */
function mergeFields(above: OwnFields, below: OwnFields): OwnFields {
  return {
    name: above.name ?? below.name,
    color: above.color ?? below.color,
    type: above.type ?? below.type,
    radiusM: above.radiusM ?? below.radiusM,
    bufferM: above.bufferM ?? below.bufferM,
    externalId: above.externalId ?? below.externalId,
    dwellSeconds: above.dwellSeconds ?? below.dwellSeconds,
  };
}

/** The draft of one geometry with a Feature's properties; `body` holds the fields sent beside them, which win. */
export function featureDraft(part: GeometryPart, properties: OwnFields, body: OwnFields | null): AreaDraft {
  const own = body ? mergeFields(body, properties) : properties;
  const type = sentTypeOf(part, properties.type, body?.type);
  const isPoint = part.type === 'point';
  return {
    ...own,
    type: type ?? ok(isPoint && own.radiusM !== undefined ? 'circle' : part.type),
    typeIsAssumed: isPoint && type === undefined,
    center: isPoint ? part.center : undefined,
    points: isPoint ? undefined : validDraftPoints(part.points),
    geojsonError: null,
    hadHoles: part.hadHoles,
  };
}

/** A property named type often means something else, so it counts only where it fits; the type of a body must fit. */
function sentTypeOf(part: GeometryPart, property: Sent<AreaType>, body: Sent<AreaType>): Sent<AreaType> {
  if (body) return !body.ok || fits(body.value, part) ? body : fail(AREA_ERRORS.typeMisfit);
  return property?.ok && fits(property.value, part) ? property : undefined;
}

function fits(type: AreaType, part: GeometryPart): boolean {
  return type === part.type || (type === 'circle' && part.type === 'point');
}

/** An area as it may be saved, what is computed from it, and the warnings for its owner. */
export interface ValidArea {
  readonly definition: AreaDefinition;
  readonly measures: AreaMeasures;
  readonly warnings: readonly AreaWarning[];
}

/** The draft as a new area, with defaults for what was not sent; or every invalid field. */
export function completeDraft(draft: AreaDraft): Result<ValidArea, readonly FieldError[]> {
  return mergeDraft(null, draft);
}

/**
 * The stored area (null: none) with the sent fields changed; or every invalid field. A draft of another type replaces
 * the whole geometry: nothing of the old one is kept, even where both types have the same field (a radius). Fields that
 * the area's type does not have are ignored, so what was read can be sent back. Warnings are about what was sent.
 */
export function mergeDraft(
  stored: AreaDefinition | null,
  draft: AreaDraft,
): Result<ValidArea, readonly FieldError[]> {
  const errors: FieldError[] = [];
  const name = takeField(draft.name, errors) ?? stored?.name;
  if (name === undefined && draft.name === undefined) errors.push(AREA_ERRORS.nameRequired);
  const color = takeField(draft.color, errors) ?? stored?.color ?? DEFAULT_COLOR;
  const warnings: AreaWarning[] = [];
  const geometry = mergeGeometry(stored?.geometry ?? null, draft, errors, warnings);
  const sentId = takeField(draft.externalId, errors);
  const externalId = sentId === undefined ? (stored?.externalId ?? null) : sentId;
  const dwellSeconds = takeField(draft.dwellSeconds, errors) ?? stored?.dwellSeconds ?? 0;
  if (errors.length > 0 || name === undefined || geometry === null) return fail(errors);

  const measures = areaMeasures(geometry);
  if (geometry !== stored?.geometry) warnings.push(...sizeWarnings(measures.areaM2));
  return ok({ definition: { name, color, geometry, externalId, dwellSeconds }, measures, warnings });
}

/** The value of a sent field; undefined when it was not sent, or was wrong, which is then added to `errors`. */
function takeField<T>(sent: Sent<T>, errors: FieldError[]): T | undefined {
  if (sent === undefined) return undefined;
  if (sent.ok) return sent.value;
  errors.push(sent.error);
  return undefined;
}

/**
 * The geometry that a draft makes of the stored one: the stored one itself where the draft does not change it, null
 * where it makes none, with the reasons in `errors`.
 */
function mergeGeometry(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
  warnings: AreaWarning[],
): AreaGeometry | null {
  const sentType = takeField(draft.type, errors);
  if (draft.geojsonError) {
    errors.push(draft.geojsonError);
    return null;
  }
  if (draft.type && sentType === undefined) return null;
  const type = draft.typeIsAssumed && stored?.type === 'circle' ? 'circle' : (sentType ?? stored?.type);
  switch (type) {
    case 'circle':
    case 'point':
      return mergeCircle(type, stored, draft, errors);
    case 'polygon':
      if (stored?.type === type && draft.points === undefined) return stored;
      return mergePolygon(draft, errors, warnings);
    case 'polyline':
      return mergePolyline(stored, draft, errors, warnings);
    case undefined:
      errors.push(AREA_ERRORS.typeInvalid);
      return null;
  }
}

function mergeCircle(
  type: Circle['type'],
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): Circle | null {
  const kept = stored !== null && 'radiusM' in stored && stored.type === type ? stored : null;
  if (kept && draft.center === undefined && draft.radiusM === undefined) return kept;
  const center = takeField(draft.center, errors) ?? kept?.center;
  if (center === undefined && draft.center === undefined) errors.push(AREA_ERRORS.centerRequired);
  const fallback = type === 'point' ? LIMITS.defaultPointRadiusM : undefined;
  const radiusM = draft.radiusM ?? kept?.radiusM ?? fallback;
  const error = radiusError(type, radiusM);
  if (error) errors.push(error);
  return center === undefined || radiusM === undefined || error ? null : { type, center, radiusM };
}

function mergePolygon(draft: AreaDraft, errors: FieldError[], warnings: AreaWarning[]): AreaGeometry | null {
  if (draft.hadHoles) warnings.push(AREA_WARNINGS.warnHolesIgnored);
  const points = validPoints('polygon', draft, errors, warnings);
  return points && { type: 'polygon', points };
}

function mergePolyline(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
  warnings: AreaWarning[],
): AreaGeometry | null {
  const kept = stored?.type === 'polyline' ? stored : null;
  if (kept && draft.points === undefined && draft.bufferM === undefined) return kept;
  const bufferM = draft.bufferM ?? kept?.bufferM ?? LIMITS.defaultBufferM;
  const error = bufferError(bufferM);
  if (error) errors.push(error);
  const points =
    kept && draft.points === undefined ? kept.points : validPoints('polyline', draft, errors, warnings);
  return error || !points ? null : { type: 'polyline', points, bufferM };
}

function validPoints(
  type: 'polygon' | 'polyline',
  draft: AreaDraft,
  errors: FieldError[],
  warnings: AreaWarning[],
): Vertices | null {
  const sent = draft.points ?? fail(AREA_ERRORS.pointsTooFew);
  const isChecked = !sent.ok || sent.value.isValid;
  const points = takeField(isChecked ? sent : validatePoints(type, toLatLngs(sent.value.points)), errors);
  if (points?.simplified) warnings.push(AREA_WARNINGS.warnSimplifiedDuplicates);
  return points?.points ?? null;
}

/** What is worth knowing about an area that was accepted all the same. `code` is on the wire and fixed. */
export interface AreaWarning {
  readonly code: WarningCode;
  readonly message: string;
}

export type WarningCode =
  | 'warnHolesIgnored'
  | 'warnSimplifiedDuplicates'
  | 'warnVerySmallArea'
  | 'warnVeryLargeArea';

export const AREA_WARNINGS: { readonly [Code in WarningCode]: AreaWarning } = {
  warnHolesIgnored: {
    code: 'warnHolesIgnored',
    message: 'interior rings of the polygon are ignored: the area has no holes',
  },
  warnSimplifiedDuplicates: {
    code: 'warnSimplifiedDuplicates',
    message: 'vertices closer than 0.1 m to the one before them were dropped',
  },
  warnVerySmallArea: { code: 'warnVerySmallArea', message: 'the area is smaller than 100 m²' },
  warnVeryLargeArea: { code: 'warnVeryLargeArea', message: 'the area is larger than 10 000 km²' },
};

/** Points and polylines have no size, so no warning. */
function sizeWarnings(areaM2: number | null): AreaWarning[] {
  if (areaM2 === null) return [];
  if (areaM2 < VERY_SMALL_M2) return [AREA_WARNINGS.warnVerySmallArea];
  return areaM2 > VERY_LARGE_M2 ? [AREA_WARNINGS.warnVeryLargeArea] : [];
}

const VERY_SMALL_M2 = 100;
const VERY_LARGE_M2 = 10_000 * 1e6;
