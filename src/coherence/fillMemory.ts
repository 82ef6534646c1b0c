import { copyAreas } from '../areas/areas.sql.ts';
import type { LogEnd } from '../changelog/appliedTransactions.memory.ts';
import { adoptChanges } from '../changelog/changes.sql.ts';
import { countDevices, selectLogEnd, selectWorldVersions } from '../changelog/database.sql.ts';
import { copyDevices } from '../devices/deviceRows.sql.ts';
import { selectRemovals } from '../devices/devices.sql.ts';
import { withDeadline } from '../lib/time.ts';
import type { Sql } from '../postgres/sql.ts';
import { selectMemberships, selectStayQuotas } from '../tenants/accounts.sql.ts';
import { selectSubscriptions } from '../webhooks/webhooks.sql.ts';
import type { ApplyPorts, Memory } from './applyChanges.ts';
import { fillAreas } from './applyChanges.ts';

/** A million devices are loaded in some seconds; this only ends a load that is stuck. */
export const LOAD_DEADLINE_MS = 600_000;
const PROGRESS_EVERY = 100_000;

export interface FillPorts extends ApplyPorts {
  readonly log: { info(fields: object, message: string): void };
}

/** Fills an empty memory from one snapshot. Returns what that snapshot sees. */
export async function fillMemory({ sql, turns, log }: FillPorts, memory: Memory): Promise<LogEnd> {
  const { keyring, shares } = memory;
  await adoptChanges(sql);
  keyring.clear();
  shares.clear();
  const onProgress = (loaded: number, total: number) => log.info({ loaded, total }, 'loading devices');
  const loading = loadFleet(sql, turns, memory, onProgress);
  const end = await withDeadline(loading, LOAD_DEADLINE_MS, 'loading memory');
  // A key that was cached during the load may have changed before the snapshot, and the log after it lacks that change.
  keyring.clear();
  shares.clear();
  return end;
}

/**
 * Fills an empty memory from one snapshot of Postgres. Returns what that snapshot sees, so that following the change log
 * from there misses nothing. Reports progress, since a million devices take seconds.
 */
export async function loadFleet(
  sql: Sql,
  turns: ApplyPorts['turns'],
  { fleet, areas, tenancy, subscriptions }: Memory,
  onProgress: (loaded: number, total: number) => void,
): Promise<LogEnd> {
  let loaded = 0;
  let removals: Awaited<ReturnType<typeof selectRemovals>> = [];
  const end = await sql.begin('isolation level repeatable read read only', async (tx) => {
    // One statement reads all devices, as fast as they are put into memory.
    await tx.unsafe(`set local statement_timeout = ${LOAD_DEADLINE_MS}`);
    const end = await selectLogEnd(tx);
    const total = await countDevices(tx);
    await copyDevices(tx, (devices) => {
      const before = loaded;
      for (const device of devices) {
        fleet.load(device);
        loaded++;
      }
      const isDue = Math.floor(before / PROGRESS_EVERY) < Math.floor(loaded / PROGRESS_EVERY);
      if (isDue && loaded < total) onProgress(loaded, total);
    });
    removals = await selectRemovals(tx);
    for (const row of await selectMemberships(tx, null)) {
      tenancy.putAccount(row.accountId, row.worldId, row.organizationWorldId);
      fleet.stays.setLimit(row.accountId, row.maxStays);
    }
    for (const row of await selectSubscriptions(tx, null)) subscriptions.put(row);
    await copyAreas(tx, (rows) => turns.run('log', fillAreas(areas, rows)));
    for (const { id, version } of await selectWorldVersions(tx)) fleet.raiseVersion(id, version);
    return end;
  });
  // Outside of the transaction, which Postgres would end: with ten million devices this takes ten seconds.
  await turns.run('log', fleet.index());
  // Only now are devices found: one that has come back is not remembered as gone.
  for (const { worldId, ...removal } of removals) fleet.putRemoval(worldId, removal, false);
  await turns.run('log', areas.index());
  onProgress(loaded, loaded);
  return end;
}

/** A fraction of a millisecond of this process. */
const QUOTAS_AT_A_TIME = 512;

/**
 * Reads how many stays each account may have: a change of a plan is not in the change log. There may be a hundred thousand
 * accounts, so others have their turn after some hundred.
 */
export async function readQuotas(
  sql: Sql,
  { fleet }: Pick<Memory, 'fleet'>,
  atATime = QUOTAS_AT_A_TIME,
): Promise<void> {
  for (let afterId = 0; ; ) {
    const quotas = await selectStayQuotas(sql, afterId, atATime);
    for (const { accountId, maxStays } of quotas) fleet.stays.setLimit(accountId, maxStays);
    if (quotas.length < atATime) return;
    afterId = quotas.at(-1)?.accountId ?? afterId;
  }
}
