import { invariant } from '../../lib/errors.ts';
import { DAY_MS, formatIso, HOUR_MS } from '../../lib/time.ts';

/** From its first instant to that of the next day. */
export interface Day {
  readonly fromMs: number;
  readonly toMs: number;
  /** As YYYY-MM-DD. */
  readonly date: string;
}

/** The form of a zone name. Intl also takes offsets, which are not names of zones. */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/;
/** No two midnights are further apart, even where a zone has left out a day. */
const LONGEST_DAY_MS = 3 * DAY_MS;
const DATE_CHARS = 'YYYY-MM-DD'.length;
/** Days that are kept: finding one takes ten formats of a time. A month of many devices needs 32. */
const KEPT_DAYS = 64;

/** What a calendar and a clock show: the date as its midnight in UTC, and the time since midnight. */
interface LocalTime {
  readonly dateMs: number;
  readonly timeMs: number;
}

/** The days of one time zone. */
export class LocalDays {
  /** Reckoned without Intl: the first format of a process takes some 25 ms, for which no call should stop the others. */
  static readonly UTC = new LocalDays('UTC', timeInUtc);

  readonly timeZone: string;
  readonly #timeAt: (ms: number) => LocalTime;
  #kept: Day[] = [];

  private constructor(timeZone: string, timeAt: (ms: number) => LocalTime) {
    this.timeZone = timeZone;
    this.#timeAt = timeAt;
  }

  /** Of a zone of the IANA database, such as Europe/Rome; null when there is none of this name. */
  static of(timeZone: string): LocalDays | null {
    if (timeZone === LocalDays.UTC.timeZone) return LocalDays.UTC;
    if (!ZONE_NAME.test(timeZone)) return null;
    try {
      const format = formatOf(timeZone);
      return new LocalDays(format.resolvedOptions().timeZone, (ms) => timeIn(format, ms));
    } catch (error) {
      if (error instanceof RangeError) return null;
      throw error;
    }
  }

  /** The day of an instant. It begins with the first instant that has its date, at midnight or after it. */
  dayOf(ms: number): Day {
    const kept = this.#kept.find(({ fromMs, toMs }) => ms >= fromMs && ms < toMs);
    if (kept !== undefined) return kept;
    if (this.#kept.length === KEPT_DAYS) this.#kept = [];
    const day = this.#find(ms);
    this.#kept.push(day);
    return day;
  }

  #find(ms: number): Day {
    const { dateMs, timeMs } = this.#timeAt(ms);
    const midnightMs = ms - timeMs;
    return {
      fromMs: this.#border(dateMs - 1, ms - LONGEST_DAY_MS, ms, midnightMs),
      toMs: this.#border(dateMs, ms, ms + LONGEST_DAY_MS, midnightMs + DAY_MS),
      date: formatIso(dateMs).slice(0, DATE_CHARS),
    };
  }

  /** The first instant in (fromMs, toMs] whose date is later than `dateMs`. `guess` is where it is on most days. */
  #border(dateMs: number, fromMs: number, toMs: number, guess: number): number {
    const isAfter = (ms: number) => this.#timeAt(ms).dateMs > dateMs;
    if (guess > fromMs && guess <= toMs && isAfter(guess) && !isAfter(guess - 1)) return guess;
    let before = fromMs;
    let after = toMs;
    invariant(isAfter(after) && !isAfter(before), 'a day ends within three');
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (isAfter(middle)) after = middle;
      else before = middle;
    }
    return after;
  }
}

function timeInUtc(ms: number): LocalTime {
  const dateMs = Math.floor(ms / DAY_MS) * DAY_MS;
  return { dateMs, timeMs: ms - dateMs };
}

function timeIn(format: Intl.DateTimeFormat, ms: number): LocalTime {
  const at: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(ms)) at[type] = Number(value);
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = at;
  const inSecondMs = ms - Math.floor(ms / 1_000) * 1_000;
  return {
    dateMs: Date.UTC(year, month - 1, day),
    timeMs: hour * HOUR_MS + (minute * 60 + second) * 1_000 + inSecondMs,
  };
}

/** Throws RangeError for an unknown zone. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en', {
    ...{ timeZone, calendar: 'iso8601', hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
}
