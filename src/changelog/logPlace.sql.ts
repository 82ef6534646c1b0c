import { invariant } from '../lib/errors.ts';
import type { Query } from '../postgres/sql.ts';
import type { LogPlace } from './logPlace.ts';

/**
 * The place of a server in its log. On the primary everything that was acknowledged before is on disk, and so before this
 * place. On a replica a later statement sees all that was replayed up to there.
 */
export async function selectLogPlace(sql: Query, podId: string): Promise<LogPlace> {
  const [row] = await sql<LogPlaceRow[]>`
    select system_identifier::text as system, server_mark() as start,
      (select extract(epoch from seen_at) * 1000 from pod where id = ${podId})::float8 as reported_at_ms,
      pg_wal_lsn_diff(
        case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end,
        '0/0')::float8 as wal_bytes,
      pg_is_in_recovery() as is_replica
    from pg_control_system()`;
  invariant(row, 'a function that returns one row does');
  return {
    system: row.system,
    start: row.start,
    reportedAtMs: row.reported_at_ms,
    walBytes: row.wal_bytes ?? 0,
    isReplica: row.is_replica,
  };
}

interface LogPlaceRow {
  readonly system: string;
  readonly start: number | null;
  readonly reported_at_ms: number | null;
  readonly wal_bytes: number | null;
  readonly is_replica: boolean;
}
