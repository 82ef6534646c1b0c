import type { Sql } from '../postgres/sql.ts';
import type { ServerStart } from './serverMark.ts';

/** The starts of the server that are remembered, oldest first. */
export async function selectServerStarts(sql: Sql): Promise<ServerStart[]> {
  const rows = await sql<{ mark: number; wal_bytes: number; next_xid: number }[]>`
    select mark, wal_bytes, next_xid from server_start order by ordinal`;
  return rows.map((row) => ({ start: row.mark, walBytes: row.wal_bytes, nextXid: row.next_xid }));
}
