import { fail, ok, type Result } from './result.ts';

/** Far deeper than any body of this service; beyond it, recursive code could run out of stack. */
const MAX_DEPTH = 64;

/**
 * Values and names of members in one body, unless its reader allows more: four times those of an area of 2000 points.
 * Each takes time and memory to build, however few bytes it was: a megabyte of `{"a":1},` with another name each time
 * would keep the event loop for a tenth of a second.
 */
export const MAX_JSON_VALUES = 40_000;

/** Throws on bytes that are no UTF-8, passes over a byte order mark (RFC 8259 section 8.1 allows both). */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Why bytes give no value. */
export type JsonFault = 'not_json' | 'too_deep' | 'too_many_values';

/**
 * The value of JSON text in UTF-8; fails for what is no JSON, for what is nested deeper than 64 levels, and for what
 * holds more than `maxValues` values and names, of which nothing is built. Never throws.
 */
export function parseJson(
  bytes: Uint8Array,
  maxValues: number = MAX_JSON_VALUES,
): Result<unknown, JsonFault> {
  try {
    const text = UTF8.decode(bytes);
    const fault = structureFault(text, maxValues);
    return fault === null ? ok(JSON.parse(text)) : fail(fault);
  } catch {
    return fail('not_json'); // decode throws nothing but TypeError, JSON.parse nothing but SyntaxError
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/**
 * Every value and name stands first in the text, behind a comma or a colon, or first in an array or object, so to count
 * these is never too little. An array or object that is empty counts twice. Of a text that is no JSON either fault may
 * be told.
 */
function structureFault(text: string, maxValues: number): JsonFault | null {
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
