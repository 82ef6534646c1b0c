import { invariant } from '../lib/errors.ts';
import type { Query, Sql, Tx } from '../postgres/sql.ts';
import { PostgresUnreachable } from '../postgres/sqlErrors.ts';
import { type LogEnd, Snapshot } from './appliedTransactions.memory.ts';
import { type Server, type ServerStart, ServerStarts, serverOf } from './serverStarts.ts';

/** What every statement can ask about the server that answers it. */
export interface ServerRow {
  readonly history: string | null;
  readonly start: number | null;
  readonly flushed_bytes: number | null;
}

export const serverColumns = (sql: Sql | Tx) =>
  sql`server_history() as history, server_mark() as start, flushed_bytes() as flushed_bytes`;

/** The server that has answered with what `seen` sees. Throws for a replica: what it does not have yet may exist. */
export function serverOfRow({ history, start, flushed_bytes }: ServerRow, seen: Snapshot): Server {
  if (history === null) throw new PostgresUnreachable({ code: 'REPLICA' });
  return serverOf({ history, start: start ?? 0, walBytes: flushed_bytes ?? 0, xmax: seen.xmax });
}

/** Everything that is committed in this transaction's snapshot. */
export async function selectLogEnd(tx: Tx): Promise<LogEnd> {
  const [row] = await tx<(ServerRow & { snapshot: string })[]>`
    select pg_current_snapshot()::text as snapshot, ${serverColumns(tx)}`;
  invariant(row, 'a select without a table returns a row');
  const seen = Snapshot.parse(row.snapshot);
  return { seen, server: serverOfRow(row, seen) };
}

/** The starts of the server that are remembered. */
export async function selectServerStarts(sql: Sql): Promise<ServerStarts> {
  const rows = await sql<{ mark: number; wal_bytes: number; next_xid: number }[]>`
    select mark, wal_bytes, next_xid from server_start order by ordinal`;
  return new ServerStarts(
    rows.map((row): ServerStart => ({ start: row.mark, walBytes: row.wal_bytes, nextXid: row.next_xid })),
  );
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

/** The size of the database and the replicas that the server reports. */
export interface PostgresState {
  readonly databaseBytes: number;
  /** Those that are connected, by name. Empty where the role may not see them (pg_monitor lets it). */
  readonly replicas: readonly { readonly replica: string; readonly lagBytes: number }[];
}

/** Asks the primary. Of several replicas with the same name the one that lags most counts. */
export async function selectPostgresState(sql: Sql): Promise<PostgresState> {
  const [size] = await sql<{ bytes: number }[]>`select pg_database_size(current_database())::float8 as bytes`;
  const replicas = await sql<{ replica: string; lag: number }[]>`
    select application_name as replica, max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))::float8 as lag
    from pg_stat_replication where replay_lsn is not null group by 1 order by 1`;
  return {
    databaseBytes: size?.bytes ?? 0,
    replicas: replicas.map(({ replica, lag }) => ({ replica, lagBytes: Math.max(0, lag) })),
  };
}
