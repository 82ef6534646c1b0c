import { CopiedRow } from './copiedRow.ts';
import type { Tx } from './sql.ts';
import type { SqlText } from './sqlText.ts';

/**
 * Hands all rows of `query` (without parameters), each read by `decode`, to `use`: some at a time, so that a million
 * of them never stand in memory twice, and one batch after the other. `use` is waited for when it takes its time.
 */
export async function copyRows<T>(
  tx: Tx,
  query: SqlText,
  decode: (row: CopiedRow) => T,
  use: (rows: readonly T[]) => void | Promise<void>,
): Promise<void> {
  const row = new CopiedRow();
  let turnEndsAtMs = performance.now() + TURN_MS;
  await tx.copy(query, async (bytes) => {
    row.feed(bytes);
    const rows: T[] = [];
    while (row.next()) rows.push(decode(row));
    await use(rows);
    if (performance.now() < turnEndsAtMs) return;
    await new Promise((resolve) => setImmediate(resolve));
    turnEndsAtMs = performance.now() + TURN_MS;
  });
}

/** A pod that loads anew goes on answering: nobody waits for longer than this and the work on one piece. */
const TURN_MS = 2;
