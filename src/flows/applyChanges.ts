import type { WorkTurns } from '../base/workTurns.ts';
import type { AreaCatalog } from '../memory/areaCatalog.ts';
import type { Fleet } from '../memory/fleet.ts';
import type { Keyring } from '../memory/keyring.ts';
import type { Subscriptions } from '../memory/subscriptions.ts';
import type { Tenancy } from '../memory/tenancy.ts';
import { selectAreasById } from '../store/areas.ts';
import type { Change } from '../store/changes.ts';
import { selectDevicesById } from '../store/deviceRows.ts';
import { selectMembershipsById } from '../store/memberships.ts';
import type { Sql } from '../store/sql.ts';
import { selectSubscriptions } from '../store/webhooks.ts';
import { compileAreas } from './compileAreas.ts';
import { inTurns } from './inTurns.ts';
import { moveDevices } from './moveDevices.ts';
import { decodeMoves, type Move } from './moves.ts';
import { putDevices } from './putDevices.ts';

/** What the feed keeps in step with Postgres. */
export interface Memory {
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  readonly keyring: Keyring;
  readonly tenancy: Tenancy;
  readonly subscriptions: Subscriptions;
}

/** Waits for an answer of Postgres, and not for ever: what comes too late must change nothing. */
export type Ask = <T>(answer: Promise<T>) => Promise<T>;

/** The budget of work of the pod, in which the feed has a share. */
export type Turns = Pick<WorkTurns<string>, 'run'>;

export interface ApplyPorts {
  readonly sql: Sql;
  readonly turns: Turns;
  readonly ask: Ask;
}

/** So few that Postgres does not seem silent where it must read them from a slow disk. */
const DEVICES_PER_READ = 2_500;
const AREAS_PER_READ = 100;

/**
 * Brings a page of the feed into memory, in turns with the requests. Rows are read again rather than carried in the
 * feed, so the order in which changes arrive does not matter, and a page may come twice; a device moves forward in time
 * only. So who looks while half of a page is there sees some things newer than the others, as between any two commits.
 * Versions of worlds are the caller's, to be raised when all that belongs to them is there.
 */
export async function applyChanges(
  ports: ApplyPorts,
  { fleet, areas, keyring, tenancy, subscriptions }: Memory,
  changes: readonly Change[],
): Promise<void> {
  const { sql, turns, ask } = ports;
  const accountIds = idsOf(changes, 'account');
  keyring.dropKeys(idsOf(changes, 'key'), accountIds);
  for (const row of await ask(selectMembershipsById(sql, [...accountIds]))) {
    tenancy.putAccount(row.accountId, row.worldId, row.organizationWorldId);
  }
  await loadDevices(ports, fleet, [...idsOf(changes, 'device')]);
  await loadSubscriptions(ports, subscriptions, [...idsOf(changes, 'webhook')]);
  await loadAreas(ports, areas, [...idsOf(changes, 'area')]);
  await loadDevices(ports, fleet, await inTurns(turns, 'feed', moveDevices(fleet, movesOf(changes))));
}

function idsOf(changes: readonly Change[], kind: Change['kind']): Set<number> {
  return new Set(changes.flatMap((change) => (change.kind === kind ? change.entityIds : [])));
}

function* movesOf(changes: readonly Change[]): Generator<Move, void> {
  for (const { payload } of changes) if (payload !== null) yield* decodeMoves(payload);
}

async function loadDevices(
  { sql, turns, ask }: ApplyPorts,
  fleet: Fleet,
  ids: readonly number[],
): Promise<void> {
  for (let at = 0; at < ids.length; at += DEVICES_PER_READ) {
    const rows = await ask(selectDevicesById(sql, ids.slice(at, at + DEVICES_PER_READ)));
    await inTurns(turns, 'feed', putDevices(fleet, rows));
  }
}

/** An endpoint that is not among the active ones any more receives nothing new. */
async function loadSubscriptions(
  { sql, ask }: ApplyPorts,
  subscriptions: Subscriptions,
  ids: readonly number[],
): Promise<void> {
  if (ids.length === 0) return;
  const rows = await ask(selectSubscriptions(sql, ids));
  for (const id of ids) subscriptions.remove(id);
  for (const row of rows) subscriptions.put(row);
}

/** An area that has no row any more was deleted. */
async function loadAreas(
  { sql, turns, ask }: ApplyPorts,
  areas: AreaCatalog,
  ids: readonly number[],
): Promise<void> {
  for (let at = 0; at < ids.length; at += AREAS_PER_READ) {
    const part = ids.slice(at, at + AREAS_PER_READ);
    const rows = await ask(selectAreasById(sql, part));
    const present = new Set(rows.map((row) => row.id));
    for (const id of part) if (!present.has(id)) areas.remove(id);
    await inTurns(turns, 'feed', compileAreas(areas, rows));
  }
}
