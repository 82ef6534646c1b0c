import { invariant } from '../base/invariant.ts';
import type { Sql, Tx } from './sql.ts';

/** What a row of the change feed names. 'positions' carries the moved devices; the others name one entity. */
export type ChangeKind = 'positions' | 'device' | 'account' | 'key' | 'area' | 'webhook';

export interface Change {
  readonly id: number;
  readonly kind: ChangeKind;
  readonly worldId: number | null;
  readonly worldVersion: number | null;
  readonly entityId: number | null;
  readonly payload: Buffer | null;
}

/**
 * Where a reader of the feed stands: a snapshot of Postgres, "xmin:xmax:running transactions". Every change that was
 * committed in it is applied, all others are not. Not a number, because transactions commit out of order.
 */
export type FeedCursor = string;

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
    select version from raised`;
  if (row === undefined) throw new Error(`world ${change.worldId} is missing`);
  return row.version;
}

/** Appends the devices moved by one ingest transaction. Positions raise no version. */
export async function recordPositions(tx: Tx, payload: Buffer): Promise<void> {
  await tx`insert into change (kind, payload) values ('positions', ${payload})`;
}

/**
 * The changes that were committed after `cursor`, a page at a time. How long other transactions stay open (of this
 * database or another: transaction ids are the cluster's) neither holds changes back nor brings them again.
 */
export async function selectChanges(
  sql: Sql,
  cursor: FeedCursor,
  place: PagePlace | null,
): Promise<ChangePage> {
  const rows = await sql<ChangeRow[]>`
    select upto.snapshot::text as up_to, not pg_visible_in_snapshot(horizon.xid, ${cursor}::pg_snapshot) as pruned,
           c.xid::text, c.id, c.kind, c.world_id, c.world_version, c.entity_id, c.payload
    from change_horizon as horizon
    cross join (select coalesce(${place?.upTo ?? null}::pg_snapshot, pg_current_snapshot())) as upto (snapshot)
    left join change c
      on pg_visible_in_snapshot(horizon.xid, ${cursor}::pg_snapshot)
      and c.xid >= pg_snapshot_xmin(${cursor}::pg_snapshot)
      and not pg_visible_in_snapshot(c.xid, ${cursor}::pg_snapshot)
      and pg_visible_in_snapshot(c.xid, upto.snapshot)
      and (c.xid, c.id) > (${place?.afterXid ?? '0'}::xid8, ${place?.afterId ?? 0})
    order by c.xid, c.id
    limit ${PAGE_ROWS}`;
  const first = rows[0];
  invariant(first, 'the feed query always returns a row');
  const present = rows.filter((row): row is ChangeRow & { id: number; xid: string } => row.id !== null);
  const last = present[PAGE_ROWS - 1];
  return {
    upTo: first.up_to,
    pruned: first.pruned,
    next: last === undefined ? null : { upTo: first.up_to, afterXid: last.xid, afterId: last.id },
    changes: present.map((row) => ({
      id: row.id,
      kind: row.kind,
      worldId: row.world_id,
      worldVersion: row.world_version,
      entityId: row.entity_id,
      payload: row.payload,
    })),
  };
}

/** A row without a change stands for an empty page. */
interface ChangeRow {
  up_to: FeedCursor;
  pruned: boolean;
  xid: string | null;
  id: number | null;
  kind: ChangeKind;
  world_id: number | null;
  world_version: number | null;
  entity_id: number | null;
  payload: Buffer | null;
}

/** Rows of one page; the largest, of an ingest transaction that moved 10 000 devices, has 640 kB. */
const PAGE_ROWS = 200;

/**
 * Was anything but positions committed after `cursor`, or may such a change have been pruned already? Then memory
 * that stands there is not the newest.
 */
export async function hasWritesAfter(tx: Tx, cursor: FeedCursor): Promise<boolean> {
  const [row] = await tx<{ found: boolean }[]>`
    select exists (
      select from change
      where kind <> 'positions' and xid >= pg_snapshot_xmin(${cursor}::pg_snapshot)
        and not pg_visible_in_snapshot(xid, ${cursor}::pg_snapshot)
    ) or exists (
      select from change_horizon where not pg_visible_in_snapshot(xid, ${cursor}::pg_snapshot)
    ) as found`;
  return row?.found ?? true;
}

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
