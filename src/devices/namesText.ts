// What a device is called, as one text that memory keeps: its IMEI, and name and plate as they are in JSON. Answers take
// it as it is. For example: 356938035643809"Van 12","plate":null

const PLATE = ',"plate":';
const IMEI_LEAST = 14;

export function namesText(imei: string, name: string | null, plate: string | null): string {
  return `${imei}${quoted(name)}${PLATE}${quoted(plate)}`;
}

/** Where the IMEI ends and the name begins. */
export function imeiEnd(names: string): number {
  let end = IMEI_LEAST;
  while (isDigit(names.charCodeAt(end))) end++;
  return end;
}

export function readNames(names: string): { imei: string; name: string | null; plate: string | null } {
  const at = imeiEnd(names);
  const end = valueEnd(names, at);
  const name = textOf(names.slice(at, end));
  return { imei: names.slice(0, at), name, plate: textOf(names.slice(end + PLATE.length)) };
}

/** A text as JSON. */
export function quoted(text: string | null): string {
  if (text === null) return 'null';
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
  return charCode >= 0x30 && charCode <= 0x39;
}

/** Where the JSON of a text or null ends that begins at `at`. */
function valueEnd(json: string, at: number): number {
  if (json.charCodeAt(at) !== QUOTE) return at + 'null'.length;
  let end = at + 1;
  while (json.charCodeAt(end) !== QUOTE) end += json.charCodeAt(end) === BACKSLASH ? 2 : 1;
  return end + 1;
}

function textOf(json: string): string | null {
  if (json === 'null') return null;
  return json.includes('\\') ? JSON.parse(json) : json.slice(1, -1);
}
