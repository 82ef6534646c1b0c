import { isDeepStrictEqual } from 'node:util';
import { fail, ok, type Result } from '../base/result.ts';
import { type WorldChange, writeWorlds } from '../flows/writeWorlds.ts';
import { type Account, selectAccount } from '../store/accounts.ts';
import {
  type DeviceDraft,
  insertDevices,
  type StoredDevice,
  selectDevicesForUpdate,
  updateDevices,
} from '../store/devices.ts';
import type { Tx } from '../store/sql.ts';
import type { DevicePatch } from './devicePatch.ts';
import { type ImportPlan, keepToQuota } from './deviceQuota.ts';
import { noAccount } from './noAccount.ts';
import type { Session } from './session.ts';

export interface ImportLine {
  readonly line: number;
  readonly patch: DevicePatch;
}

export interface ImportCounts {
  readonly created: number;
  readonly updated: number;
  readonly rejected: readonly { readonly line: number; readonly message: string }[];
}

/** Rows of one transaction: short, since other writers of that world wait for it, and then the pods have to follow it. */
export const IMPORT_CHUNK = 5_000;

/**
 * Creates and updates the devices of at most IMPORT_CHUNK lines in one transaction. Of several lines with one IMEI
 * the later ones update what the first one made. Fails when there is no such account.
 */
export async function importDevices(
  session: Session,
  email: string,
  lines: readonly ImportLine[],
): Promise<Result<ImportCounts, string>> {
  return writeWorlds(session, async ({ tx, changed }) => {
    const account = await selectAccount(tx, email, 'share');
    if (account === undefined) return noAccount(email);
    const merged = mergeLines(lines);
    const stored = await selectDevicesForUpdate(tx, [...merged.keys()]);
    const plan = await keepToQuota(tx, planImport(merged, stored, account), account);
    const { created, refused } = await writePlan(tx, plan);
    for (const change of changesOf(created, plan.updates)) changed(change);
    return ok(countLines(merged, created.length, new Map([...plan.refused, ...refused])));
  });
}

interface MergedLines {
  readonly patch: DevicePatch;
  readonly lines: readonly number[];
}

function mergeLines(lines: readonly ImportLine[]): ReadonlyMap<string, MergedLines> {
  const byImei = new Map<string, MergedLines>();
  for (const { line, patch } of lines) {
    const earlier = byImei.get(patch.imei);
    byImei.set(patch.imei, {
      patch: { ...earlier?.patch, ...patch },
      lines: [...(earlier?.lines ?? []), line],
    });
  }
  return byImei;
}

/** A device that stays what it is needs no update: importing a file again costs the running pods nothing. */
function planImport(
  byImei: ReadonlyMap<string, MergedLines>,
  stored: readonly StoredDevice[],
  account: Account,
): ImportPlan {
  const storedByImei = new Map(stored.map((device) => [device.imei, device]));
  const creates: DeviceDraft[] = [];
  const updates: { before: StoredDevice; after: DeviceDraft }[] = [];
  const refused = new Map<string, string>();
  for (const [imei, { patch }] of byImei) {
    const before = storedByImei.get(imei);
    const after = applyPatch(patch, before, account);
    if (!after.ok) refused.set(imei, after.error);
    else if (before === undefined) creates.push(after.value);
    else if (!isDeepStrictEqual({ ...before, ...after.value }, before))
      updates.push({ before, after: after.value });
  }
  return { creates, updates, refused };
}

/** The device as it is to be. Its owner is the account or its organization, now and afterwards. */
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

interface CreatedDevice {
  readonly id: number;
  readonly imei: string;
  readonly worldId: number;
}

/** Refused are IMEIs that another transaction has registered since this one looked. */
async function writePlan(
  tx: Tx,
  { creates, updates }: ImportPlan,
): Promise<{ created: readonly CreatedDevice[]; refused: ReadonlyMap<string, string> }> {
  const afters = updates.map(({ after }) => after);
  await updateDevices(tx, afters);
  const created = await insertDevices(tx, creates);
  const free = new Set(created.map(({ imei }) => imei));
  const taken = creates.filter(({ imei }) => !free.has(imei));
  const refused = taken.map(
    ({ imei }) => [imei, `the device ${imei} was registered this very moment`] as const,
  );
  return { created, refused: new Map(refused) };
}

/** One change for each world: a device that moves to another world changes both. */
function changesOf(created: readonly CreatedDevice[], updates: ImportPlan['updates']): WorldChange[] {
  const byWorld = new Map<number, Set<number>>();
  const add = (worldId: number, id: number) => {
    byWorld.set(worldId, (byWorld.get(worldId) ?? new Set<number>()).add(id));
  };
  for (const { id, worldId } of created) add(worldId, id);
  for (const { before, after } of updates) {
    add(before.worldId, before.id);
    add(after.worldId, before.id);
  }
  return [...byWorld].map(([worldId, ids]) => ({ kind: 'device', worldId, entityIds: [...ids] }));
}

/** Every line is one of the three: the first line of a new device created it, the others updated it. */
function countLines(
  byImei: ReadonlyMap<string, MergedLines>,
  created: number,
  refused: ReadonlyMap<string, string>,
): ImportCounts {
  const rejected: { line: number; message: string }[] = [];
  let accepted = 0;
  for (const [imei, { lines }] of byImei) {
    const message = refused.get(imei);
    if (message === undefined) accepted += lines.length;
    else for (const line of lines) rejected.push({ line, message });
  }
  return { created, updated: accepted - created, rejected };
}
