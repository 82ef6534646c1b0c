import { fail, ok, type Result } from './result.ts';

/** Far deeper than any body of this service; beyond it, recursive code could run out of stack. */
const MAX_DEPTH = 64;

/**
 * How many values and names one body may have, unless its reader allows more: four times those of an area of 2000
 * points. Each takes time and memory to build, however few bytes it has: a megabyte of `{"a":1},` with a new name each
 * time would block the event loop for a tenth of a second.
 */
export const MAX_JSON_VALUES = 40_000;

/** Throws on bytes that are not UTF-8 and skips a byte order mark (RFC 8259 section 8.1 allows both). */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Why bytes give no value. */
export type JsonError = 'not_json' | 'too_deep' | 'too_many_values';

/**
 * The value of JSON text in UTF-8. Fails for text that is not JSON, is nested deeper than 64 levels, or holds more than
 * `maxValues` values and names; in the last case no value is built. Never throws.
 */
export function parseJson(
  bytes: Uint8Array,
  maxValues: number = MAX_JSON_VALUES,
): Result<unknown, JsonError> {
  try {
    const text = UTF8.decode(bytes);
    const error = structureError(text, maxValues);
    return error === null ? ok(JSON.parse(text)) : fail(error);
  } catch {
    return fail('not_json'); // decode throws nothing but TypeError, JSON.parse nothing but SyntaxError
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/**
 * Counts the values and names of a text. Each of them follows a comma or a colon or comes first in an array or object,
 * so the count is never too low; an empty array or object counts twice. For text that is not JSON, either error may be
 * returned.
 */
function structureError(text: string, maxValues: number): JsonError | null {
  let depth = 0;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) i = endOfString(text, i);
    else if (code === COMMA || code === COLON) values++;
    else if (code === 0x5b || code === 0x7b) {
      values++;
      if (++depth > MAX_DEPTH) return 'too_deep';
    } else if (code === 0x5d || code === 0x7d) depth--;
    if (values > maxValues) return 'too_many_values';
  }
  return null;
}

/** The place of the quote that ends the string which begins at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

/**
 * The value of JSON text; undefined, which no JSON text gives, when it is not JSON. For text of our own, and for text
 * whose values were counted before: it has none of the limits of parseJson. Never throws.
 */
export function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // JSON.parse throws nothing but SyntaxError
  }
}

/** A JSON object: neither an array nor null. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a member of a JSON object counts as not sent: null acts as missing. */
export function isMissing(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

export type NameError = 'blank' | 'not_plain' | 'too_long';

/** A name as people write it, trimmed; lengths count code points. */
export function parseNameText(text: string, maxCodePoints: number): Result<string, NameError> {
  const name = text.trim();
  if (name === '') return fail('blank');
  if (!isPlainText(name)) return fail('not_plain');
  return isLongerThan(name, maxCodePoints) ? fail('too_long') : ok(name);
}

/** True for text that Postgres can store and a terminal can show: no control characters, no half characters. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** Counts no further than it must: a body may hold a megabyte of name. */
function isLongerThan(text: string, maxCodePoints: number): boolean {
  return text.length > 2 * maxCodePoints || [...text].length > maxCodePoints;
}
