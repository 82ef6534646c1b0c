import { isDeepStrictEqual } from 'node:util';
import { invariant } from '../../lib/errors.ts';
import type { FieldError } from '../../lib/result.ts';
import type { WorkTurns } from '../../lib/workTurns.ts';
import { isExternalId } from '../areaFields.ts';
import type { AreaSize } from '../areas.sql.ts';
import { grown, growthOf } from '../saveArea.ts';
import { type Defined, resolveImport } from './importAreas.ts';
import { fieldImportError, type ImportError, type ImportPlan, planImport } from './importPlan.ts';

/** A feature of a file, and its index in the file, from 0. */
export interface FileFeature {
  readonly index: number;
  readonly feature: unknown;
}

/** What some features of a file did to the areas of an account, or would do. */
export interface SyncReport {
  readonly created: number;
  readonly updated: number;
  /** Areas that are as the file says already; nothing is written for them. */
  readonly unchanged: number;
  /** `index` is that of the file. */
  readonly errors: readonly ImportError[];
  /** What the account has more than before. */
  readonly growth: AreaSize;
}

/** An area that the account has. */
export interface SyncedArea extends Defined {
  /** It must be written, even if its definition is as the file says: it is not shared yet. */
  readonly isMisplaced: boolean;
}

/** What a write did, or would do: `index` is that of the plan. */
export interface SyncWrites {
  readonly created: readonly { readonly index: number }[];
  readonly updated: readonly { readonly index: number }[];
  readonly errors: readonly ImportError[];
}

/** Areas with an external id that the file lacks. */
export interface Surplus {
  readonly ids: readonly number[];
  readonly size: AreaSize;
}

/** The areas of an account that are brought in line with a file: those in the database, or behind a running pod. */
export interface SyncTarget {
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  /** The areas that the account has made under these external ids, and sees. */
  stored(externalIds: readonly string[]): Promise<ReadonlyMap<string, SyncedArea>>;
  /**
   * Creates and updates what the plan of these features asks for. `dryGrowth` makes it a dry run, in an account that has
   * grown by so much before.
   */
  write(features: readonly FileFeature[], plan: ImportPlan, dryGrowth: AreaSize | null): Promise<SyncWrites>;
  /** The areas that the account has made and sees, with an external id that is not in the file. */
  surplus(isInFile: (externalId: string) => boolean): Promise<Surplus>;
  /** Deletes areas, some at a time; yields how many it has deleted each time. */
  prune(ids: readonly number[]): AsyncIterable<number>;
}

const NO_EXTERNAL_ID = {
  field: 'external_id',
  code: 'REQUIRED',
  message: 'external_id is required: without it the area cannot be found again',
} as const satisfies FieldError;

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
 * Brings at most IMPORT_LIMITS.features features into the areas of an account by their external ids. `dryGrowth` makes it a
 * dry run, in an account that has grown by so much before.
 */
export async function syncFeatures(
  target: SyncTarget,
  features: readonly FileFeature[],
  dryGrowth: AreaSize | null,
): Promise<SyncReport> {
  const collection = { type: 'FeatureCollection', features: features.map(({ feature }) => feature) };
  const planned = await target.turns.run(TURN, planImport(collection));
  invariant(planned.ok, 'a list of features is a collection');
  const named = planned.value.items.filter(({ externalId }) => externalId !== null);
  const nameless = planned.value.items.filter(({ externalId }) => externalId === null);
  const plan: ImportPlan = { ...planned.value, items: named };
  const growths = await growthsOf(target, plan);
  // One error for each feature, whatever the number of its parts.
  const refused = [...new Set(nameless.map(({ index }) => index))];
  const changes: ImportPlan = {
    ...plan,
    items: named.filter(({ externalId }) => growths.get(externalId as string) !== 'unchanged'),
    errors: [...plan.errors, ...refused.map((index) => fieldImportError(index, NO_EXTERNAL_ID))],
  };
  const { created, updated, errors } = await target.write(features, changes, dryGrowth);
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

const TURN = 'sync';

/** By external id what writing an area adds to those of its account; without those whose feature has an error. */
async function growthsOf(
  target: SyncTarget,
  plan: ImportPlan,
): Promise<ReadonlyMap<string, AreaSize | 'unchanged'>> {
  const stored = await target.stored([...new Set(plan.items.map(({ externalId }) => externalId as string))]);
  const { writes } = await target.turns.run(TURN, resolveImport(plan, stored, UNBOUNDED));
  return new Map(
    writes.map(({ stored, area: { definition } }) => {
      const before = stored?.definition ?? null;
      const isUnchanged = stored?.isMisplaced === false && isDeepStrictEqual(definition, before);
      return [definition.externalId as string, isUnchanged ? 'unchanged' : growthOf(before, definition)];
    }),
  );
}

const UNBOUNDED = { areas: 0, vertices: 0, maxAreas: Infinity, maxVertices: Infinity };
