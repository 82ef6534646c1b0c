import { isLatLng, type LatLng } from '../geo/wgs84.ts';
import { isJsonObject, isMissing, type JsonObject, parseNameText } from '../lib/parseText.ts';
import { type FieldError, fail, ok, type Result } from '../lib/result.ts';
import {
  type AreaDefinition,
  type AreaGeometry,
  type AreaMeasures,
  type AreaType,
  areaMeasures,
  type Circle,
  toLatLngs,
  toVertices,
  type ValidPoints,
  type Vertices,
  validatePoints,
} from './area.ts';
import {
  AREA_ERRORS,
  AREA_TYPES,
  AREA_WARNINGS,
  type AreaWarning,
  COLOR,
  DEFAULT_COLOR,
  isExternalId,
  AREA_LIMITS as LIMITS,
} from './areaFields.ts';
import { type GeometryPart, readGeometry } from './geojson.ts';

/** A field of a body: undefined when not sent (or null), otherwise its value, or what is wrong with it. */
type Sent<T> = Result<T, FieldError> | undefined;

/** The fields that both forms of a body have beside the geometry: the JSON of the API, and a Feature's properties. */
export interface OwnFields {
  readonly name: Sent<string>;
  readonly color: Sent<string>;
  readonly type: Sent<AreaType>;
  /** As sent, NaN when it was not a number: its range depends on the type. */
  readonly radiusM: number | undefined;
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
  /** `isValid`: checked by the rules of the type of the draft. Otherwise no type was sent. */
  readonly points: Sent<ValidPoints & { readonly isValid: boolean }>;
  /** Set when `geojson` was sent and holds no geometry of one area; nothing is known about the geometry then. */
  readonly geojsonError: FieldError | null;
  /** The polygon came with interior rings, which were dropped. */
  readonly hadHoles: boolean;
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
  const { geojson } = body;
  if (isMissing(geojson)) {
    const center = read(body['center'], latLngOf, AREA_ERRORS.centerInvalid);
    return ok({ ...fields, ...NO_GEOMETRY, center, points: readPoints(body['points'], fields) });
  }
  const feature = isJsonObject(geojson) && geojson['type'] === 'Feature' ? geojson : null;
  const properties = readProperties(feature?.['properties']);
  const parts = readGeometry(feature ? feature['geometry'] : geojson);
  if (parts.ok && parts.value.length === 1) return ok(featureDraft(parts.value[0]!, properties, fields));
  const own = mergeFields(fields, properties);
  return ok({ ...own, ...NO_GEOMETRY, geojsonError: AREA_ERRORS.geojsonInvalid });
}

const NO_GEOMETRY = {
  typeIsAssumed: false,
  center: undefined,
  points: undefined,
  geojsonError: null,
  hadHoles: false,
};

/** Validated at once where the body names a type that has points, and ignored where it names another. */
function readPoints(value: unknown, { type }: OwnFields): AreaDraft['points'] {
  const known = type?.ok ? type.value : null;
  if (isMissing(value) || known === 'circle' || known === 'point') return undefined;
  // What is not an array holds too few.
  if (!Array.isArray(value)) return fail(AREA_ERRORS.pointsTooFew);
  const positions: LatLng[] = [];
  for (const element of value) {
    const position = latLngOf(element);
    if (position === null) return fail(AREA_ERRORS.pointsInvalid);
    positions.push(position);
  }
  if (known) return checkedPoints(validatePoints(known, positions));
  return ok({ points: toVertices(positions), simplified: false, isValid: false });
}

function checkedPoints(points: Result<ValidPoints, FieldError>): AreaDraft['points'] {
  return points.ok ? ok({ ...points.value, isValid: true }) : points;
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
  const isPoint = part.type === 'point';
  const fits = (type: AreaType) => type === part.type || (type === 'circle' && isPoint);
  // A property named type often means something else, so it counts only where it fits; the type of a body must fit.
  let type: Sent<AreaType> = properties.type?.ok && fits(properties.type.value) ? properties.type : undefined;
  if (body?.type) type = !body.type.ok || fits(body.type.value) ? body.type : fail(AREA_ERRORS.typeMisfit);
  return {
    ...own,
    type: type ?? ok(isPoint && own.radiusM !== undefined ? 'circle' : part.type),
    typeIsAssumed: isPoint && type === undefined,
    center: isPoint ? part.center : undefined,
    points: isPoint ? undefined : checkedPoints(part.points),
    geojsonError: null,
    hadHoles: part.hadHoles,
  };
}

function read<T>(value: unknown, parse: (value: unknown) => T | null, error: FieldError): Sent<T> {
  if (isMissing(value)) return undefined;
  const parsed = parse(value);
  return parsed === null ? fail(error) : ok(parsed);
}

const readColor = (value: unknown): Sent<string> =>
  read(
    value,
    (text) => (typeof text === 'string' && COLOR.test(text) ? text : null),
    AREA_ERRORS.colorInvalid,
  );

const readType = (value: unknown): Sent<AreaType> =>
  read(value, (type) => AREA_TYPES.find((known) => known === type) ?? null, AREA_ERRORS.typeInvalid);

const readDwellSeconds = (value: unknown): Sent<number> =>
  read(value, dwellSecondsOf, AREA_ERRORS.dwellOutOfRange);

function dwellSecondsOf(value: unknown): number | null {
  const isSound = typeof value === 'number' && Number.isInteger(value);
  return isSound && isWithin(value, 0, LIMITS.maxDwellSeconds) ? value + 0 : null;
}

/** Trimmed text of 1 to 100 code points that Postgres can store: no control characters, no lone surrogates. */
export function readName(value: unknown): Sent<string> {
  if (isMissing(value)) return undefined;
  if (typeof value !== 'string') return fail(AREA_ERRORS.nameRequired);
  const name = parseNameText(value, LIMITS.nameMaxCodePoints);
  return name.ok ? name : fail(NAME_ERRORS[name.error]);
}

const NAME_ERRORS = {
  blank: AREA_ERRORS.nameRequired,
  not_plain: AREA_ERRORS.nameInvalid,
  too_long: AREA_ERRORS.nameTooLong,
};

/** Here null is sent: it removes the stored one. */
function readExternalId(value: unknown): Sent<string | null> {
  if (value === undefined) return undefined;
  return value === null || isExternalId(value) ? ok(value) : fail(AREA_ERRORS.externalIdInvalid);
}

/** NaN, which no range has, for other types. */
function readNumber(value: unknown): number | undefined {
  if (isMissing(value)) return undefined;
  return typeof value === 'number' ? value : Number.NaN;
}

/** {lat, lng} with both in range, -0 as 0; null for anything else. */
function latLngOf(value: unknown): LatLng | null {
  if (!isJsonObject(value)) return null;
  const { lat, lng } = value;
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) return null;
  return { lat: lat + 0, lng: lng + 0 };
}

const isWithin = (value: number, min: number, max: number) => value >= min && value <= max;

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
  const { areaM2 } = measures;
  if (geometry !== stored?.geometry && areaM2 !== null) {
    if (areaM2 < VERY_SMALL_M2) warnings.push(AREA_WARNINGS.warnVerySmallArea);
    if (areaM2 > VERY_LARGE_M2) warnings.push(AREA_WARNINGS.warnVeryLargeArea);
  }
  return ok({ definition: { name, color, geometry, externalId, dwellSeconds }, measures, warnings });
}

const VERY_SMALL_M2 = 100;
const VERY_LARGE_M2 = 10_000 * 1e6;

/** The value of a sent field; undefined when it was not sent, or was wrong, which is then added to `errors`. */
function takeField<T>(sent: Sent<T>, errors: FieldError[]): T | undefined {
  if (sent === undefined) return undefined;
  if (sent.ok) return sent.value;
  errors.push(sent.error);
  return undefined;
}

/** The stored geometry itself where the draft does not change it, null where the draft makes none. */
function mergeGeometry(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
  warnings: AreaWarning[],
): AreaGeometry | null {
  const sentType = takeField(draft.type, errors);
  if (draft.geojsonError) errors.push(draft.geojsonError);
  if (draft.geojsonError || draft.type?.ok === false) return null;
  const type = draft.typeIsAssumed && stored?.type === 'circle' ? 'circle' : (sentType ?? stored?.type);
  switch (type) {
    case 'circle':
    case 'point':
      return mergeCircle(type, stored, draft, errors);
    case 'polygon': {
      if (stored?.type === type && draft.points === undefined) return stored;
      if (draft.hadHoles) warnings.push(AREA_WARNINGS.warnHolesIgnored);
      const points = mergePoints(type, draft, errors, warnings);
      return points && { type, points };
    }
    case 'polyline': {
      const kept = stored?.type === type ? stored : null;
      if (kept && draft.points === undefined && draft.bufferM === undefined) return kept;
      const bufferM = draft.bufferM ?? kept?.bufferM ?? LIMITS.defaultBufferM;
      const isSound = isWithin(bufferM, LIMITS.minBufferM, LIMITS.maxBufferM);
      if (!isSound) errors.push(AREA_ERRORS.bufferOutOfRange);
      const points =
        kept && draft.points === undefined ? kept.points : mergePoints(type, draft, errors, warnings);
      return isSound && points ? { type, points, bufferM } : null;
    }
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

function radiusError(type: Circle['type'], radiusM: number | undefined): FieldError | null {
  if (radiusM === undefined) return AREA_ERRORS.radiusRequired;
  if (type === 'point')
    return radiusM > 0 && radiusM <= LIMITS.maxRadiusM ? null : AREA_ERRORS.pointRadiusOutOfRange;
  const isSound = isWithin(radiusM, LIMITS.circleMinRadiusM, LIMITS.maxRadiusM);
  return isSound ? null : AREA_ERRORS.circleRadiusOutOfRange;
}

function mergePoints(
  type: 'polygon' | 'polyline',
  { points: sent = fail(AREA_ERRORS.pointsTooFew) }: AreaDraft,
  errors: FieldError[],
  warnings: AreaWarning[],
): Vertices | null {
  const isChecked = !sent.ok || sent.value.isValid;
  const valid = takeField(isChecked ? sent : validatePoints(type, toLatLngs(sent.value.points)), errors);
  if (valid?.simplified) warnings.push(AREA_WARNINGS.warnSimplifiedDuplicates);
  return valid?.points ?? null;
}
