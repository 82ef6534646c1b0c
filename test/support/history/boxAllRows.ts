import { boxRows } from '../../../src/history/rowBoxes.sql.ts';
import { HOUR_MS } from '../../../src/lib/time.ts';
import type { Sql } from '../../../src/postgres/sql.ts';

/** Makes boxes of all rows from `sinceMs` on that are old enough, as housekeeping does in the course of time. */
export async function boxAllRows(sql: Sql, sinceMs: number): Promise<void> {
  const since = new Date(sinceMs);
  await sql`update row_boxing set since = ${since}, until = ${since}`;
  for (let untilMs = sinceMs; untilMs < Date.now(); untilMs += HOUR_MS) {
    await sql`update row_boxing set due_at = '-infinity'`;
    await boxRows(
      sql,
      async () => undefined,
      () => false,
    );
  }
}
