import type { FieldError } from '../lib/fieldError.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import type { AreaDefinition } from './area.ts';
import type { AreaDraft } from './areaDraft.ts';
import { AREA_ERRORS } from './areaErrors.ts';
import { DEFAULT_COLOR } from './areaLimits.ts';
import { type AreaMeasures, areaMeasures } from './areaMeasures.ts';
import { type AreaWarning, sizeWarnings } from './areaWarning.ts';
import { resolveGeometry, takeField } from './resolveGeometry.ts';

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
 * The stored area with the sent fields changed; or every invalid field. A draft of another type brings a whole new
 * geometry: nothing of the old one is kept, also where both types have such a field (a radius). Fields that the
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
