import { isDeepStrictEqual } from 'node:util';
import { type WritePorts, writeWorlds } from '../../changelog/writeWorlds.ts';
import { invariant } from '../../lib/errors.ts';
import type { FieldError } from '../../lib/result.ts';
import { isExternalId } from '../areaFields.ts';
import {
  type AreaSize,
  deleteArea,
  lockArea,
  lockAreaQuota,
  selectAreasByExternalId,
  selectExternalIds,
} from '../areas.sql.ts';
import { type AreaWriter, grown, growthOf } from '../saveArea.ts';
import { dryRunImport, importAreas, resolveImport } from './importAreas.ts';
import { fieldImportError, type ImportError, type ImportPlan, planImport } from './importPlan.ts';

/** A feature of a file, and its index in the file, from 0. */
export interface FileFeature {
  readonly index: number;
  readonly feature: unknown;
}

/** What some features of a file did to the areas of an account, or would do. */
interface SyncReport {
  readonly created: number;
  readonly updated: number;
  /** Areas that are as the file says already; nothing is written for them. */
  readonly unchanged: number;
  /** `index` is that of the file. */
  readonly errors: readonly ImportError[];
  /** What the account has more than before. */
  readonly growth: AreaSize;
}

const NO_EXTERNAL_ID = {
  field: 'external_id',
  code: 'REQUIRED',
  message: 'external_id is required: without it the area cannot be found again',
} as const satisfies FieldError;

/** Areas that are deleted in one transaction. */
const DELETED_AT_A_TIME = 200;

/**
 * The features whose external id no feature before them has, and an error for each of the others. `seen` has the index
 * of the first feature of each external id, and takes up those of these features.
 */
export function withoutRepeated(
  features: readonly FileFeature[],
  seen: Map<string, number>,
): { readonly fresh: readonly FileFeature[]; readonly errors: readonly ImportError[] } {
  const errors: ImportError[] = [];
  const fresh = features.filter(({ index, feature }) => {
    const id = externalIdOf(feature);
    if (id === null) return true;
    const first = seen.get(id);
    if (first === undefined) seen.set(id, index);
    else
      errors.push({ index, code: 'TAKEN', message: `external_id ${id} is that of feature ${first} already` });
    return first === undefined;
  });
  return { fresh, errors };
}

function externalIdOf(feature: unknown): string | null {
  const { properties } = (feature ?? {}) as { properties?: { external_id?: unknown } | null };
  const id = properties?.external_id;
  return typeof id === 'string' && isExternalId(id) ? id : null;
}

/**
 * Brings features into the areas of an account by their external ids, in one transaction of at most
 * IMPORT_LIMITS.features features. `dryGrowth` makes it a dry run, in an account that has grown by so much before.
 */
export async function syncFeatures(
  ports: WritePorts,
  writer: AreaWriter,
  features: readonly FileFeature[],
  dryGrowth: AreaSize | null,
): Promise<SyncReport> {
  const collection = { type: 'FeatureCollection', features: features.map(({ feature }) => feature) };
  const planned = await ports.turns.run(writer.accountId, planImport(collection));
  invariant(planned.ok, 'a list of features is a collection');
  const named = planned.value.items.filter(({ externalId }) => externalId !== null);
  const nameless = planned.value.items.filter(({ externalId }) => externalId === null);
  const plan: ImportPlan = { ...planned.value, items: named };
  const growths = await growthsOf(ports, writer, plan);
  // One error for each feature, whatever the number of its parts.
  const refused = [...new Set(nameless.map(({ index }) => index))];
  const changes: ImportPlan = {
    ...plan,
    items: named.filter(({ externalId }) => growths.get(externalId as string) !== 'unchanged'),
    errors: [...plan.errors, ...refused.map((index) => fieldImportError(index, NO_EXTERNAL_ID))],
  };
  const { created, updated, errors } =
    dryGrowth !== null
      ? await dryRunImport(ports, writer, changes, dryGrowth)
      : await importAreas(ports, writer, changes);
  const idAt = new Map(named.map(({ index, externalId }) => [index, externalId as string]));
  let growth: AreaSize = { areas: 0, vertices: 0 };
  for (const { index } of [...created, ...updated])
    growth = grown(growth, growths.get(idAt.get(index) as string) as AreaSize);
  return {
    created: created.length,
    updated: updated.length,
    unchanged: named.length - changes.items.length,
    errors: errors.map((error) => ({ ...error, index: features[error.index]?.index ?? error.index })),
    growth,
  };
}

/** By external id what writing an area adds to those of its account; without those whose feature has an error. */
async function growthsOf(
  { sql, turns }: WritePorts,
  { accountId }: AreaWriter,
  plan: ImportPlan,
): Promise<ReadonlyMap<string, AreaSize | 'unchanged'>> {
  const ids = new Set(plan.items.map(({ externalId }) => externalId as string));
  const areas = await selectAreasByExternalId(sql, accountId, [...ids]);
  const stored = new Map(areas.map((area) => [area.definition.externalId as string, area]));
  const { writes } = await turns.run(accountId, resolveImport(plan, stored, UNBOUNDED));
  return new Map(
    writes.map(({ stored, area: { definition } }) => {
      const before = stored?.definition ?? null;
      const growth = isDeepStrictEqual(definition, before) ? 'unchanged' : growthOf(before, definition);
      return [definition.externalId as string, growth];
    }),
  );
}

const UNBOUNDED = { areas: 0, vertices: 0, maxAreas: Infinity, maxVertices: Infinity };

/** The areas of an account that have an external id which no feature has. */
export async function findSurplus(
  { sql }: Pick<WritePorts, 'sql'>,
  { accountId, worldIds }: AreaWriter,
  isInFile: (externalId: string) => boolean,
): Promise<{ readonly ids: readonly number[]; readonly size: AreaSize }> {
  const stored = await selectExternalIds(sql, accountId, worldIds);
  const areas = stored.filter(({ externalId }) => !isInFile(externalId));
  const vertices = areas.reduce((sum, area) => sum + area.vertices, 0);
  return { ids: areas.map(({ id }) => id), size: { areas: areas.length, vertices } };
}

/** Deletes areas, some in each transaction; returns how many there were. */
export async function pruneAreas(
  ports: WritePorts,
  writer: AreaWriter,
  ids: readonly number[],
): Promise<number> {
  let pruned = 0;
  for (let at = 0; at < ids.length; at += DELETED_AT_A_TIME) {
    pruned += await writeWorlds(ports, async ({ tx, changed }) => {
      const found: { id: number; worldId: number }[] = [];
      for (const id of ids.slice(at, at + DELETED_AT_A_TIME)) {
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
  return pruned;
}
