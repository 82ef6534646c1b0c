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
import { decodeMoves } from './moves.ts';

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

const DEVICES_PER_READ = 1_000;
const AREAS_PER_READ = 100;

/**
 * Brings a page of the feed into memory. Rows are read again rather than carried in the feed, so the order in which
 * changes arrive does not matter, and a page may come twice. Versions of worlds are the caller's, to be raised when
 * all that belongs to them is there.
 */
export async function applyChanges(
  sql: Sql,
  { fleet, areas, keyring, tenancy, subscriptions }: Memory,
  changes: readonly Change[],
  ask: Ask,
): Promise<void> {
  const accountIds = idsOf(changes, 'account');
  keyring.dropKeys(idsOf(changes, 'key'), accountIds);
  for (const row of await ask(selectMembershipsById(sql, [...accountIds]))) {
    tenancy.putAccount(row.accountId, row.worldId, row.organizationWorldId);
  }
  await loadDevices(sql, fleet, [...idsOf(changes, 'device')], ask);
  await loadSubscriptions(sql, subscriptions, [...idsOf(changes, 'webhook')], ask);
  await loadAreas(sql, areas, [...idsOf(changes, 'area')], ask);
  const unknown: number[] = [];
  for (const { kind, payload } of changes) {
    if (kind !== 'positions' || payload === null) continue;
    for (const { deviceId, position } of decodeMoves(payload)) {
      if (!fleet.move(deviceId, position)) unknown.push(deviceId);
    }
  }
  await loadDevices(sql, fleet, unknown, ask);
}

function idsOf(changes: readonly Change[], kind: Change['kind']): Set<number> {
  return new Set(
    changes.flatMap((change) => (change.kind === kind && change.entityId !== null ? [change.entityId] : [])),
  );
}

async function loadDevices(sql: Sql, fleet: Fleet, ids: readonly number[], ask: Ask): Promise<void> {
  for (let at = 0; at < ids.length; at += DEVICES_PER_READ) {
    const rows = await ask(selectDevicesById(sql, ids.slice(at, at + DEVICES_PER_READ)));
    for (const { fields, position } of rows) {
      fleet.putDevice(fields);
      if (position !== null) fleet.move(fields.id, position);
    }
  }
}

/** An endpoint that is not among the active ones any more receives nothing new. */
async function loadSubscriptions(
  sql: Sql,
  subscriptions: Subscriptions,
  ids: readonly number[],
  ask: Ask,
): Promise<void> {
  if (ids.length === 0) return;
  const rows = await ask(selectSubscriptions(sql, ids));
  for (const id of ids) subscriptions.remove(id);
  for (const row of rows) subscriptions.put(row);
}

/** An area that has no row any more was deleted. */
async function loadAreas(sql: Sql, areas: AreaCatalog, ids: readonly number[], ask: Ask): Promise<void> {
  for (let at = 0; at < ids.length; at += AREAS_PER_READ) {
    const part = ids.slice(at, at + AREAS_PER_READ);
    const rows = await ask(selectAreasById(sql, part));
    const present = new Set(rows.map((row) => row.id));
    for (const id of part) if (!present.has(id)) areas.remove(id);
    await compileAreas(areas, rows);
  }
}
