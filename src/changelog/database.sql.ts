import { invariant } from '../lib/invariant.ts';
import type { Query, Sql, Tx } from '../postgres/sql.ts';
import { type FeedCursor, type FeedSnapshot, knownHistory } from './changes.sql.ts';
import type { ServerStart } from './serverMark.ts';

/** The cursor of a reader that has read everything in this transaction's snapshot. */
export async function selectFeedCursor(tx: Tx): Promise<FeedCursor> {
  const [row] = await tx<CursorRow[]>`
    select pg_current_snapshot()::text as snapshot, server_history() as history, server_mark() as start,
           flushed_bytes() as flushed_bytes`;
  invariant(row, 'a select without a table returns a row');
  return {
    snapshot: row.snapshot,
    history: knownHistory(row.history),
    start: row.start ?? 0,
    flushedBytes: row.flushed_bytes ?? 0,
  };
}

interface CursorRow {
  readonly snapshot: FeedSnapshot;
  readonly history: string | null;
  readonly start: number | null;
  readonly flushed_bytes: number | null;
}

export async function selectWorldVersions(tx: Tx): Promise<{ id: number; version: number }[]> {
  return tx<{ id: number; version: number }[]>`
    select id, version + base as version from world, (select version_base() as base offset 0) as of_server`;
}

/** The longest history of any plan, in days. Older points are rejected and older partitions dropped. */
export async function selectLongestHistoryDays(tx: Query): Promise<number> {
  const [row] = await tx<{ days: number | null }[]>`select max(history_days) as days from plan`;
  invariant(row?.days, 'there is a plan');
  return row.days;
}

/** Identifies this database among those that share a Redis. */
export async function selectInstanceId(tx: Tx): Promise<string> {
  const [row] = await tx<{ id: string }[]>`select id from instance`;
  return row?.id ?? '';
}

export async function countDevices(tx: Tx): Promise<number> {
  const [row] = await tx<{ count: number }[]>`select count(*)::int as count from device`;
  return row?.count ?? 0;
}

/** The time by the clock of Postgres, epoch milliseconds. */
export async function selectNowMs(sql: Query): Promise<number> {
  const [row] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
  invariant(row, 'a select without a table returns a row');
  return row.now.getTime();
}

/** The starts of the server that are remembered, oldest first. */
export async function selectServerStarts(sql: Sql): Promise<ServerStart[]> {
  const rows = await sql<{ mark: number; wal_bytes: number; next_xid: number }[]>`
    select mark, wal_bytes, next_xid from server_start order by ordinal`;
  return rows.map((row) => ({ start: row.mark, walBytes: row.wal_bytes, nextXid: row.next_xid }));
}
