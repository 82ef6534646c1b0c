import { fail, ok, type Result } from './result.ts';

/** Far deeper than any body of this service; beyond it, recursive code could run out of stack. */
const MAX_DEPTH = 64;

/** Throws on bytes that are no UTF-8, passes over a byte order mark (RFC 8259 section 8.1 allows both). */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The value of JSON text in UTF-8; fails for what is no JSON and for what is nested deeper than 64 levels. Never
 * throws.
 */
export function parseJson(bytes: Uint8Array): Result<unknown, 'not_json' | 'too_deep'> {
  try {
    const text = UTF8.decode(bytes);
    return isTooDeep(text) ? fail('too_deep') : ok(JSON.parse(text));
  } catch {
    return fail('not_json'); // decode throws nothing but TypeError, JSON.parse nothing but SyntaxError
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) i = endOfString(text, i);
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
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
