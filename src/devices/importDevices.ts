import { isDeepStrictEqual } from 'node:util';
import { type WritePorts, writeWorlds } from '../changelog/writeWorlds.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import type { Tx } from '../postgres/sql.ts';
import { type Account, selectAccount } from '../tenants/accounts.sql.ts';
import {
  type DeviceDraft,
  insertDevices,
  lockDeviceCounts,
  type StoredDevice,
  selectDevicesForUpdate,
  updateDevices,
} from './devices.sql.ts';

/** The fields of a device in one line of an import. A missing field leaves the stored value as it is. */
export interface DevicePatch {
  readonly imei: string;
  readonly name?: string | null;
  readonly plate?: string | null;
  readonly model?: string | null;
  readonly groups?: readonly string[];
  /** True: the organization's; false: the account's own. */
  readonly organization?: boolean;
}

interface ImportLine {
  readonly line: number;
  readonly patch: DevicePatch;
}

/** One device of an import file, or why its line gives none. */
export interface ImportRow {
  readonly line: number;
  readonly patch: Result<DevicePatch, string>;
}

/** Every line is counted once: the first line of a new device created it, the others updated it. */
export interface ImportCounts {
  readonly created: number;
  readonly updated: number;
  readonly rejected: readonly { readonly line: number; readonly message: string }[];
}

export interface ImportError {
  readonly reason: 'unknown_account' | 'unreadable' | 'too_many_rejected' | 'interrupted';
  /** Set when the file is unreadable. */
  readonly message?: string;
  /** What was stored before. */
  readonly counts: ImportCounts;
}

/** A file with more wrong lines than this is not the file that the caller means. */
export const REJECTED_MAX = 100_000;

/**
 * Imports the rows of a file in chunks, each in a transaction of its own, so that nobody waits for all of them. A wrong
 * row is counted and costs no other. The error says what was stored before; importing the file again does no harm.
 * `rows` comes in batches; a batch that is an error ends the import. `onProgress` is called now and then.
 */
export async function importDevices(
  ports: WritePorts,
  email: string,
  rows: AsyncIterable<Result<readonly ImportRow[], string>>,
  {
    interrupted,
    onProgress,
  }: { readonly interrupted: AbortSignal; readonly onProgress: (counts: ImportCounts) => void },
): Promise<Result<ImportCounts, ImportError>> {
  const counts = { created: 0, updated: 0, rejected: [] as ImportCounts['rejected'][number][] };
  const stop = (reason: ImportError['reason'], message?: string) =>
    fail({ reason, counts, ...(message !== undefined && { message }) });
  const store = async (chunk: readonly ImportLine[]): Promise<boolean> => {
    const stored = await importChunk(ports, email, chunk);
    if (!stored.ok) return false;
    counts.created += stored.value.created;
    counts.updated += stored.value.updated;
    counts.rejected.push(...stored.value.rejected);
    return true;
  };
  let chunk: ImportLine[] = [];
  for await (const batch of rows) {
    if (!batch.ok) return stop('unreadable', batch.error);
    for (const { line, patch } of batch.value) {
      if (patch.ok) chunk.push({ line, patch: patch.value });
      else counts.rejected.push({ line, message: patch.error });
      if (chunk.length < IMPORT_CHUNK) continue;
      if (!(await store(chunk))) return stop('unknown_account');
      chunk = [];
      if (interrupted.aborted) return stop('interrupted');
    }
    if (counts.rejected.length > REJECTED_MAX) return stop('too_many_rejected');
    onProgress(counts);
  }
  // Also runs without lines, so that an unknown account is always reported.
  if (!(await store(chunk))) return stop('unknown_account');
  counts.rejected.sort((a, b) => a.line - b.line);
  return ok(counts);
}

/** Lines of one transaction. It is short: other writers of that world wait for it, and the pods have to follow it. */
export const IMPORT_CHUNK = 5_000;

/**
 * Creates and updates the devices of at most IMPORT_CHUNK lines in one transaction. Of several lines with one IMEI the
 * later ones update what the first one made.
 */
export async function importChunk(
  ports: WritePorts,
  email: string,
  lines: readonly ImportLine[],
): Promise<Result<ImportCounts, 'unknown_account'>> {
  return writeWorlds(ports, async ({ tx, changed }) => {
    const account = await selectAccount(tx, email, 'share');
    if (account === undefined) return fail('unknown_account');
    const patches = new Map<string, DevicePatch>();
    for (const { patch } of lines) patches.set(patch.imei, { ...patches.get(patch.imei), ...patch });
    const stored = await selectDevicesForUpdate(tx, [...patches.keys()]);
    const plan = planImport(patches.values(), stored, account);
    await keepToQuota(tx, plan, account.maxDevices);
    const { creates, updates, rejected } = plan;
    await updateDevices(
      tx,
      updates.map(({ after }) => after),
    );
    const created = await insertDevices(tx, creates);
    const free = new Set(created.map(({ imei }) => imei));
    for (const { imei } of creates) {
      if (!free.has(imei)) rejected.set(imei, `the device ${imei} was registered this very moment`);
    }
    // A device that moves to another world changes both.
    const touched = [
      ...created,
      ...updates.flatMap(({ before, after }) => [before, { id: before.id, worldId: after.worldId }]),
    ];
    for (const [worldId, devices] of Map.groupBy(touched, ({ worldId }) => worldId)) {
      changed({ kind: 'device', worldId, entityIds: [...new Set(devices.map(({ id }) => id))] });
    }
    const rejectedLines = lines.flatMap(({ line, patch: { imei } }) => {
      const message = rejected.get(imei);
      return message === undefined ? [] : [{ line, message }];
    });
    const updated = lines.length - rejectedLines.length - created.length;
    return ok({ created: created.length, updated, rejected: rejectedLines });
  });
}

/** What an import does to the devices that it names. */
interface ImportPlan {
  creates: DeviceDraft[];
  updates: { readonly before: StoredDevice; readonly after: DeviceDraft }[];
  /** Why a device is not imported, by IMEI. */
  readonly rejected: Map<string, string>;
}

/** A device that stays as it is needs no update: importing a file again costs the running pods nothing. */
function planImport(
  patches: Iterable<DevicePatch>,
  stored: readonly StoredDevice[],
  account: Account,
): ImportPlan {
  const storedByImei = new Map(stored.map((device) => [device.imei, device]));
  const plan: ImportPlan = { creates: [], updates: [], rejected: new Map() };
  for (const patch of patches) {
    const before = storedByImei.get(patch.imei);
    const after = applyPatch(patch, before, account);
    if (!after.ok) plan.rejected.set(patch.imei, after.error);
    else if (before === undefined) plan.creates.push(after.value);
    else if (!isDeepStrictEqual({ ...before, ...after.value }, { ...before }))
      plan.updates.push({ before, after: after.value });
  }
  return plan;
}

/** The device as it is to be. Its owner is the account or its organization, before and after. */
function applyPatch(
  patch: DevicePatch,
  before: StoredDevice | undefined,
  account: Account,
): Result<DeviceDraft, string> {
  const isForeign =
    before !== undefined &&
    before.worldId !== account.worldId &&
    before.worldId !== account.organizationWorldId;
  if (isForeign) return fail(`the device ${patch.imei} belongs to another owner`);
  const wantedWorldId = patch.organization === true ? account.organizationWorldId : account.worldId;
  if (wantedWorldId === null) return fail('organization is true, but the account belongs to no organization');
  return ok({
    imei: patch.imei,
    worldId: patch.organization === undefined ? (before?.worldId ?? account.worldId) : wantedWorldId,
    name: patch.name === undefined ? (before?.name ?? null) : patch.name,
    plate: patch.plate === undefined ? (before?.plate ?? null) : patch.plate,
    model: patch.model === undefined ? (before?.model ?? null) : patch.model,
    groups: patch.groups ?? before?.groups ?? [],
  });
}

/** Why a device beyond the plan of its account is rejected. */
export const TOO_MANY_DEVICES = 'there are as many devices as the plan of the account allows';

/**
 * Takes out of a plan what its worlds have no room for: first the devices that change their world, then the new ones, in
 * their order.
 */
async function keepToQuota(tx: Tx, plan: ImportPlan, maxDevices: number): Promise<void> {
  const movers = plan.updates.filter(({ before, after }) => before.worldId !== after.worldId);
  const worldIds = new Set([
    ...plan.creates.map(({ worldId }) => worldId),
    ...movers.flatMap(({ before, after }) => [before.worldId, after.worldId]),
  ]);
  if (worldIds.size === 0) return;
  const counts = new Map(await lockDeviceCounts(tx, [...worldIds]));
  const enters = ({ imei, worldId }: DeviceDraft): boolean => {
    const count = counts.get(worldId) ?? 0;
    if (count < maxDevices) counts.set(worldId, count + 1);
    else plan.rejected.set(imei, TOO_MANY_DEVICES);
    return count < maxDevices;
  };
  plan.updates = plan.updates.filter(({ before, after }) => {
    if (before.worldId === after.worldId) return true;
    if (!enters(after)) return false;
    counts.set(before.worldId, (counts.get(before.worldId) ?? 1) - 1);
    return true;
  });
  plan.creates = plan.creates.filter(enters);
}
