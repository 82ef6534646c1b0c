const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;

/**
 * Whether JSON text, in UTF-8, may hold more than `max` values, for it is they that make JSON.parse slow and its result
 * large. Counted are commas and opening brackets outside of strings: an empty object or array counts as two.
 */
export function hasMoreValues(text: Uint8Array, max: number): boolean {
  let values = 1;
  let inString = false;
  for (let at = 0; at < text.length && values <= max; at++) {
    const code = text[at];
    if (code === QUOTE) inString = !inString;
    else if (inString) {
      if (code === BACKSLASH) at++;
    } else if (code === COMMA || code === OPEN_BRACE || code === OPEN_BRACKET) values++;
  }
  return values > max;
}
