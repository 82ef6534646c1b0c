import { isJsonObject, isMissing, parseJson } from '../../lib/parseText.ts';
import { type FieldCode, type FieldError, fail, ok, type Result } from '../../lib/result.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { AreaDraft, OwnFields, ValidArea } from '../areaDraft.ts';
import { completeDraft, featureDraft, readName, readProperties } from '../areaDraft.ts';
import { AREA_ERRORS } from '../areaFields.ts';
import { GEOMETRY_ERRORS, type GeometryPart, isGeometryType, readGeometry } from '../geojson.ts';

/**
 * What an import body asks for, as far as it is known without the stored areas; resolveImport does the rest. Plain
 * data, so that another process can send it.
 */
export interface ImportPlan {
  /** `dry_run: true` stood in the body. */
  readonly dryRun: boolean;
  /** In the order of the features. */
  readonly items: readonly ImportItem[];
  readonly errors: readonly ImportError[];
  /** How many features exceeded the limit of a call and were ignored. */
  readonly leftOut: number;
}

/** An area without an external id is new, whatever is stored; one with an id may be an update. */
export type ImportItem =
  | { readonly index: number; readonly externalId: null; readonly area: ValidArea }
  | { readonly index: number; readonly externalId: string; readonly draft: AreaDraft };

export const IMPORT_LIMITS = {
  features: 200,
  /** Parts of Multi* geometries included: a MultiPoint of a few megabytes would otherwise be a million areas. */
  areas: 10_000,
} as const;

/**
 * Reads a FeatureCollection, a Feature or a bare Geometry, direct or as { geojson }; yields after each feature,
 * and after each part of one. Never throws, whatever the body. Fails for a body that is not GeoJSON. Any other
 * error rejects only one feature, or one part of one.
 */
export function* planImport(body: unknown): Steps<Result<ImportPlan, readonly FieldError[]>> {
  if (!isJsonObject(body)) return fail([AREA_ERRORS.bodyInvalid]);
  const dryRun = body['dry_run'] ?? false;
  // An invalid value must not turn an intended dry run into an import.
  if (typeof dryRun !== 'boolean') return fail([AREA_ERRORS.dryRunInvalid]);
  const features = featuresOf(isMissing(body['geojson']) ? body : body['geojson']);
  if (features === null) return fail([AREA_ERRORS.importInvalid]);

  const items: ImportItem[] = [];
  const errors: ImportError[] = [];
  // Bad parts count as well: an answer with millions of errors would help nobody.
  let partsLeft: number = IMPORT_LIMITS.areas;
  const leftOut = Math.max(0, features.length - IMPORT_LIMITS.features);
  if (leftOut > 0) errors.push({ index: -1, code: 'errTooManyFeatures' });
  for (const [index, feature] of features.slice(0, IMPORT_LIMITS.features).entries()) {
    const parts = partsOf(feature, partsLeft);
    if (parts.ok) {
      partsLeft -= parts.value.length;
      yield* planParts(index, parts.value, items, errors);
    } else {
      errors.push({ index, ...parts.error });
    }
    yield;
  }
  return ok({ dryRun, items, errors, leftOut });
}

const BARE_GEOMETRY_NAME = 'Imported area';

/** The features of any of the three forms; null for a body in another form. */
function featuresOf(source: unknown): readonly unknown[] | null {
  if (!isJsonObject(source)) return null;
  const { type, features } = source;
  if (type === 'FeatureCollection') return Array.isArray(features) ? features : null;
  if (type === 'Feature') return [source];
  if (!isGeometryType(type)) return null;
  return [{ type: 'Feature', properties: { name: BARE_GEOMETRY_NAME }, geometry: source }];
}

type NamedPart = readonly [part: GeometryPart, properties: OwnFields];

/** The parts of a feature, each with the properties of its area; or why it has none. */
function partsOf(feature: unknown, partsLeft: number): Result<NamedPart[], Omit<ImportError, 'index'>> {
  if (!isJsonObject(feature) || feature['type'] !== 'Feature') return fail({ code: 'errGeoJsonInvalid' });
  const parts = readGeometry(feature['geometry']);
  if (!parts.ok) return fail({ code: parts.error });
  if (parts.value.length > partsLeft) return fail({ code: 'errTooManyFeatures' });
  const properties = readProperties(feature['properties']);
  if (parts.value.length === 1) return ok([[parts.value[0]!, properties]]);
  if (properties.externalId !== undefined) return fail(MULTI_WITH_CODE);
  return ok(parts.value.map((part, k) => [part, numbered(properties, k + 1)]));
}

const MULTI_WITH_CODE = {
  code: 'MULTI_GEOMETRY_EXTERNAL_ID',
  message: 'a Multi* geometry makes several areas, which cannot share one external_id',
} as const;

/** The properties of one part of several: "name (1)", "name (2)", … */
function numbered(properties: OwnFields, number: number): OwnFields {
  const { name } = properties;
  return name?.ok ? { ...properties, name: readName(`${name.value} (${number})`) } : properties;
}

function* planParts(
  index: number,
  parts: readonly NamedPart[],
  items: ImportItem[],
  errors: ImportError[],
): Steps<void> {
  const reported = new Set<FieldError>();
  for (const [k, [part, properties]] of parts.entries()) {
    if (k > 0) yield;
    const unreadable = readingCode(part);
    if (unreadable) {
      errors.push({ index, code: unreadable });
      continue;
    }
    const draft = featureDraft(part, properties, null);
    if (draft.externalId?.ok && draft.externalId.value !== null) {
      items.push({ index, externalId: draft.externalId.value, draft });
      continue;
    }
    const completed = completeDraft(draft);
    if (completed.ok) items.push({ index, externalId: null, area: completed.value });
    else errors.push(...reportOnce(completed.error, reported).map((error) => fieldImportError(index, error)));
  }
}

/** Each bad part is an error of its own, but a bad property that all parts share is one. */
function reportOnce(errors: readonly FieldError[], reported: Set<FieldError>): FieldError[] {
  const fresh = errors.filter((error) => error.field === 'points' || !reported.has(error));
  for (const error of errors) reported.add(error);
  return fresh;
}

/**
 * Why a feature, or one part of it, makes no area: an element of an import's errors[]. Two families, which differ by
 * `message`: codes of reading GeoJSON have none, validation codes of the resulting area and
 * MULTI_GEOMETRY_EXTERNAL_ID have one.
 */
export interface ImportError {
  /** The index of the feature, from 0; -1 for the call as a whole. */
  readonly index: number;
  readonly code: ReadingCode | FieldCode | 'MULTI_GEOMETRY_EXTERNAL_ID';
  readonly message?: string;
}

export const READING_CODES = [
  ...GEOMETRY_ERRORS,
  'errCoordinates',
  'errTooManyPoints',
  'errPolygonMin',
  'errPolylineMin',
  'errTooManyFeatures',
] as const;

type ReadingCode = (typeof READING_CODES)[number];

/** The validation code of a resulting area. */
export function fieldImportError(index: number, { code, message }: FieldError): ImportError {
  return { index, code, message };
}

/** Where a code of the first family says the same about a part as one of the second, import uses the first. */
function readingCode(part: GeometryPart): ReadingCode | null {
  const positions = part.type === 'point' ? part.center : part.points;
  if (positions.ok) return null;
  switch (positions.error.code) {
    case 'INVALID_COORDINATES':
      return 'errCoordinates';
    case 'TOO_MANY_POINTS':
      return 'errTooManyPoints';
    case 'TOO_FEW_POINTS':
      return part.type === 'polygon' ? 'errPolygonMin' : 'errPolylineMin';
    default:
      return null;
  }
}

/** What an import body asks for, what is wrong with it, or that it holds too much. Plain data: it crosses between processes. */
export type PlanReply = Result<ImportPlan, readonly FieldError[] | 'too_many_values'>;

/** Four times the values of 200 areas of 2000 points. */
export const MAX_IMPORT_VALUES = 5_000_000;

/** The plan of a body of at most `maxValues` values. Parsing it is one step, whatever its size. */
export function* planBody(bytes: Uint8Array, maxValues: number): Steps<PlanReply> {
  const json = parseJson(bytes, maxValues);
  if (!json.ok) return fail(json.error === 'too_many_values' ? json.error : [AREA_ERRORS.bodyInvalid]);
  yield;
  return yield* planImport(json.value);
}
