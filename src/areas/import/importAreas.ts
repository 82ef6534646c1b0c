import { type WritePorts, writeWorlds } from '../../changelog/writeWorlds.ts';
import { invariant } from '../../lib/errors.ts';
import { ok } from '../../lib/result.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { Tx } from '../../postgres/sql.ts';
import type { StoredArea } from '../area.ts';
import { mergeDraft, type ValidArea } from '../areaDraft.ts';
import { AREA_ERRORS, type WarningCode } from '../areaFields.ts';
import {
  type AreaOwner,
  type AreaQuota,
  type AreaSize,
  insertAreas,
  lockAreaQuota,
  lockAreasByExternalId,
  lockExternalIds,
  moveArea,
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
  const ids = outcome.writes.map((write) => write.stored?.id);
  return reportOf(plan, outcome, ids);
}

/**
 * Creates and updates what the plan asks for, all of it in one transaction; what is invalid costs only itself. All of it
 * comes into the world `worldId`; null: what is new into that of the account, and the rest stays where it is.
 */
export function importAreas(
  ports: WritePorts,
  writer: AreaWriter,
  plan: ImportPlan,
  worldId: number | null = null,
): Promise<ImportReport> {
  return writeWorlds(ports, async (scope) => {
    const { tx } = scope;
    const { accountId } = writer;
    const externalIds = externalIdsOf(plan);
    if (externalIds.length > 0) await lockExternalIds(tx, accountId);
    const stored = await lockAreasByExternalId(tx, accountId, externalIds);
    const outcome = await resolve(scope, plan, writer, stored, await lockAreaQuota(tx, accountId));
    const owner = { worldId: worldId ?? (writer.worldIds[0] as number), accountId };
    const saved = await save(tx, owner, outcome.writes);
    const moved = saved.filter((area) => worldId !== null && area.worldId !== worldId);
    for (const { id } of moved) await moveArea(tx, id, owner.worldId);
    const arrived = moved.map((area) => ({ ...area, worldId: owner.worldId }));
    for (const [changedWorldId, areas] of Map.groupBy([...saved, ...arrived], (area) => area.worldId)) {
      scope.changed({ kind: 'area', worldId: changedWorldId, entityIds: areas.map(({ id }) => id) });
    }
    const ids = saved.map(({ id }) => id);
    return reportOf(plan, outcome, ids);
  });
}

/** The areas in the order of the writes. */
async function save(
  tx: Tx,
  owner: AreaOwner,
  writes: readonly ImportWrite[],
): Promise<Pick<StoredArea, 'id' | 'worldId'>[]> {
  const fresh = writes.filter(({ stored }) => stored === null).map(({ area }) => area);
  const freshIds = await insertAreas(tx, owner, fresh);
  invariant(freshIds !== null, 'no other transaction adds an external id at the same time');
  for (const { stored, area } of writes) {
    if (stored !== null) await updateArea(tx, stored.id, area.definition, area.measures);
  }
  let inserted = 0;
  return writes.map(({ stored }) => stored ?? { id: freshIds[inserted++] as number, worldId: owner.worldId });
}

/** Resolves in turns: the transaction waits, the other requests do not. */
function resolve(
  { turns }: Pick<WritePorts, 'turns'>,
  plan: ImportPlan,
  writer: AreaWriter,
  areas: readonly StoredArea[],
  quota: AreaQuota,
): Promise<ImportOutcome> {
  const stored = new Map(areas.map((area) => [area.definition.externalId as string, area]));
  const isUnseen = ({ externalId }: ImportItem): boolean => {
    const area = externalId === null ? undefined : stored.get(externalId);
    return area !== undefined && !writer.worldIds.includes(area.worldId);
  };
  const taken = plan.items
    .filter(isUnseen)
    .map(({ index }) => fieldImportError(index, AREA_ERRORS.externalIdTaken));
  const items = plan.items.filter((item) => !isUnseen(item));
  const seen = { ...plan, items, errors: [...plan.errors, ...taken] };
  return turns.run(writer.accountId, resolveImport(seen, stored, quota));
}

function externalIdsOf(plan: ImportPlan): string[] {
  return [...new Set(plan.items.flatMap((item) => (item.externalId === null ? [] : [item.externalId])))];
}

/** `ids` in the order of the outcome's writes; undefined where there is none yet. */
function reportOf(
  plan: ImportPlan,
  { created, updated, errors, warnings }: ImportOutcome,
  ids: readonly (number | undefined)[],
): ImportReport {
  const idAt = (write: number) => (ids[write] === undefined ? {} : { id: ids[write] });
  return {
    created: created.map(({ index, write }) => ({ index, ...idAt(write) })),
    updated: updated.map(({ index, externalId: external_id, write }) => ({
      index,
      ...idAt(write),
      external_id,
    })),
    errors,
    warnings,
    ...(plan.leftOut > 0 ? { left_out: plan.leftOut } : {}),
  };
}

/** What an import does. A dry run and a real one resolve the same plan, so the first predicts the second. */
export interface ImportOutcome<Stored extends Defined = StoredArea> {
  /** Every area to insert or update, once, in its final state and in the order it was first mentioned. */
  readonly writes: readonly ImportWrite<Stored>[];
  /** One entry for each area that a feature made; `write` is an index of `writes`. In the order of the features. */
  readonly created: readonly { readonly index: number; readonly write: number }[];
  /** One entry for each change; an area that two features name is here twice, or here and in `created`. */
  readonly updated: readonly {
    readonly index: number;
    readonly externalId: string;
    readonly write: number;
  }[];
  /** By index. */
  readonly errors: readonly ImportError[];
  readonly warnings: readonly ImportWarning[];
}

/** What is known of an area that exists. */
export type Defined = Pick<StoredArea, 'definition'>;

interface ImportWrite<Stored extends Defined = StoredArea> {
  /** The area to update; null for a new one. */
  readonly stored: Stored | null;
  readonly area: ValidArea;
}

export interface ImportWarning {
  readonly index: number;
  readonly code: WarningCode;
}

/**
 * Decides which items create and which update. `stored` has the areas of the caller's account by external id. An id that
 * comes twice in one call is created (or updated) by its first feature and updated by the next. What `quota` has no room
 * for is left out, with one error for each feature; what comes after it may fit. Yields after each item.
 */
export function* resolveImport<Stored extends Defined = StoredArea>(
  plan: ImportPlan,
  stored: ReadonlyMap<string, Stored>,
  quota: AreaQuota,
): Steps<ImportOutcome<Stored>> {
  const writes: ImportWrite<Stored>[] = [];
  const created: ImportOutcome['created'][number][] = [];
  const updated: ImportOutcome['updated'][number][] = [];
  const errors = [...plan.errors];
  const warnings = new Map<string, ImportWarning>();
  const writeOfId = new Map<string, number>();
  const excessive = new Set<number>();
  let used = quota;

  for (const item of plan.items) {
    const { index, externalId } = item;
    const write = (externalId === null ? undefined : writeOfId.get(externalId)) ?? writes.length;
    const target = externalId === null ? null : (writes[write]?.stored ?? stored.get(externalId) ?? null);
    const before = writes[write]?.area.definition ?? target?.definition ?? null;
    const resolved = item.externalId === null ? ok(item.area) : mergeDraft(before, item.draft);
    yield;
    if (!resolved.ok) {
      errors.push(...resolved.error.map((error) => fieldImportError(index, error)));
      continue;
    }
    const growth = growthOf(before, resolved.value.definition);
    const excess = quotaErrorOf(used, growth);
    if (excess !== null) {
      if (!excessive.has(index)) errors.push(fieldImportError(index, excess));
      excessive.add(index);
      continue;
    }
    used = grown(used, growth);
    writes[write] = { stored: target, area: resolved.value };
    if (externalId !== null) writeOfId.set(externalId, write);
    if (externalId !== null && before !== null) updated.push({ index, externalId, write });
    else created.push({ index, write });
    for (const { code } of resolved.value.warnings) {
      if (IMPORT_WARNINGS.has(code)) warnings.set(`${index} ${code}`, { index, code });
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
