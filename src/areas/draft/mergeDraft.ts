import type { LatLng } from '../../geo/latLng.ts';
import { unwrapRing } from '../../geo/ring.ts';
import { isSelfIntersecting } from '../../geo/selfIntersection.ts';
import { openRing, simplify } from '../../geo/simplify.ts';
import type { FieldError } from '../../lib/fieldError.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import {
  type AreaDefinition,
  type AreaGeometry,
  type Disc,
  toLatLngs,
  toVertices,
  type Vertices,
} from '../area.ts';
import { type AreaMeasures, areaMeasures } from '../areaMeasures.ts';
import type { AreaDraft, DraftPoints, Sent } from './areaDraft.ts';
import { AREA_ERRORS } from './areaErrors.ts';
import { DEFAULT_COLOR, AREA_LIMITS as LIMITS } from './areaLimits.ts';
import { AREA_WARNINGS, type AreaWarning, sizeWarnings } from './areaWarning.ts';

/** An area as it may be saved, what is computed from it, and the warnings for its owner. */
export interface ValidArea {
  readonly definition: AreaDefinition;
  readonly measures: AreaMeasures;
  readonly warnings: readonly AreaWarning[];
}

/** The draft as a new area, with defaults for what was not sent; or every invalid field. */
export function completeDraft(draft: AreaDraft): Result<ValidArea, readonly FieldError[]> {
  return resolveDraft(null, draft);
}

/**
 * The stored area with the sent fields changed; or every invalid field. A draft of another type replaces the whole
 * geometry: nothing of the old one is kept, even where both types have the same field (a radius). Fields that the
 * area's type does not have are ignored, so what was read can be sent back. Warnings are about what was sent.
 */
export function mergeDraft(
  stored: AreaDefinition,
  draft: AreaDraft,
): Result<ValidArea, readonly FieldError[]> {
  return resolveDraft(stored, draft);
}

function resolveDraft(
  stored: AreaDefinition | null,
  draft: AreaDraft,
): Result<ValidArea, readonly FieldError[]> {
  const errors: FieldError[] = [];
  const name = takeField(draft.name, errors) ?? stored?.name;
  if (name === undefined && draft.name === undefined) errors.push(AREA_ERRORS.nameRequired);
  const color = takeField(draft.color, errors) ?? stored?.color ?? DEFAULT_COLOR;
  const resolved = resolveGeometry(stored?.geometry ?? null, draft, errors);
  const sentId = takeField(draft.externalId, errors);
  const externalId = sentId === undefined ? (stored?.externalId ?? null) : sentId;
  const dwellSeconds = takeField(draft.dwellSeconds, errors) ?? stored?.dwellSeconds ?? 0;
  if (errors.length > 0 || name === undefined || resolved === null) return fail(errors);

  const { geometry } = resolved;
  const measures = areaMeasures(geometry);
  const warnings = [...resolved.warnings];
  if (geometry !== stored?.geometry) warnings.push(...sizeWarnings(measures.areaM2));
  return ok({ definition: { name, color, geometry, externalId, dwellSeconds }, measures, warnings });
}

interface ResolvedGeometry {
  /** The stored geometry itself where the draft has nothing to say about it. */
  readonly geometry: AreaGeometry;
  readonly warnings: readonly AreaWarning[];
}

/** The geometry that a draft makes of the stored one (null: out of nothing); or null, with the reasons in `errors`. */
function resolveGeometry(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): ResolvedGeometry | null {
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
      return resolveDisc(type, stored, draft, errors);
    case 'polygon':
      return resolvePolygon(stored, draft, errors);
    case 'polyline':
      return resolveTrack(stored, draft, errors);
    case undefined:
      errors.push(AREA_ERRORS.typeInvalid);
      return null;
  }
}

/** The value of a sent field; undefined when it was not sent, or was wrong, which is then added to `errors`. */
function takeField<T>(sent: Sent<T>, errors: FieldError[]): T | undefined {
  if (sent === undefined) return undefined;
  if (sent.ok) return sent.value;
  errors.push(sent.error);
  return undefined;
}

function resolveDisc(
  type: Disc['type'],
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): ResolvedGeometry | null {
  const isDisc = stored?.type === 'circle' || stored?.type === 'point';
  const kept = isDisc && stored.type === type ? stored : null;
  if (kept && draft.center === undefined && draft.radiusM === undefined)
    return { geometry: kept, warnings: [] };

  const center = takeField(draft.center, errors) ?? kept?.center;
  if (center === undefined && draft.center === undefined) errors.push(AREA_ERRORS.centerRequired);
  const radiusM =
    draft.radiusM ?? kept?.radiusM ?? (type === 'point' ? LIMITS.defaultPlaceRadiusM : undefined);
  const error = radiusError(type, radiusM);
  if (error) errors.push(error);
  if (center === undefined || radiusM === undefined || error) return null;
  return { geometry: { type, center, radiusM }, warnings: [] };
}

function radiusError(type: Disc['type'], radiusM: number | undefined): FieldError | null {
  if (radiusM === undefined) return AREA_ERRORS.radiusRequired;
  if (type === 'point') {
    return radiusM > 0 && radiusM <= LIMITS.maxRadiusM ? null : AREA_ERRORS.placeRadiusOutOfRange;
  }
  const sound = radiusM >= LIMITS.circleMinRadiusM && radiusM <= LIMITS.maxRadiusM;
  return sound ? null : AREA_ERRORS.circleRadiusOutOfRange;
}

function resolvePolygon(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): ResolvedGeometry | null {
  if (stored?.type === 'polygon' && draft.points === undefined) return { geometry: stored, warnings: [] };
  const warnings: AreaWarning[] = draft.hadHoles ? [AREA_WARNINGS.warnHolesIgnored] : [];
  const points = resolvePoints('polygon', draft, errors, warnings);
  return points && { geometry: { type: 'polygon', points }, warnings };
}

function resolveTrack(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): ResolvedGeometry | null {
  const kept = stored?.type === 'polyline' ? stored : null;
  if (kept && draft.points === undefined && draft.bufferM === undefined)
    return { geometry: kept, warnings: [] };

  const bufferM = draft.bufferM ?? kept?.bufferM ?? LIMITS.defaultBufferM;
  const sound = bufferM >= LIMITS.minBufferM && bufferM <= LIMITS.maxBufferM;
  if (!sound) errors.push(AREA_ERRORS.bufferOutOfRange);
  const warnings: AreaWarning[] = [];
  const points =
    kept && draft.points === undefined ? kept.points : resolvePoints('polyline', draft, errors, warnings);
  return sound && points ? { geometry: { type: 'polyline', points, bufferM }, warnings } : null;
}

function resolvePoints(
  type: 'polygon' | 'polyline',
  draft: AreaDraft,
  errors: FieldError[],
  warnings: AreaWarning[],
): Vertices | null {
  const sent = draft.points ?? { ok: false, error: AREA_ERRORS.pointsTooFew };
  const validated =
    sent.ok && sent.value.validatedAs === null ? validatePoints(type, toLatLngs(sent.value.points)) : sent;
  const points = takeField(validated, errors);
  if (points === undefined) return null;
  if (points.simplified) warnings.push(AREA_WARNINGS.warnSimplifiedDuplicates);
  return points.points;
}

/**
 * The points as an area of that type stores them, or the first error: too many, too few once nearly coincident ones are
 * dropped, or edges that meet. The repeated last point of a polygon does not count.
 */
export function validatePoints(
  type: 'polygon' | 'polyline',
  positions: readonly LatLng[],
): Result<DraftPoints, FieldError> {
  const isPolygon = type === 'polygon';
  const open = isPolygon ? openRing(positions) : positions;
  if (open.length > LIMITS.maxPoints) return fail(AREA_ERRORS.pointsTooMany);
  const { points, dropped } = simplify(open, isPolygon);
  if (points.length < (isPolygon ? LIMITS.polygonMinPoints : LIMITS.polylineMinPoints)) {
    return fail(AREA_ERRORS.pointsTooFew);
  }
  if (isPolygon && isSelfIntersecting(unwrapRing(points))) return fail(AREA_ERRORS.selfIntersection);
  return ok({ points: toVertices(points), validatedAs: type, simplified: dropped });
}
