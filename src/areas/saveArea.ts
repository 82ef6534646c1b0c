import { type WritePorts, type WriteScope, writeWorlds } from '../changelog/writeWorlds.ts';
import { type FieldError, fail, ok, type Result } from '../lib/result.ts';
import type { Steps } from '../lib/workTurns.ts';
import { type AreaDefinition, type AreaGeometry, type StoredArea, toVertices } from './area.ts';
import { type AreaDraft, completeDraft, mergeDraft } from './areaDraft.ts';
import { AREA_ERRORS, type AreaWarning, DEFAULT_COLOR } from './areaFields.ts';
import {
  type AreaQuota,
  type AreaSize,
  deleteArea,
  insertArea,
  isExternalIdTaken,
  lockArea,
  lockAreaQuota,
  lockAreasByExternalId,
  lockAreaWorlds,
  lockExternalIds,
  moveArea,
  selectAreaMaker,
  updateArea,
} from './areas.sql.ts';

/** The caller that writes: its account, and the worlds that it sees, its own first. */
export interface AreaWriter {
  readonly accountId: number;
  readonly worldIds: readonly number[];
}

export interface SavedArea {
  readonly kind: 'created' | 'updated';
  readonly area: StoredArea;
  readonly warnings: readonly AreaWarning[];
}

/** The result of a write. */
export type SaveOutcome =
  | SavedArea
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] }
  | { readonly kind: 'external_id_taken' }
  | { readonly kind: 'not_found' };

const TAKEN: SaveOutcome = { kind: 'external_id_taken' };
const NOT_FOUND: SaveOutcome = { kind: 'not_found' };

/** Creates an area in the writer's own world. */
export function createArea(ports: WritePorts, writer: AreaWriter, draft: AreaDraft): Promise<SaveOutcome> {
  return writeWorlds(ports, (scope) => addArea(scope, writer, draft));
}

/** `createArea` as a part of the caller's write. */
export async function addArea(scope: WriteScope, writer: AreaWriter, draft: AreaDraft): Promise<SaveOutcome> {
  const { tx, turns, changed } = scope;
  const valid = await turns.once(writer.accountId, () => completeDraft(draft));
  if (!valid.ok) return { kind: 'invalid', errors: valid.error };
  const { definition, measures, warnings } = valid.value;
  const owner = { worldId: writer.worldIds[0] as number, accountId: writer.accountId };
  if (definition.externalId !== null) await lockExternalIds(tx, writer.accountId);
  const excess = quotaErrorOf(await lockAreaQuota(tx, writer.accountId), growthOf(null, definition));
  if (excess !== null) return { kind: 'invalid', errors: [excess] };
  const area = await insertArea(tx, owner, definition, measures);
  if (area === undefined) return TAKEN;
  changed({ kind: 'area', worldId: area.worldId, entityIds: [area.id] });
  return { kind: 'created', area, warnings };
}

/** Changes the sent fields of an area that the writer sees. A draft that no area could take is invalid either way. */
export async function patchArea(
  ports: WritePorts,
  writer: AreaWriter,
  areaId: number,
  draft: AreaDraft,
): Promise<SaveOutcome> {
  try {
    return await writeWorlds(ports, async (scope) => {
      if (draft.externalId?.ok && draft.externalId.value !== null) {
        const makerId = await selectAreaMaker(scope.tx, writer.worldIds, areaId);
        if (makerId !== undefined) await lockExternalIds(scope.tx, makerId);
      }
      const stored = await lockArea(scope.tx, writer.worldIds, areaId);
      if (stored !== undefined) return mergeInto(scope, writer, stored, draft);
      const errors = await scope.turns.run(writer.accountId, draftErrors(draft));
      return errors.length > 0 ? { kind: 'invalid', errors } : NOT_FOUND;
    });
  } catch (error) {
    // Postgres has rolled back the transaction of an update to an external id that is taken.
    if (isExternalIdTaken(error)) return TAKEN;
    throw error;
  }
}

/**
 * Creates or updates the area that the writer's account has under `externalId`. An area of this id that the account made
 * but no longer sees (it stayed with an organization) keeps the id.
 */
export function upsertArea(
  ports: WritePorts,
  writer: AreaWriter,
  externalId: string,
  sent: AreaDraft,
): Promise<SaveOutcome> {
  const inBody = sent.externalId;
  // null differs too: a call that names its area by an external id cannot remove it.
  const isSame = inBody === undefined || (inBody.ok && inBody.value === externalId);
  const own = isSame ? ok(externalId) : fail(AREA_ERRORS.externalIdMismatch);
  const draft: AreaDraft = inBody?.ok === false ? sent : { ...sent, externalId: own };
  return writeWorlds(ports, async (scope) => {
    await lockExternalIds(scope.tx, writer.accountId);
    const [stored] = await lockAreasByExternalId(scope.tx, writer.accountId, [externalId]);
    if (stored === undefined) return addArea(scope, writer, draft);
    return writer.worldIds.includes(stored.worldId) ? mergeInto(scope, writer, stored, draft) : TAKEN;
  });
}

async function mergeInto(
  { tx, turns, changed }: WriteScope,
  writer: AreaWriter,
  stored: StoredArea,
  draft: AreaDraft,
): Promise<SaveOutcome> {
  const valid = await turns.once(writer.accountId, () => mergeDraft(stored.definition, draft));
  if (!valid.ok) return { kind: 'invalid', errors: valid.error };
  const { definition, measures, warnings } = valid.value;
  const growth = growthOf(stored.definition, definition);
  if (growth.vertices !== 0) {
    const excess = quotaErrorOf(await lockAreaQuota(tx, stored.accountId), growth);
    if (excess !== null) return { kind: 'invalid', errors: [excess] };
  }
  const area = await updateArea(tx, stored.id, definition, measures);
  changed({ kind: 'area', worldId: area.worldId, entityIds: [area.id] });
  return { kind: 'updated', area, warnings };
}

/** True when there was such an area. */
export function removeArea(ports: WritePorts, writer: AreaWriter, areaId: number): Promise<boolean> {
  return writeWorlds(ports, async ({ tx, changed }) => {
    const stored = await lockArea(tx, writer.worldIds, areaId);
    if (stored === undefined) return false;
    await lockAreaQuota(tx, stored.accountId);
    await deleteArea(tx, writer.worldIds, areaId);
    changed({ kind: 'area', worldId: stored.worldId, entityIds: [areaId] });
    return true;
  });
}

export type ShareAreaError = 'unknown_area' | 'no_organization';

/**
 * Makes an area its organization's (`shared`), or its account's again. Both worlds change: one gains the area, the
 * other loses it. An area that is there already is written once more, so that every pod reads it.
 */
export function shareArea(
  ports: WritePorts,
  areaId: number,
  shared: boolean,
): Promise<Result<null, ShareAreaError>> {
  return writeWorlds(ports, async ({ tx, changed }): Promise<Result<null, ShareAreaError>> => {
    const area = await lockAreaWorlds(tx, areaId);
    if (area === undefined) return fail('unknown_area');
    const worldId = shared ? area.organizationWorldId : area.accountWorldId;
    if (worldId === null) return fail('no_organization');
    await moveArea(tx, areaId, worldId);
    for (const changedWorldId of new Set([area.worldId, worldId])) {
      changed({ kind: 'area', worldId: changedWorldId, entityIds: [areaId] });
    }
    return ok(null);
  });
}

/** What a new area takes of the quota (`before` is null), or what changing one takes. */
export function growthOf(before: AreaDefinition | null, after: AreaDefinition): AreaSize {
  const vertices = verticesOf(after) - (before === null ? 0 : verticesOf(before));
  return { areas: before === null ? 1 : 0, vertices };
}

function verticesOf({ geometry }: AreaDefinition): number {
  return 'points' in geometry ? geometry.points.length / 2 : 0;
}

/**
 * Why a growth does not fit; null when it does. A change that needs no more always fits, also where the plan now allows
 * less than there is.
 */
export function quotaErrorOf(quota: AreaQuota, growth: AreaSize): FieldError | null {
  if (growth.areas > 0 && quota.areas + growth.areas > quota.maxAreas) return AREA_ERRORS.tooManyAreas;
  const isTooLarge = growth.vertices > 0 && quota.vertices + growth.vertices > quota.maxVertices;
  return isTooLarge ? AREA_ERRORS.tooManyVertices : null;
}

/** A size or quota after a growth. */
export function grown<Size extends AreaSize>(size: Size, growth: AreaSize): Size {
  return { ...size, areas: size.areas + growth.areas, vertices: size.vertices + growth.vertices };
}

/**
 * The errors of a change that an area of every type would give. Parameters are validated before the lookup, so a body
 * that could never be saved is answered with its errors even when the area does not exist. Yields after each type.
 */
function* draftErrors(draft: AreaDraft): Steps<readonly FieldError[]> {
  let common: readonly FieldError[] | null = null;
  for (const geometry of ONE_OF_EACH_TYPE) {
    const area = { name: 'any', color: DEFAULT_COLOR, geometry, externalId: null, dwellSeconds: 0 };
    const merged = mergeDraft(area, draft);
    const errors = merged.ok ? [] : merged.error;
    common = common === null ? errors : common.filter((error) => errors.includes(error));
    yield;
  }
  return common ?? [];
}

const CENTER = { lat: 0, lng: 0 };
const POINTS = toVertices([CENTER, { lat: 0, lng: 1 }, { lat: 1, lng: 0 }]);
const ONE_OF_EACH_TYPE: readonly AreaGeometry[] = [
  { type: 'circle', center: CENTER, radiusM: 100 },
  { type: 'point', center: CENTER, radiusM: 100 },
  { type: 'polygon', points: POINTS },
  { type: 'polyline', points: POINTS, bufferM: 100 },
];
