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

/** The days of one time zone. */
export class LocalDays {
  /** Made with the module: the first format of a process takes some 25 ms, for which no call should stop the others. */
  static readonly UTC = new LocalDays(formatOf('UTC'));

  readonly #format: Intl.DateTimeFormat;
  #kept: Day[] = [];

  private constructor(format: Intl.DateTimeFormat) {
    this.#format = format;
  }

  /** Of a zone of the IANA database, such as Europe/Rome; null when there is none of this name. */
  static of(timeZone: string): LocalDays | null {
    if (!ZONE_NAME.test(timeZone)) return null;
    try {
      return new LocalDays(formatOf(timeZone));
    } catch (error) {
      if (error instanceof RangeError) return null;
      throw error;
    }
  }

  /** The name of the zone, of which `of` makes the same days. */
  get timeZone(): string {
    return this.#format.resolvedOptions().timeZone;
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
    const { dateMs, timeMs } = this.#clock(ms);
    const midnightMs = ms - timeMs;
    return {
      fromMs: this.#border(dateMs - 1, ms - LONGEST_DAY_MS, ms, midnightMs),
      toMs: this.#border(dateMs, ms, ms + LONGEST_DAY_MS, midnightMs + DAY_MS),
      date: formatIso(dateMs).slice(0, DATE_CHARS),
    };
  }

  /** The first instant in (fromMs, toMs] whose date is later than `dateMs`. `guess` is where it is on most days. */
  #border(dateMs: number, fromMs: number, toMs: number, guess: number): number {
    const isAfter = (ms: number) => this.#clock(ms).dateMs > dateMs;
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

  /** What a calendar and a clock show there: the date as its midnight in UTC. */
  #clock(ms: number): { dateMs: number; timeMs: number } {
    const at: Record<string, number> = {};
    for (const { type, value } of this.#format.formatToParts(ms)) at[type] = Number(value);
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = at;
    const inSecondMs = ms - Math.floor(ms / 1_000) * 1_000;
    return {
      dateMs: Date.UTC(year, month - 1, day),
      timeMs: hour * HOUR_MS + (minute * 60 + second) * 1_000 + inSecondMs,
    };
  }
}

/** Throws RangeError for an unknown zone. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en', {
    ...{ timeZone, calendar: 'iso8601', hourCycle: 'h23' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
}
