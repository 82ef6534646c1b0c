import { type WritePorts, type WriteScope, writeWorlds } from '../../changelog/writeWorlds.ts';
import type { FieldError } from '../../lib/fieldError.ts';
import { invariant } from '../../lib/invariant.ts';
import { ok, type Result } from '../../lib/result.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { AreaDefinition, StoredArea } from '../area.ts';
import { completeDraft, mergeDraft, type ValidArea, type WarningCode } from '../areaDraft.ts';
import { AREA_ERRORS } from '../areaFields.ts';
import {
  type AreaQuota,
  type AreaSize,
  insertAreas,
  lockAreaQuota,
  lockAreasByExternalId,
  lockExternalIds,
  selectAreaQuota,
  selectAreasByExternalId,
  updateArea,
} from '../areas.sql.ts';
import { type AreaWriter, grown, growthOf, quotaErrorOf } from '../saveArea.ts';
import { fieldImportError, type ImportError, type ImportItem, type ImportPlan } from './importPlan.ts';

/** What an import did, or would do. A dry run has no ids of areas that do not exist yet. */
export interface ImportReport {
  readonly created: readonly { readonly index: number; readonly id?: number }[];
  readonly updated: readonly { readonly index: number; readonly id?: number; readonly external_id: string }[];
  readonly errors: readonly ImportError[];
  readonly warnings: readonly ImportWarning[];
  /** How many features were beyond those that a call may have; missing when there were none. */
  readonly left_out?: number;
}

/** What `importAreas` would do, without doing it, in an account that has grown by `growth` more than it has. */
export async function dryRunImport(
  ports: WritePorts,
  writer: AreaWriter,
  plan: ImportPlan,
  growth: AreaSize = { areas: 0, vertices: 0 },
): Promise<ImportReport> {
  const stored = await selectAreasByExternalId(ports.sql, writer.accountId, externalIdsOf(plan));
  const quota = grown(await selectAreaQuota(ports.sql, writer.accountId), growth);
  const outcome = await resolve(ports, plan, writer, stored, quota);
  const idOf = new Map(stored.map((area) => [area.definition.externalId, area.id]));
  return reportOf(
    plan,
    outcome,
    outcome.writes.map(({ area }) => idOf.get(area.definition.externalId)),
  );
}

/** Creates and updates what the plan asks for, all of it in one transaction; what is invalid costs only itself. */
export function importAreas(ports: WritePorts, writer: AreaWriter, plan: ImportPlan): Promise<ImportReport> {
  return writeWorlds(ports, (scope) => save(scope, writer, plan));
}

async function save(scope: WriteScope, writer: AreaWriter, plan: ImportPlan): Promise<ImportReport> {
  const externalIds = externalIdsOf(plan);
  if (externalIds.length > 0) await lockExternalIds(scope.tx, writer.accountId);
  const stored = await lockAreasByExternalId(scope.tx, writer.accountId, externalIds);
  const outcome = await resolve(scope, plan, writer, stored, await lockAreaQuota(scope.tx, writer.accountId));
  const storedByCode = new Map(stored.map((area) => [area.definition.externalId, area]));
  const owner = { worldId: writer.worldIds[0] as number, accountId: writer.accountId };
  const fresh = outcome.writes.filter((write) => write.isNew).map((write) => write.area);
  const freshIds = await insertAreas(scope.tx, owner, fresh);
  invariant(freshIds !== null, 'no other transaction adds an external id at the same time');

  const changed = new Map<number, number[]>([[owner.worldId, [...freshIds]]]);
  const ids: number[] = [];
  for (const { isNew, area } of outcome.writes) {
    const before = isNew ? undefined : storedByCode.get(area.definition.externalId);
    if (before === undefined) {
      ids.push(freshIds.shift() as number);
      continue;
    }
    await updateArea(scope.tx, before.id, area.definition, area.measures);
    ids.push(before.id);
    changed.set(before.worldId, [...(changed.get(before.worldId) ?? []), before.id]);
  }
  for (const [worldId, entityIds] of changed) {
    if (entityIds.length > 0) scope.changed({ kind: 'area', worldId, entityIds });
  }
  return reportOf(plan, outcome, ids);
}

/** Resolves in turns: the transaction waits, the other requests do not. */
function resolve(
  { turns }: Pick<WritePorts, 'turns'>,
  plan: ImportPlan,
  writer: AreaWriter,
  stored: readonly StoredArea[],
  quota: AreaQuota,
): Promise<ImportOutcome> {
  const byCode = new Map(stored.map((area) => [area.definition.externalId, area]));
  const unseen = (item: ImportItem): boolean => {
    const area = item.externalId === null ? undefined : byCode.get(item.externalId);
    return area !== undefined && !writer.worldIds.includes(area.worldId);
  };
  const { code, message } = AREA_ERRORS.externalIdTaken;
  const taken = plan.items.filter(unseen).map(({ index }): ImportError => ({ index, code, message }));
  const seen = {
    ...plan,
    items: plan.items.filter((item) => !unseen(item)),
    errors: [...plan.errors, ...taken],
  };
  return turns.run(
    writer.accountId,
    resolveImport(seen, (externalId) => byCode.get(externalId)?.definition, quota),
  );
}

function externalIdsOf(plan: ImportPlan): string[] {
  return [...new Set(plan.items.flatMap((item) => (item.externalId === null ? [] : [item.externalId])))];
}

/** `ids` in the order of the outcome's writes; undefined where there is none yet. */
function reportOf(
  plan: ImportPlan,
  outcome: ImportOutcome,
  ids: readonly (number | undefined)[],
): ImportReport {
  const idAt = (write: number): { id?: number } => {
    const id = ids[write];
    return id === undefined ? {} : { id };
  };
  return {
    created: outcome.created.map(({ index, write }) => ({ index, ...idAt(write) })),
    updated: outcome.updated.map(({ index, externalId, write }) => ({
      index,
      ...idAt(write),
      external_id: externalId,
    })),
    errors: outcome.errors,
    warnings: outcome.warnings,
    ...(plan.leftOut > 0 ? { left_out: plan.leftOut } : {}),
  };
}

/** What an import does. A dry run and a real one resolve the same plan, so the first predicts the second. */
export interface ImportOutcome {
  /** Every area to insert or update, once, in its final state and in the order it was first mentioned. */
  readonly writes: readonly ImportWrite[];
  /** One entry for each area that a feature made; `write` is an index of `writes`. In the order of the features. */
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

interface ImportWrite {
  /** false: the stored area with the same external id is updated. */
  readonly isNew: boolean;
  readonly area: ValidArea;
}

export interface ImportWarning {
  readonly index: number;
  readonly code: WarningCode;
}

/**
 * Decides which items create and which update. `lookup` answers with the stored area that has a code, in the
 * namespace of the caller's account. An external id that comes twice in one call is created (or updated) by its first
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
  const writeOfId = new Map<string, number>();
  const excessive = new Set<number>();
  let used = quota;

  for (const item of plan.items) {
    const known = item.externalId === null ? undefined : writeOfId.get(item.externalId);
    const earlier = known === undefined ? undefined : writes[known];
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
    const write = known ?? writes.length;
    writes[write] = { isNew: earlier ? earlier.isNew : stored === undefined, area: resolved.value };
    if (item.externalId !== null) writeOfId.set(item.externalId, write);
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
