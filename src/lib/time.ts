const SECOND_MS = 1_000;

/** Longest accepted text: seconds with a fraction of 30 digits and an offset fit easily. */
const MAX_LENGTH = 64;
/** Years 0001 to 9999 in UTC: what four digits can print and what Postgres reads back in the same form. */
const MIN_MS = -62_135_596_800_000;
const MAX_MS = 253_402_300_799_999;

/**
 * ISO 8601 text → epoch milliseconds, or null when it is not one. Exactly these forms:
 *
 *   YYYY-MM-DD                                   midnight UTC
 *   YYYY-MM-DDThh:mm[:ss[.fraction]][zone]       T may be t or one blank (RFC 3339 section 5.6), the point a comma
 *   zone: Z, z, ±hh:mm, ±hhmm or ±hh             missing: UTC, so that a date and its midnight are the same instant
 *
 * A fraction has any number of digits and is cut to milliseconds. Invalid: days that do not exist, hour 24,
 * second 60 (Unix time has no room for it), offsets beyond 23:59, expanded years, and instants outside the
 * years 0001 to 9999 UTC. Written by hand since it runs for every ingested point and Date.parse also reads
 * "2026", "2026-02-30" and RFC 2822 dates, some of them in the zone of the machine.
 */
export function parseIsoMs(text: string): number | null {
  if (text.length < 10 || text.length > MAX_LENGTH) return null;
  const dayMs = parseDayMs(text);
  const ms = text.length === 10 ? dayMs : dayMs + parseTimeMs(text);
  return ms >= MIN_MS && ms <= MAX_MS ? ms : null;
}

/**
 * Epoch milliseconds → `YYYY-MM-DDThh:mm:ss.sssZ`. Throws RangeError outside the range of Date. The method of Date
 * takes three times as long, which is measurable in a list of positions. Here the day is nearly always the one
 * formatted last, and the rest comes from tables.
 */
export function formatIso(ms: number): string {
  const wholeMs = Math.trunc(ms);
  const day = Math.floor(wholeMs / DAY_MS);
  if (day !== formattedDay) {
    formattedDayText = new Date(wholeMs).toISOString().slice(0, -'hh:mm:ss.sssZ'.length);
    formattedDay = day;
  }
  const inDayMs = wholeMs - day * DAY_MS;
  const minute = Math.trunc(inDayMs / MINUTE_MS);
  const inMinuteMs = inDayMs - minute * MINUTE_MS;
  const second = Math.trunc(inMinuteMs / SECOND_MS);
  return formattedDayText + MINUTES[minute] + SECONDS[second] + MILLIS[inMinuteMs - second * SECOND_MS];
}

let formattedDay = Number.NaN;
let formattedDayText = '';

const padded = (value: number, digits: number): string => String(value).padStart(digits, '0');
/** `hh:mm:`, `ss.` and `sssZ`. */
const MINUTES = Array.from(
  { length: 1_440 },
  (_, at) => `${padded(Math.trunc(at / 60), 2)}:${padded(at % 60, 2)}:`,
);
const SECONDS = Array.from({ length: 60 }, (_, at) => `${padded(at, 2)}.`);
const MILLIS = Array.from({ length: 1_000 }, (_, at) => `${padded(at, 3)}Z`);

// The parsers below return NaN for "not that": a sum with it is NaN, and a comparison with it is false.

function parseDayMs(text: string): number {
  if (text[4] !== '-' || text[7] !== '-') return Number.NaN;
  const year = digits(text, 0) * 100 + digits(text, 2);
  const month = digits(text, 5);
  const day = digits(text, 8);
  const exists = month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month);
  return exists ? daysSinceEpoch(year, month, day) * DAY_MS : Number.NaN;
}

/** The time and its zone, from the separator at 10 to the end: milliseconds to add to midnight UTC. */
function parseTimeMs(text: string): number {
  const separator = text[10];
  if ((separator !== 'T' && separator !== 't' && separator !== ' ') || text[13] !== ':') return Number.NaN;
  const hour = digits(text, 11);
  const minute = digits(text, 14);
  if (!(hour <= 23 && minute <= 59)) return Number.NaN;
  const minutesMs = hour * HOUR_MS + minute * MINUTE_MS;
  if (text[16] !== ':') return minutesMs - parseZoneMs(text, 16);

  const second = digits(text, 17);
  if (!(second <= 59)) return Number.NaN;
  let at = 19;
  let fractionMs = 0;
  if (text[at] === '.' || text[at] === ',') {
    const first = at + 1;
    let worth = 100;
    for (at = first; isDigit(text.charCodeAt(at)); at++) {
      fractionMs += (text.charCodeAt(at) - 48) * worth;
      worth = Math.trunc(worth / 10);
    }
    if (at === first) return Number.NaN;
  }
  return minutesMs + second * SECOND_MS + fractionMs - parseZoneMs(text, at);
}

/** The offset from UTC in milliseconds of the zone that fills the text from `at` to its end. */
function parseZoneMs(text: string, at: number): number {
  const length = text.length - at;
  if (length === 0) return 0;
  const mark = text[at];
  if (length === 1) return mark === 'Z' || mark === 'z' ? 0 : Number.NaN;
  const sign = mark === '+' ? 1 : mark === '-' ? -1 : Number.NaN;
  const hour = digits(text, at + 1);
  let minute = Number.NaN;
  if (length === 3) minute = 0;
  else if (length === 5) minute = digits(text, at + 3);
  else if (length === 6 && text[at + 3] === ':') minute = digits(text, at + 4);
  return hour <= 23 && minute <= 59 ? sign * (hour * HOUR_MS + minute * MINUTE_MS) : Number.NaN;
}

/** The two digits at `at` as a number. */
function digits(text: string, at: number): number {
  const tens = text.charCodeAt(at);
  const ones = text.charCodeAt(at + 1);
  return isDigit(tens) && isDigit(ones) ? (tens - 48) * 10 + ones - 48 : Number.NaN;
}

function isDigit(charCode: number): boolean {
  return charCode >= 48 && charCode <= 57;
}

const MONTH_DAYS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function daysInMonth(year: number, month: number): number {
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return (MONTH_DAYS[month] as number) + (leap ? 1 : 0);
}

/** Days from 1970-01-01 in the proleptic Gregorian calendar (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms"). */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const fromMarch = month <= 2 ? year - 1 : year;
  const era = Math.floor(fromMarch / 400);
  const yearOfEra = fromMarch - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** What was waited for did not come in time. It may still happen. */
export class DeadlineExceeded extends Error {
  override name = 'DeadlineExceeded';
}

/**
 * A computation, with its waits for its turns, took longer than it may. Unlike DeadlineExceeded, it does not mean that
 * something else failed to answer.
 */
export class OutOfTime extends Error {
  override name = 'OutOfTime';
}

/** `promise`, or a rejection with `Exceeded` when it has not settled within `limitMs`. */
export function withDeadline<T>(
  promise: Promise<T>,
  limitMs: number,
  what: string,
  Exceeded: typeof DeadlineExceeded | typeof OutOfTime = DeadlineExceeded,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Exceeded(`${what} took longer than ${limitMs} ms`)), limitMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Milliseconds in each unit of time. A day is 24 hours: all times of the service are in UTC. */
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const WEEK_MS = 7 * DAY_MS;

/** The Monday, 00:00 UTC, of the week of `ms`. */
export function weekStartMs(ms: number): number {
  return Math.floor((ms - FIRST_MONDAY_MS) / WEEK_MS) * WEEK_MS + FIRST_MONDAY_MS;
}

/** 1970-01-05, the first Monday of the epoch. */
const FIRST_MONDAY_MS = 4 * DAY_MS;

/**
 * A length of time as people write it, by its two largest units: "4 min 30 s", "36 h", "3 days 2 h". Under a minute it is
 * exact to the millisecond.
 */
export function formatDuration(ms: number): string {
  if (ms < MINUTE_MS) return `${Number((ms / 1_000).toFixed(3))} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < HOUR_MS / 1_000) return inTwoUnits(seconds, 60, 'min', 's');
  const minutes = Math.round(ms / MINUTE_MS);
  if (minutes < (2 * DAY_MS) / MINUTE_MS) return inTwoUnits(minutes, 60, 'h', 'min');
  return inTwoUnits(Math.round(ms / HOUR_MS), 24, 'days', 'h');
}

function inTwoUnits(amount: number, perUnit: number, unit: string, smallUnit: string): string {
  const rest = amount % perUnit;
  const whole = `${(amount - rest) / perUnit} ${unit}`;
  return rest === 0 ? whole : `${whole} ${rest} ${smallUnit}`;
}

/** Where the time comes from: epoch milliseconds. Passed in, so that tests can set it. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
