import { parseIsoMs } from '../lib/isoTime.ts';

/** Query parameters by name. Blank ones are kept: most count as missing, an IMEI does not. */
export type Query = Readonly<Record<string, string | undefined>>;

/** A query as it was read: its parameters, or what is wrong with them as such. */
export type ReadQuery = {
  /** Names that are not among the known ones, each once; null when there are none, which is nearly always. */
  readonly unknown: readonly string[] | null;
} & ({ readonly query: Query } | { readonly problem: typeof REPEATED_MESSAGE | typeof LENGTH_MESSAGE });

export const REPEATED_MESSAGE = 'a query parameter is given twice';

/** Several times the longest that means anything, such as a cursor, or an external id with each character escaped. */
export const PARAMETER_MAX_CHARS = 2_048;
export const LENGTH_MESSAGE = `a parameter has more than ${PARAMETER_MAX_CHARS} characters`;

const NO_QUERY: ReadQuery = { query: Object.freeze(Object.create(null)) as Query, unknown: null };
const TOO_LONG: ReadQuery = { problem: LENGTH_MESSAGE, unknown: null };

/**
 * The query of a request target ("/path?a=b"). No path of this service is longer than a parameter may be, so that of the
 * path is counted with it. `known`: the names that the route reads; null where nobody asks for the others.
 */
export function readQuery(target: string, known: ReadonlySet<string> | null): ReadQuery {
  if (target.length > PARAMETER_MAX_CHARS && isTooLong(target)) return TOO_LONG;
  const mark = target.indexOf('?');
  if (mark === -1 || mark === target.length - 1) return NO_QUERY;
  return NEEDS_DECODING.test(target)
    ? readEncoded(target.slice(mark), known)
    : readPlain(target, mark + 1, known);
}

/** Whether the path or a piece of the query is: as sent, so that what is too long is not even decoded. */
function isTooLong(target: string): boolean {
  const mark = target.indexOf('?');
  if (mark === -1) return true;
  if (mark > PARAMETER_MAX_CHARS) return true;
  return target
    .slice(mark + 1)
    .split('&')
    .some((piece) => piece.length - piece.indexOf('=') - 1 > PARAMETER_MAX_CHARS);
}

/** An escape, or the blank's other spelling. */
const NEEDS_DECODING = /[%+]/;

/** `text` begins with the question mark, which URLSearchParams takes off: only the first is none of the name's. */
function readEncoded(text: string, known: ReadonlySet<string> | null): ReadQuery {
  const query: Record<string, string> = Object.create(null);
  let unknown: string[] | null = null;
  let isRepeated = false;
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in query) {
      isRepeated = true;
      continue;
    }
    query[name] = value;
    if (known !== null && !known.has(name)) unknown = withName(unknown, name);
  }
  return isRepeated ? { problem: REPEATED_MESSAGE, unknown } : { query, unknown };
}

/** The same without a decoder, which takes longer than to answer: the query of nearly every polling call. */
function readPlain(target: string, start: number, known: ReadonlySet<string> | null): ReadQuery {
  const query: Record<string, string> = Object.create(null);
  let unknown: string[] | null = null;
  let isRepeated = false;
  for (let from = start; from <= target.length; ) {
    const ampersand = target.indexOf('&', from);
    const end = ampersand === -1 ? target.length : ampersand;
    const equals = target.indexOf('=', from);
    const nameEnd = equals === -1 || equals > end ? end : equals;
    if (end > from) {
      const name = target.slice(from, nameEnd);
      if (name in query) isRepeated = true;
      else {
        query[name] = nameEnd === end ? '' : target.slice(nameEnd + 1, end);
        if (known !== null && !known.has(name)) unknown = withName(unknown, name);
      }
    }
    from = end + 1;
  }
  return isRepeated ? { problem: REPEATED_MESSAGE, unknown } : { query, unknown };
}

function withName(names: string[] | null, name: string): string[] {
  if (names === null) return [name];
  names.push(name);
  return names;
}

/** Decimal notation only: no exponent, no hexadecimal, no blanks. */
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;

/** A number in decimal notation, or null. So many digits that no double holds them are Infinity. */
export function parseDecimal(text: string | undefined): number | null {
  return text !== undefined && DECIMAL.test(text) ? Number(text) : null;
}

/** A whole number moved into [min, max]; `fallback` when missing or not a number; fractions are cut. */
export function clampedInt(text: string | undefined, min: number, max: number, fallback: number): number {
  const value = parseDecimal(text);
  if (value === null) return fallback;
  return Math.min(max, Math.max(min, Math.trunc(value)));
}

/** The offset of a list: 0 when missing, negative or not a number. */
export function offsetOf(query: Query): number {
  return clampedInt(query['offset'], 0, Number.MAX_SAFE_INTEGER, 0);
}

/** A time window, both ends included; null ends are open. 'invalid' when an end cannot be read. */
export function windowOf(query: Query): { fromMs: number | null; toMs: number | null } | 'invalid' {
  const fromMs = timeOf(query['from']);
  const toMs = timeOf(query['to']);
  return fromMs === 'invalid' || toMs === 'invalid' ? 'invalid' : { fromMs, toMs };
}

function timeOf(text: string | undefined): number | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  return parseIsoMs(text) ?? 'invalid';
}

export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** Names the parameters of a query that its route does not read: a misspelt one is otherwise ignored without a word. */
export const UNKNOWN_PARAMETERS_HEADER = 'X-Unknown-Parameters';

const NAMES_MAX = 10;
const NAME_MAX_CHARS = 64;

/**
 * The value of the header: the first ten names, each percent-encoded and cut to 64 characters. It holds nothing but
 * letters, digits and punctuation, whatever the names hold.
 */
export function unknownParametersText(names: readonly string[]): string {
  return names.slice(0, NAMES_MAX).map(encoded).join(',');
}

function encoded(name: string): string {
  // An empty element would not be seen in a list.
  if (name === '') return '""';
  let text = '';
  for (const character of name.slice(0, NAME_MAX_CHARS).toWellFormed()) {
    const next = encodeURIComponent(character).replace(/[()]/g, (bracket) =>
      bracket === '(' ? '%28' : '%29',
    );
    if (text.length + next.length > NAME_MAX_CHARS) break;
    text += next;
  }
  return text;
}
