import { SparseRows } from '../../lib/numberPages.ts';
import { MINUTE_MS } from '../../lib/time.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import type { SortedList } from '../sortedList.ts';
import { walkRows } from './walkRows.memory.ts';

/** Without a question for so long it is given up: it costs a little for every point. */
const UNUSED_MS = 5 * MINUTE_MS;
/** How many rows are examined between two readings of the clock. */
const ROWS_AT_ONCE = 64;

/**
 * The devices of one world by the minute of their newest point, so that those whose age has passed a limit lately are
 * found without a look at the others. A device that sends again within a minute costs nothing.
 */
export class Ages {
  readonly #columns: DeviceColumns;
  readonly #minutes = new Map<number, number[]>();
  /** Of each row its minute plus 1 (0: it is not here). */
  readonly #minuteOf = new SparseRows();
  /** Its place in the list of that minute. */
  readonly #places = new SparseRows();
  #isComplete = false;
  #usedAtMs: number;

  /** It is empty: see `fill`. */
  constructor(columns: DeviceColumns, nowMs: number) {
    this.#columns = columns;
    this.#usedAtMs = nowMs;
  }

  /** A device has another newest point, or is new. */
  put(row: number): void {
    const recordedAtMs = this.#columns.recordedAtMs(row);
    const minute = Number.isNaN(recordedAtMs) ? -1 : minuteOf(recordedAtMs);
    if (this.#minuteOf.get(row) === minute + 1) return;
    this.remove(row);
    if (minute === -1) return;
    const rows = this.#minutes.get(minute);
    this.#minuteOf.set(row, minute + 1);
    this.#places.set(row, rows === undefined ? 0 : rows.push(row) - 1);
    if (rows === undefined) this.#minutes.set(minute, [row]);
  }

  /** A device leaves the world. */
  remove(row: number): void {
    const minute = this.#minuteOf.get(row) - 1;
    if (minute === -1) return;
    const rows = this.#minutes.get(minute) as number[];
    const last = rows.pop() as number;
    if (last !== row) {
      const place = this.#places.get(row);
      rows[place] = last;
      this.#places.set(last, place);
    }
    if (rows.length === 0) this.#minutes.delete(minute);
    this.#minuteOf.set(row, 0);
  }

  isUnused(nowMs: number): boolean {
    return nowMs - this.#usedAtMs > UNUSED_MS;
  }

  /** Adds all devices of the world, unless that has been done. The world may change between two steps. */
  *fill(devices: SortedList<number, number>, nowMs: number): Steps<void> {
    this.#usedAtMs = Math.max(this.#usedAtMs, nowMs);
    if (this.#isComplete) return;
    yield* walkRows(this.#columns, [devices], (row) => {
      this.put(row);
      return true;
    });
    this.#isComplete = true;
  }

  /**
   * Visits the devices whose newest point is of `fromMs` or later and before `toMs`, in steps. One that changes between
   * steps may be visited or not.
   */
  *between(fromMs: number, toMs: number, visit: (row: number) => void): Steps<void> {
    const pace = new Pace();
    const [first, last] = [minuteOf(fromMs), minuteOf(toMs)];
    const isShort = last - first < this.#minutes.size;
    const minutes = isShort
      ? Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => first + n)
      : [...this.#minutes.keys()].filter((minute) => minute >= first && minute <= last);
    for (const minute of minutes) {
      const rows = this.#minutes.get(minute);
      // From the end: a row that is taken out is replaced by the last one, which was visited then.
      for (let n = (rows?.length ?? 0) - 1; rows !== undefined && n >= 0; n--) {
        n = Math.min(n, rows.length - 1);
        const row = rows[n];
        if (row === undefined) break;
        const recordedAtMs = this.#columns.recordedAtMs(row);
        if (recordedAtMs >= fromMs && recordedAtMs < toMs) visit(row);
        if (n % ROWS_AT_ONCE === 0 && pace.isDue()) yield* pace.pause();
      }
    }
  }
}

/** Never below 0: the age of a point of before 1970 has passed every limit. */
function minuteOf(ms: number): number {
  return Math.max(0, Math.floor(ms / MINUTE_MS));
}
