import { Keyring } from '../access/authorizer.ts';
import type { StoredArea } from '../areas/area.ts';
import { type Area, AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { selectAreasById, withOwnVertices } from '../areas/areas.sql.ts';
import { toShape } from '../areas/shape.ts';
import type { LogCursor, LogEnd, OwnTransactions } from '../changelog/appliedTransactions.memory.ts';
import { type Change, type ChangePage, selectChanges } from '../changelog/changes.sql.ts';
import { isSameServer, type Server } from '../changelog/serverStarts.ts';
import { selectDevicesById } from '../devices/deviceRows.sql.ts';
import { selectRemovalsById } from '../devices/devices.sql.ts';
import { Fleet } from '../devices/fleet.memory.ts';
import {
  applyPositionUpdates,
  decodePositionUpdates,
  type PositionUpdate,
  putDevices,
} from '../devices/positionUpdates.ts';
import { StayCounts } from '../devices/stays/stayCounts.ts';
import { Subscriptions, Tenancy } from '../ingest/watchers.memory.ts';
import { inTurns, Pace, type Steps, type WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { ShareState } from '../shares/share.ts';
import { selectMemberships } from '../tenants/accounts.sql.ts';
import { selectSubscriptions } from '../webhooks/webhooks.sql.ts';
import type { ReplyMonitor } from './postgresHealth.ts';

/** Everything that the change log keeps in step with Postgres. */
export interface Memory {
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  readonly keyring: Keyring;
  readonly shares: Keyring<ShareState>;
  readonly tenancy: Tenancy;
  readonly subscriptions: Subscriptions;
}

export function emptyMemory(): Memory {
  const stays = new StayCounts();
  return {
    fleet: new Fleet(stays),
    areas: new AreaCatalog(stays),
    keyring: new Keyring(),
    shares: new Keyring(),
    tenancy: new Tenancy(),
    subscriptions: new Subscriptions(),
  };
}

export interface ApplyPorts {
  readonly sql: Sql;
  /** The pod's budget for long computations. */
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  readonly awaitReply: ReplyMonitor['awaitReply'];
}

/** Few enough that Postgres replies in time even from a slow disk. */
const DEVICES_PER_READ = 2_500;
/** An area has up to 32 KB of vertices, and the rows of a reply are decoded at once: about a millisecond. */
const AREAS_PER_READ = 25;

/**
 * Applies a page of the change log to memory, in turns with the requests. The log names what has changed, and the rows
 * are read here. So the order of changes does not matter, and a page may be applied twice. Positions are in the log
 * itself; an older one never replaces a newer one. Until the page is complete, some of memory is newer than the rest,
 * as between any two commits. The caller raises the versions of worlds when all their changes are applied.
 *
 * It is urgent in the turns: while it lasts, memory counts as older than it is, and after a few seconds of that every
 * caller would have to be looked up in Postgres.
 */
export async function applyChanges(
  ports: ApplyPorts,
  { fleet, areas, keyring, shares, tenancy, subscriptions }: Memory,
  changes: readonly Change[],
  own: OwnTransactions = NONE,
): Promise<void> {
  const { sql, turns, awaitReply } = ports;
  const accountIds = idsOf(changes, 'account');
  keyring.dropKeys(idsOf(changes, 'key'), accountIds);
  shares.dropKeys(idsOf(changes, 'share'), accountIds);
  for (const row of await awaitReply(selectMemberships(sql, [...accountIds]))) {
    tenancy.putAccount(row.accountId, row.worldId, row.organizationWorldId);
    fleet.stays.setLimit(row.accountId, row.maxStays);
  }
  await loadDevices(ports, fleet, [...idsOf(changes, 'device')], 'edited');
  await loadSubscriptions(ports, subscriptions, [...idsOf(changes, 'webhook')]);
  await loadAreas(ports, areas, [...idsOf(changes, 'area')]);
  for (const { kind, worldId, xid } of changes) {
    if (kind === 'events' && worldId !== null) fleet.watch.touch('events', worldId);
    if (kind === 'positions') for (const id of own.get(xid) ?? []) fleet.watch.touch('devices', id);
  }
  const unknown = await inTurns(turns, 'log', applyPositionUpdates(fleet, positionUpdatesOf(changes)), true);
  await loadDevices(ports, fleet, unknown, 'moved');
}

const NONE: OwnTransactions = new Map();

function idsOf(changes: readonly Change[], kind: Change['kind']): Set<number> {
  return new Set(changes.flatMap((change) => (change.kind === kind ? change.entityIds : [])));
}

function* positionUpdatesOf(changes: readonly Change[]): Generator<PositionUpdate, void> {
  for (const { payload, stays, xid } of changes) {
    if (payload !== null) yield* decodePositionUpdates(payload, stays ?? '[]', xid);
  }
}

async function loadDevices(
  { sql, turns, awaitReply }: ApplyPorts,
  fleet: Fleet,
  ids: readonly number[],
  kind: 'edited' | 'moved',
): Promise<void> {
  for (let at = 0; at < ids.length; at += DEVICES_PER_READ) {
    const part = ids.slice(at, at + DEVICES_PER_READ);
    const rows = await awaitReply(selectDevicesById(sql, part));
    await inTurns(turns, 'log', putDevices(fleet, rows), true);
    if (kind === 'moved') continue;
    const present = new Set(rows.map(({ fields }) => fields.id));
    // Oldest first: the last of the devices that had an IMEI one after the other is the one that its readers may know.
    const removals = (await awaitReply(selectRemovalsById(sql, part))).sort((a, b) => a.atMs - b.atMs);
    for (const { worldId, ...removal } of removals)
      fleet.putRemoval(worldId, removal, !present.has(removal.deviceId));
  }
}

/** Removes endpoints that are not active any more. */
async function loadSubscriptions(
  { sql, awaitReply }: ApplyPorts,
  subscriptions: Subscriptions,
  ids: readonly number[],
): Promise<void> {
  if (ids.length === 0) return;
  const rows = await awaitReply(selectSubscriptions(sql, ids));
  for (const id of ids) subscriptions.remove(id);
  for (const row of rows) subscriptions.put(row);
}

/** Areas that no longer have a row are removed. */
async function loadAreas(
  { sql, turns, awaitReply }: ApplyPorts,
  areas: AreaCatalog,
  ids: readonly number[],
): Promise<void> {
  for (let at = 0; at < ids.length; at += AREAS_PER_READ) {
    const part = ids.slice(at, at + AREAS_PER_READ);
    const rows = await awaitReply(selectAreasById(sql, part));
    const present = new Set(rows.map((row) => row.id));
    for (const id of part) if (!present.has(id)) areas.remove(id);
    await inTurns(turns, 'log', putAreas(areas, rows), true);
  }
}

/** Puts areas into memory. Those of which it has the same or a later revision are skipped. */
export function* putAreas(catalog: AreaCatalog, areas: readonly StoredArea[]): Steps<void> {
  const pace = new Pace();
  for (const area of areas) {
    if ((catalog.revisionOf(area.id) ?? 0) >= area.revision) continue;
    catalog.put(withShape(area));
    if (pace.isDue()) yield* pace.pause();
  }
}

/**
 * Makes these areas in memory as they are stored, whatever they were before, and adds their ids to `ids`. The vertices that
 * they come with are not kept.
 */
export function* replaceAreas(
  catalog: AreaCatalog,
  areas: Iterable<StoredArea>,
  ids: Set<number>,
): Steps<void> {
  const pace = new Pace();
  for (const area of areas) {
    ids.add(area.id);
    if (!catalog.holds(area)) catalog.put(withShape(withOwnVertices(area)));
    if (pace.isDue()) yield* pace.pause();
  }
}

/** Loads areas that are not in memory: see AreaCatalog.load. */
export function* fillAreas(catalog: AreaCatalog, areas: Iterable<StoredArea>): Steps<void> {
  const pace = new Pace();
  for (const area of areas) {
    catalog.load(withShape(area));
    if (pace.isDue()) yield* pace.pause();
  }
}

function withShape(area: StoredArea): Area {
  const { id, worldId, accountId, definition, measures, createdAtMs, revision } = area;
  const shape = toShape(definition.geometry, { worldId, bounds: measures.bounds });
  // Not a copy by `...area`, which takes some 40 bytes more.
  return { id, worldId, accountId, definition, measures, createdAtMs, revision, shape };
}

/**
 * What reading the change log has found: only position updates, writes as well, or that the log is 'lost'. It is lost when
 * changes were pruned before they were read, and when this is another server: that one may lack transactions which memory
 * knows, and reuse their numbers.
 */
export interface Followed {
  readonly outcome: 'positions' | 'writes' | 'lost';
  /** Up to here every write is applied, unless the log is lost. */
  readonly end: LogEnd;
  /** Where the position updates up to there begin that are not applied; null: there are none. */
  readonly pending: LogCursor | null;
}

/**
 * Applies every write that was committed after `from`. With 'all' it also applies the position updates on the first
 * page; the rest is pending, so that nobody who needs the newest writes waits for millions of positions. With 'writes'
 * it skips position updates, for when others are pending already. Those of `own` transactions are in memory: they are not
 * read again, but count as followed.
 */
export async function followWrites(
  ports: ApplyPorts,
  memory: Memory,
  from: LogEnd,
  firstPage: 'all' | 'writes',
  own: OwnTransactions = NONE,
): Promise<Followed> {
  const { sql, awaitReply } = ports;
  const versions = new Map<number, number>();
  let pending: LogCursor | null = null;
  let kinds = firstPage;
  for (let cursor: LogCursor = { seen: from.seen, open: null }; ; ) {
    const { changes, next, end, pruned }: ChangePage = await awaitReply(
      selectChanges(sql, cursor, kinds, own.keys()),
    );
    if (pruned || !isSameServer(end.server, from.server)) return { outcome: 'lost', end, pending };
    await applyChanges(ports, memory, changes, own);
    for (const { worldId, worldVersion } of changes) {
      if (worldId === null || worldVersion === null) continue;
      versions.set(worldId, Math.max(worldVersion, versions.get(worldId) ?? 0));
    }
    if (next.open === null) {
      // Versions are raised last, because one write may span several pages.
      for (const [worldId, version] of versions) memory.fleet.raiseVersion(worldId, version);
      return { outcome: versions.size > 0 ? 'writes' : 'positions', end, pending };
    }
    if (kinds === 'all') pending = next;
    kinds = 'writes';
    cursor = next;
  }
}

/** Applies the next page of pending position updates. Returns where those begin that are pending then. */
export async function followPositions(
  ports: ApplyPorts,
  memory: Memory,
  pending: LogCursor,
  server: Server,
  own: OwnTransactions = NONE,
): Promise<LogCursor | null | 'lost'> {
  const page = await ports.awaitReply(selectChanges(ports.sql, pending, 'positions', own.keys()));
  if (page.pruned || !isSameServer(page.end.server, server)) return 'lost';
  await applyChanges(ports, memory, page.changes, own);
  return page.next.open === null ? null : page.next;
}
