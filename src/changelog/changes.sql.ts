import { invariant } from '../lib/errors.ts';
import { arrayLiteral, type Sql, type Tx } from '../postgres/sql.ts';
import { type LogCursor, type LogEnd, Snapshot } from './appliedTransactions.memory.ts';
import { type ServerRow, serverColumns, serverOfRow } from './database.sql.ts';

/**
 * What a row of the change log is about. 'positions' carries position updates, 'events' names a world that has new fleet
 * events; the others name one entity.
 */
export type ChangeKind = 'positions' | 'events' | EntityKind;

/** A change that names entities and raises the version of their world. */
export type EntityKind = 'device' | 'account' | 'key' | 'area' | 'webhook' | 'share';

/** The changes of one kind and world on a page, or the position updates of one transaction (`payload`). */
export interface Change {
  readonly kind: ChangeKind;
  readonly worldId: number | null;
  /** The newest of the page. */
  readonly worldVersion: number | null;
  /** In any order; an entity that was changed twice may be there twice. */
  readonly entityIds: readonly number[];
  readonly payload: Buffer | null;
  /** The stays that changed with the positions. */
  readonly stays: string | null;
  /** Of position updates: the transaction that stored them. */
  readonly xid: number;
}

/** A page of the change log. */
export interface ChangePage {
  readonly changes: readonly Change[];
  /** Where the next page begins; `open` is null after the last one. */
  readonly next: LogCursor;
  /** The snapshot up to which all pages of this read lead, on the server that answered. */
  readonly end: LogEnd;
  /** True when changes after the cursor may have been pruned already. Then `changes` is empty. */
  readonly pruned: boolean;
}

/** NOTIFY on this channel says "look at the change log". It carries nothing and may be lost. */
export const CHANGE_CHANNEL = 'fleet_change';

/** How long a change stays in the log. A pod that was away for longer reloads everything. */
export const RETENTION_MINUTES = 15;

/**
 * Raises the version of `worldId` and appends one change for each entity, in the caller's transaction. Returns the new
 * version. The row lock on the world makes its versions commit in order.
 */
export async function recordChange(
  tx: Tx,
  change: { kind: EntityKind; worldId: number; entityIds: readonly number[] },
): Promise<number> {
  const [row] = await tx<{ version: number }[]>`
    with raised as (
      update world set version = version + 1 where id = ${change.worldId} returning version
    ), appended as (
      insert into change (kind, world_id, world_version, entity_id)
      select ${change.kind}, ${change.worldId}, version, entity_id
      from raised, unnest(${arrayLiteral(change.entityIds)}::bigint[]) as entity_id
    )
    select version + version_base() as version from raised`;
  if (row === undefined) throw new Error(`world ${change.worldId} is missing`);
  return row.version;
}

/** Appends the position updates of one ingest transaction; returns its id. They do not raise the version of a world. */
export async function recordPositions(tx: Tx, payload: Buffer, stays: string): Promise<number> {
  const [row] = await tx<{ xid: string }[]>`
    insert into change (kind, payload, stays) values ('positions', ${payload}, ${stays}) returning xid::text as xid`;
  invariant(row, 'an insert returns its row');
  return Number(row.xid);
}

/**
 * The changes that `cursor` has not seen, a page at a time. Transactions that stay open, of any database of the cluster,
 * neither delay changes nor repeat them. Entities are grouped by kind and world in SQL: a row for each of a million would
 * cost more than all later steps. `kinds` limits the read: 'writes' skips any number of position updates by an index of
 * its own. Position updates of the transactions that memory `held` already come without payload and stays.
 *
 * | CTE     | rows                                                                                        |
 * |---------|---------------------------------------------------------------------------------------------|
 * | asked   | one: the snapshot to read up to, the server, and whether changes after `seen` were pruned   |
 * | found   | the changes of the page, with the payload bytes before each                                 |
 * | page    | those within the byte limit                                                                 |
 * | last    | the last of the page, if there is another page                                              |
 * | grouped | the page by kind and world; position updates each for itself                                |
 *
 * A snapshot contains all transactions below its xmin, so a read begins there. The condition must be `(xid, id) >
 * (xmin, 0)` alone. With `(xid, id) > (0, 0)` beside it Postgres would read its index from the beginning.
 */
export async function selectChanges(
  sql: Sql,
  { seen, open }: LogCursor,
  kinds: 'all' | 'writes' | 'positions' = 'all',
  held: Iterable<number> = [],
): Promise<ChangePage> {
  const ofKinds = {
    all: sql``,
    writes: sql`and kind <> 'positions'`,
    positions: sql`and kind = 'positions'`,
  }[kinds];
  const seenText = String(seen);
  const after = open?.after ?? { xid: seen.xmin, id: 0 };
  const rows = await sql<ChangeRow[]>`
    with asked as materialized (
      select coalesce(${open === null ? null : String(open.upTo)}::pg_snapshot, pg_current_snapshot()) as up_to,
             ${serverColumns(sql)}, version_base() as version_base,
             not pg_visible_in_snapshot(xid, ${seenText}::pg_snapshot) as pruned
      from change_horizon
    ), found as materialized (
      select xid, id, kind, world_id, world_version, entity_id, sent.payload, sent.stays,
          sum(octet_length(sent.payload) + coalesce(octet_length(sent.stays), 0)) over (
          order by xid, id rows between unbounded preceding and 1 preceding) as bytes_before
      from change left join lateral (
        select change.payload, change.stays where change.xid <> all(${`{${[...held].join(',')}}`}::xid8[])) sent on true
      where (xid, id) > (${String(after.xid)}::xid8, ${after.id}::bigint)
        and not pg_visible_in_snapshot(xid, ${seenText}::pg_snapshot)
        and pg_visible_in_snapshot(xid, (select up_to from asked)) and not (select pruned from asked)
        ${ofKinds}
      order by xid, id limit ${PAGE_ROWS}
    ), page as (
      select * from found where bytes_before is null or bytes_before < ${PAGE_BYTES}
    ), last as (
      select xid, id from page order by xid desc, id desc
      limit (select count(*) = ${PAGE_ROWS} or count(*) > (select count(*) from page) from found)::int
    ), grouped as (
      select kind, world_id, max(world_version) as world_version, string_agg(entity_id::text, ',') as ids,
             null::bytea as payload, null::text as stays, null::text as xid
      from page where kind <> 'positions' group by kind, world_id
      union all
      select kind, null, null, null, payload, stays, xid::text from page where kind = 'positions'
    )
    select asked.up_to::text, asked.history, asked.start, asked.flushed_bytes, asked.pruned, last.xid::text as last_xid,
           last.id as last_id, grouped.kind, grouped.world_id, grouped.world_version + asked.version_base as world_version,
           grouped.ids, grouped.payload, grouped.stays, grouped.xid
    from asked left join last on true left join grouped on true`;
  const first = rows[0];
  invariant(first, 'the query always returns a row');
  const { up_to, last_xid: lastXid, last_id: lastId, pruned } = first;
  const upTo = open?.upTo ?? Snapshot.parse(up_to);
  return {
    changes: rows.flatMap((row) => (row.kind === null ? [] : [changeOf(row.kind, row)])),
    next:
      lastXid === null || lastId === null
        ? { seen: upTo, open: null }
        : { seen, open: { upTo, after: { xid: Number(lastXid), id: lastId } } },
    end: { seen: upTo, server: serverOfRow(first, upTo) },
    pruned,
  };
}

/** An empty page is one row without a kind. */
interface ChangeRow extends ServerRow {
  up_to: string;
  pruned: boolean;
  last_xid: string | null;
  last_id: number | null;
  kind: ChangeKind | null;
  world_id: number | null;
  world_version: number | null;
  ids: string | null;
  payload: Buffer | null;
  stays: string | null;
  xid: string | null;
}

function changeOf(kind: ChangeKind, row: ChangeRow): Change {
  return {
    kind,
    worldId: row.world_id,
    worldVersion: row.world_version,
    entityIds: row.ids === null ? [] : row.ids.split(',').map(Number),
    payload: row.payload,
    stays: row.stays,
    xid: Number(row.xid ?? 0),
  };
}

/** Rows of one page, and the payload bytes after which it ends. One ingest transaction has up to 800 kB. */
const PAGE_ROWS = 10_000;
const PAGE_BYTES = 1_250_000;

/**
 * What memory at a cursor does not know yet, of all that points are evaluated against: the worlds with changes of areas
 * or endpoints. 'anything': it may be any world, because a membership changed, the log was pruned, or there are too
 * many changes. 'history': the cursor is from another server.
 */
export type Unapplied = ReadonlySet<number> | 'anything' | 'history';

/** Beyond this many transactions and worlds it is not worth listing the worlds. */
const UNAPPLIED_MAX = 1_000;

/**
 * Called under the locks of the devices, so it also sees what other pods committed until now. It costs as much for an
 * import of 10 000 areas as for one area (unapplied_changes).
 */
export async function selectUnapplied(tx: Tx, { seen, server: { history } }: LogEnd): Promise<Unapplied> {
  const snapshot = String(seen);
  const rows = await tx<{ kind: ChangeKind | 'pruned' | 'history'; world_id: number | null }[]>`
    select case when server_history() is distinct from ${history} then 'history' else 'pruned' end as kind,
      null::bigint as world_id
    from change_horizon
    where not pg_visible_in_snapshot(xid, ${snapshot}::pg_snapshot) or server_history() is distinct from ${history}
    union all
    select kind, world_id from unapplied_changes(${snapshot}::pg_snapshot, ${UNAPPLIED_MAX})`;
  if (rows.some(({ kind }) => kind === 'history')) return 'history';
  const isAnywhere = rows.some(({ kind }) => kind === 'pruned' || kind === 'account');
  if (isAnywhere || rows.length >= UNAPPLIED_MAX) return 'anything';
  return new Set(rows.map((row) => row.world_id as number));
}

/**
 * Makes the change log of a restored database usable. Its changes and its horizon have transaction ids of the old cluster,
 * which may be higher than those of this one. To be called before memory is loaded; a log of this cluster stays as it is.
 */
export async function adoptChanges(sql: Sql): Promise<void> {
  await sql`
    with adopted as (
      update change_horizon set xid = pg_current_xact_id()
      where xid >= pg_snapshot_xmax(pg_current_snapshot())
      returning xid
    )
    delete from change where exists (select from adopted) or xid >= pg_snapshot_xmax(pg_current_snapshot())`;
}

/**
 * Deletes a chunk of the changes older than the retention and raises the horizon to them, in one statement. Returns how
 * many it deleted. Two pods may prune at once: the horizon only rises.
 */
export async function pruneChanges(sql: Sql): Promise<number> {
  const [row] = await sql<{ removed: number }[]>`
    with removed as (
      delete from change
      where (xid, id) in (
        select xid, id from change
        where at < clock_timestamp() - make_interval(mins => ${RETENTION_MINUTES})
        order by xid, id limit ${PRUNE_CHUNK})
      returning xid
    ), raised as (
      update change_horizon set xid = greatest(xid, (select max(xid) from removed))
      where exists (select from removed)
    )
    select count(*)::int as removed from removed`;
  return row?.removed ?? 0;
}

const PRUNE_CHUNK = 5_000;

/** The id of this transaction, by which pods say that they have followed it. */
export async function selectTransactionId(tx: Tx): Promise<string> {
  const [row] = await tx<{ xid: string }[]>`select pg_current_xact_id()::text as xid`;
  invariant(row, 'a transaction has an id');
  return row.xid;
}

/** Wakes the pods once this transaction is committed. */
export async function notifyPods(tx: Tx): Promise<void> {
  await tx`select pg_notify(${CHANGE_CHANNEL}, '')`;
}
