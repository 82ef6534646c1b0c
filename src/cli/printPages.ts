import { fail, ok } from '../lib/result.ts';
import type { CommandOutcome } from './command.ts';
import type { CommandContext } from './context.ts';

/** Rows of one read: neither the command nor Postgres holds more of a long list at a time. */
export const PAGE_ROWS = 1_000;

/**
 * Prints every row of a list, one JSON line each, reading page after page. `selectAfter` reads the page behind a row, of
 * at most PAGE_ROWS; null: the first one. `shown` says what is printed of a row.
 */
export async function printPages<Row>(
  { print, interrupted }: CommandContext,
  selectAfter: (row: Row | null) => Promise<readonly Row[]>,
  shown: (row: Row) => unknown = (row) => row,
): Promise<CommandOutcome> {
  let last: Row | null = null;
  for (;;) {
    const page: readonly Row[] = await selectAfter(last);
    for (const row of page) {
      if (interrupted.aborted) return fail('interrupted; the list is not complete');
      if (!(await print(shown(row)))) return ok(undefined);
    }
    last = page.at(-1) ?? null;
    if (page.length < PAGE_ROWS) return ok(undefined);
  }
}
