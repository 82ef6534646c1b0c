import { isDeepStrictEqual } from 'node:util';
import { fieldImportError, type ImportError } from '../../areas/import/importError.ts';
import { type ImportItem, type ImportPlan, planImport } from '../../areas/import/importPlan.ts';
import { resolveImport } from '../../areas/import/resolveImport.ts';
import type { FieldError } from '../../base/fieldError.ts';
import { invariant } from '../../base/invariant.ts';
import { deleteArea, lockArea, selectAreasByExternalId, selectExternalIds } from '../../store/areas/areas.ts';
import { lockAreaQuota, selectAreaQuota } from '../../store/areas/areaUsage.ts';
import { type WritePorts, writeWorlds } from '../feed/writeWorlds.ts';
import { dryRunImport, importAreas } from './importAreas.ts';
import type { AreaWriter } from './saveArea.ts';

/** What some features of a file did to the areas of an account, or would do. */
export interface SyncReport {
  readonly created: number;
  readonly updated: number;
  /** Areas that are as the file says already; nothing is written for them. */
  readonly unchanged: number;
  /** `index` counts the features of the whole file, from 0. */
  readonly errors: readonly ImportError[];
}

const NO_EXTERNAL_ID = {
  field: 'external_id',
  code: 'REQUIRED',
  message: 'external_id is required: without it the area cannot be found again',
} as const satisfies FieldError;

/** Areas that are deleted in one transaction. */
const DELETED_AT_A_TIME = 200;

/**
 * Brings features into the areas of an account by their external ids, in one transaction of at most
 * IMPORT_LIMITS.features features. Adds the external ids of all of them to `seen`, those of features with errors too.
 */
export async function syncFeatures(
  ports: WritePorts,
  writer: AreaWriter,
  features: readonly unknown[],
  { firstIndex, seen, isDryRun }: { firstIndex: number; seen: Set<string>; isDryRun: boolean },
): Promise<SyncReport> {
  const collection = { type: 'FeatureCollection', features };
  const planned = await ports.turns.run(writer.accountId, planImport(collection));
  invariant(planned.ok, 'a list of features is a collection');
  for (const id of externalIdsOf(features)) seen.add(id);
  const named = planned.value.items.filter(({ externalId }) => externalId !== null);
  const nameless = planned.value.items.filter(({ externalId }) => externalId === null);
  const plan: ImportPlan = { ...planned.value, items: named };
  const unchanged = await unchangedIds(ports, writer, plan);
  const changes: ImportPlan = {
    ...plan,
    items: named.filter(({ externalId }) => !unchanged.has(externalId as string)),
    errors: [...plan.errors, ...namelessErrors(nameless)],
  };
  const report = isDryRun
    ? await dryRunImport(ports, writer, changes)
    : await importAreas(ports, writer, changes);
  return {
    created: report.created.length,
    updated: report.updated.length,
    unchanged: named.length - changes.items.length,
    errors: report.errors
      .map((error) => ({ ...error, index: error.index + firstIndex }))
      .sort((a, b) => a.index - b.index),
  };
}

/** One error for each feature, whatever the number of its parts. */
function namelessErrors(items: readonly ImportItem[]): ImportError[] {
  const indexes = new Set(items.map(({ index }) => index));
  return [...indexes].map((index) => fieldImportError(index, NO_EXTERNAL_ID));
}

function externalIdsOf(features: readonly unknown[]): string[] {
  return features.flatMap((feature) => {
    const { properties } = (feature ?? {}) as { properties?: { external_id?: unknown } | null };
    const id = properties?.external_id;
    return typeof id === 'string' ? [id] : [];
  });
}

/** The external ids for which the file says what is stored, once or several times. */
async function unchangedIds(
  { sql, turns }: WritePorts,
  { accountId }: AreaWriter,
  plan: ImportPlan,
): Promise<ReadonlySet<string>> {
  const ids = new Set(plan.items.map(({ externalId }) => externalId as string));
  const stored = new Map(
    (await selectAreasByExternalId(sql, accountId, [...ids])).map((area) => [
      area.definition.externalId as string,
      area.definition,
    ]),
  );
  const quota = await selectAreaQuota(sql, accountId);
  const { writes } = await turns.run(
    accountId,
    resolveImport(plan, (id) => stored.get(id), quota),
  );
  const unchanged = writes.flatMap(({ isNew, area: { definition } }) => {
    const id = definition.externalId as string;
    return !isNew && isDeepStrictEqual(definition, stored.get(id)) ? [id] : [];
  });
  return new Set(unchanged);
}

/** Deletes the areas of an account that have an external id which is not in `kept`; returns how many there are. */
export async function pruneAreas(
  ports: WritePorts,
  writer: AreaWriter,
  kept: ReadonlySet<string>,
  isDryRun: boolean,
): Promise<number> {
  const areas = await selectExternalIds(ports.sql, writer.accountId, writer.worldIds);
  const surplus = areas.filter(({ externalId }) => !kept.has(externalId)).map(({ id }) => id);
  if (isDryRun) return surplus.length;
  let pruned = 0;
  for (let at = 0; at < surplus.length; at += DELETED_AT_A_TIME) {
    pruned += await deleteAreas(ports, writer, surplus.slice(at, at + DELETED_AT_A_TIME));
  }
  return pruned;
}

function deleteAreas(ports: WritePorts, writer: AreaWriter, ids: readonly number[]): Promise<number> {
  return writeWorlds(ports, async ({ tx, changed }) => {
    const found: { id: number; worldId: number }[] = [];
    for (const id of ids) {
      const area = await lockArea(tx, writer.worldIds, id);
      if (area !== undefined) found.push({ id, worldId: area.worldId });
    }
    await lockAreaQuota(tx, writer.accountId);
    for (const { id } of found) await deleteArea(tx, writer.worldIds, id);
    for (const [worldId, areas] of Map.groupBy(found, (area) => area.worldId)) {
      changed({ kind: 'area', worldId, entityIds: areas.map(({ id }) => id) });
    }
    return found.length;
  });
}
