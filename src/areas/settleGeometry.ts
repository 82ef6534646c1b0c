import { type AreaGeometry, type Disc, toLatLngs, type Vertices } from './area.ts';
import type { AreaDraft, Sent } from './areaDraft.ts';
import { AREA_LIMITS as LIMITS } from './areaLimits.ts';
import { AREA_WARNINGS, type AreaWarning } from './areaWarning.ts';
import { FIELD_ERRORS, type FieldError } from './fieldError.ts';
import { judgePoints } from './judgePoints.ts';

export interface SettledGeometry {
  /** The stored geometry itself where the draft has nothing to say about it. */
  readonly geometry: AreaGeometry;
  readonly warnings: readonly AreaWarning[];
}

/** The geometry that a draft makes of the stored one (null: out of nothing); or null, with the reasons in `errors`. */
export function settleGeometry(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): SettledGeometry | null {
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
      return settleDisc(type, stored, draft, errors);
    case 'polygon':
      return settlePolygon(stored, draft, errors);
    case 'polyline':
      return settleTrack(stored, draft, errors);
    case undefined:
      errors.push(FIELD_ERRORS.typeInvalid);
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

function settleDisc(
  type: Disc['type'],
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): SettledGeometry | null {
  const isDisc = stored?.type === 'circle' || stored?.type === 'point';
  const kept = isDisc && stored.type === type ? stored : null;
  if (kept && draft.center === undefined && draft.radiusM === undefined)
    return { geometry: kept, warnings: [] };

  const center = takeField(draft.center, errors) ?? kept?.center;
  if (center === undefined && draft.center === undefined) errors.push(FIELD_ERRORS.centerRequired);
  const radiusM =
    draft.radiusM ?? kept?.radiusM ?? (type === 'point' ? LIMITS.defaultPlaceRadiusM : undefined);
  const fault = radiusFault(type, radiusM);
  if (fault) errors.push(fault);
  if (center === undefined || radiusM === undefined || fault) return null;
  return { geometry: { type, center, radiusM }, warnings: [] };
}

function radiusFault(type: Disc['type'], radiusM: number | undefined): FieldError | null {
  if (radiusM === undefined) return FIELD_ERRORS.radiusRequired;
  if (type === 'point') {
    return radiusM > 0 && radiusM <= LIMITS.maxRadiusM ? null : FIELD_ERRORS.placeRadiusOutOfRange;
  }
  const sound = radiusM >= LIMITS.circleMinRadiusM && radiusM <= LIMITS.maxRadiusM;
  return sound ? null : FIELD_ERRORS.circleRadiusOutOfRange;
}

function settlePolygon(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): SettledGeometry | null {
  if (stored?.type === 'polygon' && draft.points === undefined) return { geometry: stored, warnings: [] };
  const warnings: AreaWarning[] = draft.hadHoles ? [AREA_WARNINGS.warnHolesIgnored] : [];
  const points = settlePoints('polygon', draft, errors, warnings);
  return points && { geometry: { type: 'polygon', points }, warnings };
}

function settleTrack(
  stored: AreaGeometry | null,
  draft: AreaDraft,
  errors: FieldError[],
): SettledGeometry | null {
  const kept = stored?.type === 'polyline' ? stored : null;
  if (kept && draft.points === undefined && draft.bufferM === undefined)
    return { geometry: kept, warnings: [] };

  const bufferM = draft.bufferM ?? kept?.bufferM ?? LIMITS.defaultBufferM;
  const sound = bufferM >= LIMITS.minBufferM && bufferM <= LIMITS.maxBufferM;
  if (!sound) errors.push(FIELD_ERRORS.bufferOutOfRange);
  const warnings: AreaWarning[] = [];
  const points =
    kept && draft.points === undefined ? kept.points : settlePoints('polyline', draft, errors, warnings);
  return sound && points ? { geometry: { type: 'polyline', points, bufferM }, warnings } : null;
}

function settlePoints(
  type: 'polygon' | 'polyline',
  draft: AreaDraft,
  errors: FieldError[],
  warnings: AreaWarning[],
): Vertices | null {
  const sent = draft.points ?? { ok: false, error: FIELD_ERRORS.pointsTooFew };
  const judged =
    sent.ok && sent.value.judgedAs === null ? judgePoints(type, toLatLngs(sent.value.points)) : sent;
  const points = takeField(judged, errors);
  if (points === undefined) return null;
  if (points.simplified) warnings.push(AREA_WARNINGS.warnSimplifiedDuplicates);
  return points.points;
}
