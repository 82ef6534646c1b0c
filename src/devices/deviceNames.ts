/** An IMEI (15 digits), without its check digit (14) or with a software version (16, 17). */
export const IMEI = /^[0-9]{14,17}$/;

export function isImei(text: string): boolean {
  return IMEI.test(text);
}

// IMEIs as two numbers, in the order of their texts: the first 15 digits, and what follows them.

const HEAD_DIGITS = 15;
const ZERO = 0x30;

/** The first 15 digits as a number; a missing one counts as 0. */
export function imeiHead(imei: string): number {
  return imeiHeadOf(digits, digitsPlace(imei));
}

/** 0: there are 14 digits. 1: 15. Above: the digits after those, of which each has eleven ways to go on. */
export function imeiTail(imei: string): number {
  return imeiTailOf(digits, digitsPlace(imei));
}

/** The same of an IMEI as ASCII. */
export function imeiHeadOf(bytes: Uint8Array, { start, end }: TextPlace): number {
  let head = 0;
  for (let n = 0; n < HEAD_DIGITS; n++)
    head = 10 * head + (start + n < end ? (bytes[start + n] as number) - ZERO : 0);
  return head;
}

export function imeiTailOf(bytes: Uint8Array, { start, end }: TextPlace): number {
  const rest = end - start - HEAD_DIGITS;
  if (rest <= 0) return rest + 1;
  const first = (bytes[start + HEAD_DIGITS] as number) - ZERO;
  return 2 + 11 * first + (rest === 1 ? 0 : 1 + (bytes[start + HEAD_DIGITS + 1] as number) - ZERO);
}

const digits = new Uint8Array(HEAD_DIGITS + 2);

function digitsPlace(imei: string): TextPlace {
  for (let n = 0; n < digits.length; n++) digits[n] = imei.charCodeAt(n);
  return { start: 0, end: imei.length };
}

// What a device is called, as one text that memory keeps: its IMEI, and name and plate as they are in JSON. Answers take
// it as it is. For example: 356938035643809"Van 12","plate":null

export interface Names {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
}

const PLATE = ',"plate":';
const NULL = 'null';
const IMEI_LEAST = 14;

export function namesText({ imei, name, plate }: Names): string {
  return `${imei}${quoted(name)}${PLATE}${quoted(plate)}`;
}

/** Where a text is among the bytes of others; null begins at -1. */
interface TextPlace {
  readonly start: number;
  readonly end: number;
}

/** IMEI, name and plate as UTF-8. */
export interface NamesBytes {
  readonly bytes: Uint8Array;
  readonly imei: TextPlace;
  readonly name: TextPlace;
  readonly plate: TextPlace;
}

/** Writes namesText to the beginning of `target`. Returns its length; 0: it does not fit, or is not ASCII without escapes. */
export function writeNames(target: Uint8Array, { bytes, imei, name, plate }: NamesBytes): number {
  const least = imei.end - imei.start + name.end - name.start + plate.end - plate.start + NAMES_REST_BYTES;
  if (least > target.length) return 0;
  let at = 0;
  for (let from = imei.start; from < imei.end; from++) target[at++] = bytes[from] as number;
  at = writeQuoted(target, at, bytes, name);
  if (at === 0) return 0;
  for (let n = 0; n < PLATE.length; n++) target[at++] = PLATE.charCodeAt(n);
  return writeQuoted(target, at, bytes, plate);
}

/** The most that namesText adds to the three texts. */
const NAMES_REST_BYTES = PLATE.length + 2 * NULL.length;

/** Returns where it ends; 0: a character is not ASCII or has to be escaped. */
function writeQuoted(target: Uint8Array, at: number, bytes: Uint8Array, { start, end }: TextPlace): number {
  if (start === -1) {
    for (let n = 0; n < NULL.length; n++) target[at + n] = NULL.charCodeAt(n);
    return at + NULL.length;
  }
  let to = at;
  target[to++] = QUOTE;
  for (let from = start; from < end; from++) {
    const byte = bytes[from] as number;
    if (byte >= 0x80 || needsEscape(byte)) return 0;
    target[to++] = byte;
  }
  target[to++] = QUOTE;
  return to;
}

/** Where the IMEI ends and the name begins. */
export function imeiEnd(names: string): number {
  let end = IMEI_LEAST;
  while (isDigit(names.charCodeAt(end))) end++;
  return end;
}

export function readNames(names: string): Names {
  const at = imeiEnd(names);
  const end = valueEnd(names, at);
  const name = textOf(names.slice(at, end));
  return { imei: names.slice(0, at), name, plate: textOf(names.slice(end + PLATE.length)) };
}

/** A text as JSON. */
export function quoted(text: string | null): string {
  if (text === null) return NULL;
  for (let at = 0; at < text.length; at++) {
    if (needsEscape(text.charCodeAt(at))) return JSON.stringify(text);
  }
  return `"${text}"`;
}

/** Control characters, the quotation mark, the backslash, and surrogates, which may stand alone (RFC 8259 section 7). */
function needsEscape(charCode: number): boolean {
  return charCode < 0x20 || charCode === QUOTE || charCode === BACKSLASH || charCode >= 0xd800;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function isDigit(charCode: number): boolean {
  return charCode >= ZERO && charCode <= ZERO + 9;
}

/** Where the JSON of a text or null ends that begins at `at`. */
function valueEnd(json: string, at: number): number {
  if (json.charCodeAt(at) !== QUOTE) return at + NULL.length;
  let end = at + 1;
  while (json.charCodeAt(end) !== QUOTE) end += json.charCodeAt(end) === BACKSLASH ? 2 : 1;
  return end + 1;
}

function textOf(json: string): string | null {
  if (json === NULL) return null;
  return json.includes('\\') ? JSON.parse(json) : json.slice(1, -1);
}
