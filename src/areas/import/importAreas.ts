import { type WritePorts, type WriteScope, writeWorlds } from '../../changelog/writeWorlds.ts';
import { invariant } from '../../lib/invariant.ts';
import type { StoredArea } from '../areaMeasures.ts';
import { type AreaQuota, type AreaSize, grown } from '../areaQuota.ts';
import {
  insertAreas,
  lockAreasByExternalId,
  lockExternalIds,
  selectAreasByExternalId,
  updateArea,
} from '../areas.sql.ts';
import { lockAreaQuota, selectAreaQuota } from '../areaUsage.sql.ts';
import { AREA_ERRORS } from '../draft/areaErrors.ts';
import type { AreaWriter } from '../saveArea.ts';
import type { ImportError } from './importError.ts';
import type { ImportItem, ImportPlan } from './importPlan.ts';
import { type ImportOutcome, type ImportWarning, resolveImport } from './resolveImport.ts';

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
  const stored = await selectAreasByExternalId(ports.sql, writer.accountId, codesOf(plan));
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
  const codes = codesOf(plan);
  if (codes.length > 0) await lockExternalIds(scope.tx, writer.accountId);
  const stored = await lockAreasByExternalId(scope.tx, writer.accountId, codes);
  const outcome = await resolve(scope, plan, writer, stored, await lockAreaQuota(scope.tx, writer.accountId));
  const storedByCode = new Map(stored.map((area) => [area.definition.externalId, area]));
  const owner = { worldId: writer.worldIds[0] as number, accountId: writer.accountId };
  const fresh = outcome.writes.filter((write) => write.isNew).map((write) => write.area);
  const freshIds = await insertAreas(scope.tx, owner, fresh);
  invariant(freshIds !== null, 'nobody else brings in a code meanwhile');

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

function codesOf(plan: ImportPlan): string[] {
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
