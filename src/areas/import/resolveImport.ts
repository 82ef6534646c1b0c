import type { FieldError } from '../../lib/fieldError.ts';
import { ok, type Result } from '../../lib/result.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { AreaDefinition } from '../area.ts';
import { type AreaQuota, grown, growthOf, quotaErrorOf } from '../areaQuota.ts';
import type { WarningCode } from '../draft/areaWarning.ts';
import { completeDraft, mergeDraft, type ValidArea } from '../draft/mergeDraft.ts';
import { fieldImportError, type ImportError } from './importError.ts';
import type { ImportItem, ImportPlan } from './importPlan.ts';

/** What an import does. A dry run and a real one resolve the same plan, so the first predicts the second. */
export interface ImportOutcome {
  /** Every area to insert or update, once, in its final state and in the order it was first mentioned. */
  readonly writes: readonly ImportWrite[];
  /** One entry for each area that a feature made; `write` is a place in `writes`. In the order of the features. */
  readonly created: readonly { readonly index: number; readonly write: number }[];
  /** One entry for each change; an area that two features name stands here twice, or here and in `created`. */
  readonly updated: readonly {
    readonly index: number;
    readonly externalId: string;
    readonly write: number;
  }[];
  /** By index. */
  readonly errors: readonly ImportError[];
  readonly warnings: readonly ImportWarning[];
}

export interface ImportWrite {
  /** false: the stored area with the same code is updated. */
  readonly isNew: boolean;
  readonly area: ValidArea;
}

export interface ImportWarning {
  readonly index: number;
  readonly code: WarningCode;
}

/**
 * Decides which items create and which update. `lookup` answers with the stored area that has a code, in the
 * namespace of the caller's account. A code that comes twice in one call is created (or updated) by its first
 * feature and updated by the next. What `quota` has no room for is left out, with one error for each feature; what comes
 * after it may fit. Yields after each item.
 */
export function* resolveImport(
  plan: ImportPlan,
  lookup: (externalId: string) => AreaDefinition | undefined,
  quota: AreaQuota,
): Steps<ImportOutcome> {
  const writes: ImportWrite[] = [];
  const created: ImportOutcome['created'][number][] = [];
  const updated: ImportOutcome['updated'][number][] = [];
  const errors = [...plan.errors];
  const warnings = new Map<string, ImportWarning>();
  const placeOfCode = new Map<string, number>();
  const excessive = new Set<number>();
  let used = quota;

  for (const item of plan.items) {
    const place = item.externalId === null ? undefined : placeOfCode.get(item.externalId);
    const earlier = place === undefined ? undefined : writes[place];
    const stored =
      earlier?.area.definition ?? (item.externalId === null ? undefined : lookup(item.externalId));
    const resolved = resolveItem(item, stored);
    yield;
    if (!resolved.ok) {
      errors.push(...resolved.error.map((error) => fieldImportError(item.index, error)));
      continue;
    }
    const growth = growthOf(stored ?? null, resolved.value.definition);
    const excess = quotaErrorOf(used, growth);
    if (excess !== null) {
      if (!excessive.has(item.index)) errors.push(fieldImportError(item.index, excess));
      excessive.add(item.index);
      continue;
    }
    used = grown(used, growth);
    const write = place ?? writes.length;
    writes[write] = { isNew: earlier ? earlier.isNew : stored === undefined, area: resolved.value };
    if (item.externalId !== null) placeOfCode.set(item.externalId, write);
    if (item.externalId !== null && stored)
      updated.push({ index: item.index, externalId: item.externalId, write });
    else created.push({ index: item.index, write });
    for (const { code } of resolved.value.warnings) {
      if (IMPORT_WARNINGS.has(code)) warnings.set(`${item.index} ${code}`, { index: item.index, code });
    }
  }
  errors.sort((a, b) => a.index - b.index);
  return { writes, created, updated, errors, warnings: [...warnings.values()] };
}

/** The warnings of reading; those about an area's size are given only when a call creates or updates a single area. */
export const IMPORT_WARNINGS: ReadonlySet<WarningCode> = new Set([
  'warnHolesIgnored',
  'warnSimplifiedDuplicates',
]);

function resolveItem(
  item: ImportItem,
  stored: AreaDefinition | undefined,
): Result<ValidArea, readonly FieldError[]> {
  if (item.externalId === null) return ok(item.area);
  return stored ? mergeDraft(stored, item.draft) : completeDraft(item.draft);
}
