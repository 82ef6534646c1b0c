import { Pace, type Steps } from '../../lib/workTurns.ts';
import { Device } from '../device.ts';
import { type DeviceColumns, PROBE } from '../deviceColumns.memory.ts';
import type { SortedList } from '../sortedList.ts';

/** Rows visited between two looks at the clock: some ten microseconds of work. */
const ROWS_AT_ONCE = 128;

/**
 * Visits all devices of one or two lists in steps, in the order of IMEIs as text, while devices come and go. Each is
 * visited once, as it is when its turn comes. `visit` returns false to end the walk.
 */
export function* walkRows(
  columns: DeviceColumns,
  lists: readonly SortedList<number, number>[],
  visit: (row: number) => boolean,
): Steps<void> {
  const pace = new Pace();
  for (let after = ''; ; ) {
    const rows = rowsBehind(columns, lists, after);
    for (const row of rows) {
      if (!visit(row)) return;
    }
    if (rows.length < ROWS_AT_ONCE) return;
    after = new Device(columns, rows.at(-1) as number).imei;
    if (pace.isDue()) yield* pace.pause();
  }
}

/** The next `ROWS_AT_ONCE` rows after an IMEI; fewer at the end. */
function rowsBehind(
  columns: DeviceColumns,
  lists: readonly SortedList<number, number>[],
  imei: string,
): number[] {
  columns.probeBehind(imei);
  const rows = lists.flatMap((list) => list.from(PROBE, ROWS_AT_ONCE));
  if (lists.length === 1) return rows;
  return rows.sort((row, other) => columns.compare(row, other)).slice(0, ROWS_AT_ONCE);
}
