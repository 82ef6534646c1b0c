/**
 * The pieces of a JSON body, each to be given to JSON.parse: the elements of a top-level array, or the one
 * object that is the body. A last piece null says that the text is neither, or ends too soon, or goes on.
 *
 * The text is valid JSON exactly when no piece is null and JSON.parse takes every piece: only commas outside
 * strings and brackets cut, and what stands around the cuts is checked here. So a batch can be read in slices,
 * and given up at its first element too many, where one JSON.parse of 16 MB would hold the event loop.
 */
export function* jsonElements(text: string): Generator<string | null, void> {
  let at = skipSpace(text, 0);
  if (text.charCodeAt(at) === OPEN_BRACE) {
    yield text;
    return;
  }
  if (text.charCodeAt(at) !== OPEN_BRACKET) {
    yield null;
    return;
  }
  at = skipSpace(text, at + 1);
  let closed = text.charCodeAt(at) === CLOSE_BRACKET;
  while (!closed) {
    const end = elementEnd(text, at);
    const mark = text.charCodeAt(end);
    if (mark !== COMMA && mark !== CLOSE_BRACKET) {
      yield null;
      return;
    }
    yield text.slice(at, end);
    closed = mark === CLOSE_BRACKET;
    at = closed ? end : end + 1;
  }
  if (skipSpace(text, at + 1) < text.length) yield null;
}

/** The lines of an NDJSON body that are not blank. */
export function* ndjsonLines(text: string): Generator<string, void> {
  for (let at = skipSpace(text, 0); at < text.length; ) {
    const newline = text.indexOf('\n', at);
    const end = newline === -1 ? text.length : newline;
    yield text.slice(at, end);
    at = skipSpace(text, end);
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** The next place that is not JSON white space (RFC 8259 section 2), or the length. */
function skipSpace(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
  }
  return text.length;
}

/** Where the comma or closing bracket stands that ends the element starting at `from`, or the length. */
function elementEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = stringEnd(text, at + 1);
    } else if (code === COMMA) {
      if (depth === 0) return at;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth++;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (depth === 0) return at;
      depth--;
    }
  }
  return text.length;
}

function stringEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
  return text.length;
}
