import { invariant } from '../base/invariant.ts';
import { PostgresUnreachable, type Sql, type Tx } from './sql.ts';

/** What a row of the change feed names. 'positions' carries the moved devices; the others name one entity. */
export type ChangeKind = 'positions' | 'device' | 'account' | 'key' | 'area' | 'webhook';

/** What a page tells of one kind and world, or of the devices moved by one transaction (`payload`). */
export interface Change {
  readonly kind: ChangeKind;
  readonly worldId: number | null;
  /** The newest of the page. */
  readonly worldVersion: number | null;
  /** In any order; an entity that was changed twice may be there twice. */
  readonly entityIds: readonly number[];
  readonly payload: Buffer | null;
}

/**
 * Where a reader of the feed stands: a snapshot of Postgres, "xmin:xmax:running transactions". Every change that was
 * committed in it is applied, all others are not. Not a number, because transactions commit out of order.
 */
export type FeedCursor = string;

/** A cursor and the server whose numbers it is made of (see sql/0010): on another one it means nothing. */
export interface FeedStand {
  readonly cursor: FeedCursor;
  readonly history: string;
}

/** How far a read of several pages has come. */
export interface PagePlace {
  /** The snapshot of the first page: the later ones bring nothing that was committed since. */
  readonly upTo: FeedCursor;
  readonly afterXid: string;
  readonly afterId: number;
}

export interface ChangePage {
  readonly changes: readonly Change[];
  /** The cursor once all pages are applied. */
  readonly upTo: FeedCursor;
  /** Null on the last page. */
  readonly next: PagePlace | null;
  /** True when changes after the asked cursor may already have been pruned; then there are no `changes`. */
  readonly pruned: boolean;
  /** Of the server that was asked. */
  readonly history: string;
}

/** Notifications that say "look at the feed"; they carry nothing and may be lost. */
export const CHANGE_CHANNEL = 'fleet_change';

/** How long a change stays in the feed. A pod that was away for longer loads everything anew. */
export const FEED_RETENTION_MINUTES = 15;

/**
 * Raises the version of `worldId` once and appends one change for each entity, in the caller's transaction; returns
 * the new version. The row lock on the world makes its versions commit in order.
 */
export async function recordChange(
  tx: Tx,
  change: { kind: Exclude<ChangeKind, 'positions'>; worldId: number; entityIds: readonly number[] },
): Promise<number> {
  const [row] = await tx<{ version: number }[]>`
    with raised as (
      update world set version = version + 1 where id = ${change.worldId} returning version
    ), appended as (
      insert into change (kind, world_id, world_version, entity_id)
      select ${change.kind}, ${change.worldId}, version, entity_id
      from raised, unnest(${`{${change.entityIds.join(',')}}`}::bigint[]) as entity_id
    )
    select version + version_base() as version from raised`;
  if (row === undefined) throw new Error(`world ${change.worldId} is missing`);
  return row.version;
}

/** Appends the devices moved by one ingest transaction. Positions raise no version. */
export async function recordPositions(tx: Tx, payload: Buffer): Promise<void> {
  await tx`insert into change (kind, payload) values ('positions', ${payload})`;
}

/**
 * The changes that were committed after `cursor`, a page at a time. How long other transactions stay open (of this
 * database or another: transaction ids are the cluster's) neither holds changes back nor brings them again. Entities
 * are gathered by kind and world here, since a row for each of a million would take longer than all that follows.
 * `kinds` leaves out the others: a read of 'writes' passes over any number of moves by an index of its own.
 */
export async function selectChanges(
  sql: Sql,
  cursor: FeedCursor,
  place: PagePlace | null,
  kinds: 'all' | 'writes' | 'moves' = 'all',
): Promise<ChangePage> {
  const ofKinds = {
    all: sql``,
    writes: sql`and kind <> 'positions'`,
    moves: sql`and kind = 'positions'`,
  }[kinds];
  const rows = await sql<ChangeRow[]>`
    with asked as materialized (
      select coalesce(${place?.upTo ?? null}::pg_snapshot, pg_current_snapshot()) as up_to, server_history() as history,
             version_base() as version_base, not pg_visible_in_snapshot(xid, ${cursor}::pg_snapshot) as pruned
      from change_horizon
    ), found as materialized (
      select xid, id, kind, world_id, world_version, entity_id, payload, sum(octet_length(payload)) over (
          order by xid, id rows between unbounded preceding and 1 preceding) as bytes_before
      from change
      where (xid, id) > (${place?.afterXid ?? oldestOf(cursor)}::xid8, ${place?.afterId ?? 0}::bigint)
        and not pg_visible_in_snapshot(xid, ${cursor}::pg_snapshot)
        and pg_visible_in_snapshot(xid, (select up_to from asked)) and not (select pruned from asked)
        ${ofKinds}
      order by xid, id limit ${PAGE_ROWS}
    ), page as (
      select * from found where bytes_before is null or bytes_before < ${PAGE_BYTES}
    ), last as (
      select xid, id from page order by xid desc, id desc
      limit (select count(*) = ${PAGE_ROWS} or count(*) > (select count(*) from page) from found)::int
    ), told as (
      select kind, world_id, max(world_version) as world_version, string_agg(entity_id::text, ',') as ids,
             null::bytea as payload
      from page where kind <> 'positions' group by kind, world_id
      union all
      select kind, null, null, null, payload from page where kind = 'positions'
    )
    select asked.up_to::text, asked.history, asked.pruned, last.xid::text as last_xid, last.id as last_id,
           told.kind, told.world_id, told.world_version + asked.version_base as world_version, told.ids, told.payload
    from asked left join last on true left join told on true`;
  const first = rows[0];
  invariant(first, 'the feed query always returns a row');
  const { up_to: upTo, last_xid: afterXid, last_id: afterId, pruned, history } = first;
  return {
    upTo,
    pruned,
    history: knownHistory(history),
    next: afterXid === null || afterId === null ? null : { upTo, afterXid, afterId },
    changes: rows.flatMap((row) => (row.kind === null ? [] : [changeOf(row.kind, row)])),
  };
}

/** Where a read begins that brings what was committed after one cursor and up to another. */
export function placeBetween(cursor: FeedCursor, upTo: FeedCursor): PagePlace {
  return { upTo, afterXid: oldestOf(cursor), afterId: 0 };
}

/**
 * The xmin of a snapshot: all that is older is in it. Reading begins there. Together with `xid >= xmin` a `(xid, id) >
 * (0, 0)` would make Postgres read its index from the beginning.
 */
function oldestOf(cursor: FeedCursor): string {
  return cursor.slice(0, cursor.indexOf(':'));
}

/** A replica has none: what it does not know yet is not to be taken for what there is. */
export function knownHistory(history: string | null): string {
  if (history === null) throw new PostgresUnreachable({ code: 'REPLICA' });
  return history;
}

/** A row without a kind stands for an empty page. */
interface ChangeRow {
  up_to: FeedCursor;
  history: string | null;
  pruned: boolean;
  last_xid: string | null;
  last_id: number | null;
  kind: ChangeKind | null;
  world_id: number | null;
  world_version: number | null;
  ids: string | null;
  payload: Buffer | null;
}

function changeOf(kind: ChangeKind, row: ChangeRow): Change {
  return {
    kind,
    worldId: row.world_id,
    worldVersion: row.world_version,
    entityIds: row.ids === null ? [] : row.ids.split(',').map(Number),
    payload: row.payload,
  };
}

/** Rows of one page, and the bytes of moves after which it ends: one transaction of ingest brings up to 640 kB. */
const PAGE_ROWS = 10_000;
const PAGE_BYTES = 1_000_000;

/**
 * What points are judged by and memory that stands there does not know: changes of areas and endpoints in these
 * worlds; 'anything', when it cannot be told where (a membership changed, the feed was pruned); 'history', when this
 * is not the server that the cursor is about.
 */
export type Unapplied = ReadonlySet<number> | 'anything' | 'history';

/** Asked under the locks of the devices: what was committed since they were taken by another pod counts too. */
export async function selectUnapplied(tx: Tx, { cursor, history }: FeedStand): Promise<Unapplied> {
  const rows = await tx<{ world_id: number | null; is_other: boolean }[]>`
    select null::bigint as world_id, server_history() is distinct from ${history} as is_other
    from change_horizon
    where not pg_visible_in_snapshot(xid, ${cursor}::pg_snapshot) or server_history() is distinct from ${history}
    union all (
      select distinct case when kind = 'account' then null else world_id end, false from change
      where kind in ('account', 'area', 'webhook') and xid >= ${oldestOf(cursor)}::xid8
        and not pg_visible_in_snapshot(xid, ${cursor}::pg_snapshot)
      limit ${UNAPPLIED_MAX}
    )`;
  if (rows.some((row) => row.is_other)) return 'history';
  if (rows.length >= UNAPPLIED_MAX || rows.some((row) => row.world_id === null)) return 'anything';
  return new Set(rows.map((row) => row.world_id as number));
}

/** Worlds beyond which it is not worth to tell them apart. */
const UNAPPLIED_MAX = 1_000;

/**
 * A database that was restored into another cluster brings changes and a horizon numbered by its old one, which
 * would lie in the future for ever. Called before memory is loaded; does nothing on a feed of this cluster.
 */
export async function adoptFeed(sql: Sql): Promise<void> {
  await sql`
    with adopted as (
      update change_horizon set xid = pg_current_xact_id()
      where xid >= pg_snapshot_xmax(pg_current_snapshot())
      returning xid
    )
    delete from change where exists (select from adopted) or xid >= pg_snapshot_xmax(pg_current_snapshot())`;
}

/**
 * Deletes a chunk of the changes older than the retention and moves the horizon up to them, in one statement;
 * returns how many. Two pods pruning at once do no harm: the horizon only rises.
 */
export async function pruneChanges(sql: Sql): Promise<number> {
  const [row] = await sql<{ removed: number }[]>`
    with removed as (
      delete from change
      where (xid, id) in (
        select xid, id from change
        where at < clock_timestamp() - make_interval(mins => ${FEED_RETENTION_MINUTES})
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
