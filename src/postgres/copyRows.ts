import { setImmediate as nextTurn } from 'node:timers/promises';
import { CopiedRow } from './copiedRow.ts';
import type { Tx } from './sql.ts';
import type { SqlText } from './sqlText.ts';

/**
 * Gives all rows of `query`, which takes no parameters, to `use`, each read by `decode`. Rows come in batches, so a
 * million of them are never in memory twice. The next batch is not read before `use` has settled.
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
    await nextTurn();
    turnEndsAtMs = performance.now() + TURN_MS;
  });
}

/** A pod keeps answering while it reloads: a request waits at most this long plus the work on one batch. */
const TURN_MS = 2;
