import type { Statement, Tx } from './sql.ts';

/**
 * The rows of `query`, `chunk` at a time, so that a million of them never stand in memory twice. One stream at a
 * time in a transaction.
 */
export async function* streamRows<T extends object>(
  tx: Tx,
  query: Statement<T[]>,
  chunk: number,
): AsyncGenerator<T[]> {
  await tx`declare stream no scroll cursor for ${query}`;
  for (let isLast = false; !isLast; ) {
    const rows = await tx.unsafe<T[]>(`fetch ${chunk} from stream`);
    isLast = rows.length < chunk;
    if (rows.length > 0) yield rows;
  }
  await tx`close stream`;
}
