import { type WorldChange, type WritePorts, writeWorlds } from '../../changelog/writeWorlds.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import type { Tx } from '../../postgres/sql.ts';
import { selectAccount } from '../../tenants/accounts.sql.ts';
import { insertDevices, selectDevicesForUpdate, updateDevices } from '../devices.sql.ts';
import type { DevicePatch } from './devicePatch.ts';
import { keepToQuota } from './deviceQuota.ts';
import { type ImportPlan, planImport } from './planImport.ts';

export interface ImportLine {
  readonly line: number;
  readonly patch: DevicePatch;
}

export interface LineRejection {
  readonly line: number;
  readonly message: string;
}

/** Every line is counted once: the first line of a new device created it, the others updated it. */
export interface ImportCounts {
  readonly created: number;
  readonly updated: number;
  readonly rejected: readonly LineRejection[];
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
    const patches = mergePatches(lines);
    const stored = await selectDevicesForUpdate(tx, [...patches.keys()]);
    const plan = await keepToQuota(tx, planImport(patches.values(), stored, account), account);
    const { created, rejected } = await writePlan(tx, plan);
    for (const change of changesOf(created, plan.updates)) changed(change);
    return ok(countLines(lines, created.length, new Map([...plan.rejected, ...rejected])));
  });
}

/** What all lines of a device say together, by IMEI. */
function mergePatches(lines: readonly ImportLine[]): ReadonlyMap<string, DevicePatch> {
  const byImei = new Map<string, DevicePatch>();
  for (const { patch } of lines) byImei.set(patch.imei, { ...byImei.get(patch.imei), ...patch });
  return byImei;
}

interface CreatedDevice {
  readonly id: number;
  readonly imei: string;
  readonly worldId: number;
}

/** Rejected are IMEIs that another transaction has registered since this one looked. */
async function writePlan(
  tx: Tx,
  { creates, updates }: ImportPlan,
): Promise<{ created: readonly CreatedDevice[]; rejected: ReadonlyMap<string, string> }> {
  await updateDevices(
    tx,
    updates.map(({ after }) => after),
  );
  const created = await insertDevices(tx, creates);
  const free = new Set(created.map(({ imei }) => imei));
  const rejected = new Map<string, string>();
  for (const { imei } of creates) {
    if (!free.has(imei)) rejected.set(imei, `the device ${imei} was registered this very moment`);
  }
  return { created, rejected };
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

function countLines(
  lines: readonly ImportLine[],
  created: number,
  rejectedImeis: ReadonlyMap<string, string>,
): ImportCounts {
  const rejected = lines.flatMap(({ line, patch: { imei } }) => {
    const message = rejectedImeis.get(imei);
    return message === undefined ? [] : [{ line, message }];
  });
  return { created, updated: lines.length - rejected.length - created, rejected };
}
