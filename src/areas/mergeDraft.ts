import { fail, ok, type Result } from '../base/result.ts';
import type { AreaDefinition } from './area.ts';
import type { AreaDraft } from './areaDraft.ts';
import { type AreaFigures, areaFigures } from './areaFigures.ts';
import { DEFAULT_COLOR } from './areaLimits.ts';
import { type AreaWarning, sizeWarnings } from './areaWarning.ts';
import { FIELD_ERRORS, type FieldError } from './fieldError.ts';
import { settleGeometry, takeField } from './settleGeometry.ts';

/** An area as it may be saved, what is computed from it, and what to tell its owner about it. */
export interface ValidArea {
  readonly definition: AreaDefinition;
  readonly figures: AreaFigures;
  readonly warnings: readonly AreaWarning[];
}

/** The draft as a new area, with defaults for what was not sent; or every invalid field. */
export function completeDraft(draft: AreaDraft): Result<ValidArea, readonly FieldError[]> {
  return settle(null, draft);
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
  return settle(stored, draft);
}

function settle(stored: AreaDefinition | null, draft: AreaDraft): Result<ValidArea, readonly FieldError[]> {
  const errors: FieldError[] = [];
  const name = takeField(draft.name, errors) ?? stored?.name;
  if (name === undefined && draft.name === undefined) errors.push(FIELD_ERRORS.nameRequired);
  const color = takeField(draft.color, errors) ?? stored?.color ?? DEFAULT_COLOR;
  const settled = settleGeometry(stored?.geometry ?? null, draft, errors);
  const sentId = takeField(draft.externalId, errors);
  const externalId = sentId === undefined ? (stored?.externalId ?? null) : sentId;
  const dwellSeconds = takeField(draft.dwellSeconds, errors) ?? stored?.dwellSeconds ?? 0;
  if (errors.length > 0 || name === undefined || settled === null) return fail(errors);

  const { geometry } = settled;
  const figures = areaFigures(geometry);
  const warnings = [...settled.warnings];
  if (geometry !== stored?.geometry) warnings.push(...sizeWarnings(figures.areaM2));
  return ok({ definition: { name, color, geometry, externalId, dwellSeconds }, figures, warnings });
}
