import type { FieldError } from '../lib/fieldError.ts';
import { type AreaGeometry, type Disc, toLatLngs, type Vertices } from './area.ts';
import type { AreaDraft, Sent } from './areaDraft.ts';
import { AREA_ERRORS } from './areaErrors.ts';
import { AREA_LIMITS as LIMITS } from './areaLimits.ts';
import { AREA_WARNINGS, type AreaWarning } from './areaWarning.ts';
import { validatePoints } from './validatePoints.ts';

export interface ResolvedGeometry {
  /** The stored geometry itself where the draft has nothing to say about it. */
  readonly geometry: AreaGeometry;
  readonly warnings: readonly AreaWarning[];
}

/** The geometry that a draft makes of the stored one (null: out of nothing); or null, with the reasons in `errors`. */
export function resolveGeometry(
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
export function takeField<T>(sent: Sent<T>, errors: FieldError[]): T | undefined {
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
