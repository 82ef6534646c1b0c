import type { Sql } from '../../../src/postgres/sql.ts';

/** As if a replica had been promoted that lacks what a pod has seen, and that pod were the first to connect to it. */
export async function meetLossyServer(sql: Sql): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`delete from server_session`;
    await tx`select enter_server(server_mark(), flushed_bytes() + (1::bigint << 40), 0)`;
  });
}
