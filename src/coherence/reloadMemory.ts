import { copyAreas, passingVertices } from '../areas/areas.sql.ts';
import type { LogEnd } from '../changelog/appliedTransactions.memory.ts';
import { adoptChanges } from '../changelog/changes.sql.ts';
import { selectLogEnd, selectWorldVersions } from '../changelog/database.sql.ts';
import { copyDevices } from '../devices/deviceRows.sql.ts';
import { selectRemovals } from '../devices/devices.sql.ts';
import { Subscriptions, Tenancy } from '../ingest/watchers.memory.ts';
import { DeadlineExceeded, withDeadline } from '../lib/time.ts';
import type { Steps } from '../lib/workTurns.ts';
import { selectMemberships } from '../tenants/accounts.sql.ts';
import { selectSubscriptions } from '../webhooks/webhooks.sql.ts';
import { type ApplyPorts, type Memory, replaceAreas } from './applyChanges.ts';
import { LOAD_DEADLINE_MS } from './fillMemory.ts';

/**
 * Makes memory what one snapshot of Postgres has, in place, while memory answers and takes points: changes what differs
 * and removes what the snapshot lacks. Returns what the snapshot sees, so that following the change log from there misses
 * nothing. Until the end each device, area, membership and endpoint is as it was or as the snapshot has it, and the versions
 * of worlds are the old ones. When it fails, some of memory is new, and it must be called again before the log is followed.
 *
 * `isOtherServer`: nothing that memory holds is newer than the snapshot, whatever the transactions say. Until the end this
 * pod must commit no points.
 */
export async function reloadMemory(
  ports: ApplyPorts,
  memory: Memory,
  isOtherServer: boolean,
): Promise<LogEnd> {
  const { keyring, shares, fleet } = memory;
  await adoptChanges(ports.sql);
  keyring.clear();
  shares.clear();
  let isOver = false;
  const reading = readSnapshot(ports, memory, isOtherServer, () => isOver);
  // A reading that is given up must not change memory any more.
  const end = await withDeadline(reading, LOAD_DEADLINE_MS, 'reloading memory').finally(() => {
    isOver = true;
  });
  // A key that was cached by then may have changed before the snapshot, and the log after it lacks that change.
  keyring.clear();
  shares.clear();
  fleet.watch.touchAll();
  return end;
}

/** Returns what the snapshot sees. */
function readSnapshot(
  { sql, turns }: ApplyPorts,
  { fleet, areas, tenancy, subscriptions }: Memory,
  isOtherServer: boolean,
  isOver: () => boolean,
): Promise<LogEnd> {
  // While it lasts, memory counts as older than it is: so it is urgent.
  const run = (steps: Steps<void>): Promise<void> => turns.run('log', unlessOver(isOver, steps), true);
  return sql.begin('isolation level repeatable read read only', async (tx) => {
    // One statement reads all devices, as fast as they are compared.
    await tx.unsafe(`set local statement_timeout = ${LOAD_DEADLINE_MS}`);
    const end = await selectLogEnd(tx);
    const reload = fleet.reload((xid) => !isOtherServer && !end.seen.sees(xid));
    await copyDevices(tx, (devices) => run(reload.put(devices)));
    await run(reload.dropOthers());
    await run(reload.setRemovals(await selectRemovals(tx)));

    const areaIds = new Set<number>();
    await copyAreas(tx, (stored) => run(replaceAreas(areas, stored, areaIds)), passingVertices());
    await run(areas.keep(areaIds));

    const members = await selectMemberships(tx, null);
    const endpoints = await selectSubscriptions(tx, null);
    const versions = await selectWorldVersions(tx);
    const present = { tenancy: new Tenancy(), subscriptions: new Subscriptions() };
    for (const { accountId, worldId, organizationWorldId } of members)
      present.tenancy.putAccount(accountId, worldId, organizationWorldId);
    for (const endpoint of endpoints) present.subscriptions.put(endpoint);
    if (isOver()) throw givenUp();
    for (const { accountId, maxStays } of members) fleet.stays.setLimit(accountId, maxStays);
    tenancy.adopt(present.tenancy);
    subscriptions.adopt(present.subscriptions);
    reload.setVersions(versions);
    return end;
  });
}

function* unlessOver(isOver: () => boolean, steps: Steps<void>): Steps<void> {
  for (;;) {
    if (isOver()) throw givenUp();
    if (steps.next().done === true) return;
    yield;
  }
}

const givenUp = () => new DeadlineExceeded('the reload was given up');
