import { DAY_MS, formatIso, HOUR_MS, MINUTE_MS } from '../lib/time.ts';
import { countOf, type PointColumns } from './codec/pointColumns.ts';

/** A point of a page. */
export interface HistoryPoint {
  readonly latitude: number;
  readonly longitude: number;
  readonly speed_kmh: number;
  readonly heading: number;
  readonly satellites: number;
  readonly recorded_at: string;
}

/**
 * The body of a page: `{ data: HistoryPoint[], meta }`, the bytes that JSON.stringify would give. `pieces`: newest first, the
 * points of each oldest first. Made from the columns, without an object for each point.
 */
export function historyPage(pieces: readonly PointColumns[], limit: number): Buffer {
  const count = countOf(pieces);
  const needed = count * POINT_BYTES_MAX + FRAME_BYTES_MAX;
  if (draft.length < needed) draft = Buffer.allocUnsafeSlow(needed);
  const bytes = draft;
  let at = bytes.write('{"data":[', 'latin1');
  for (const points of pieces) {
    for (let n = points.count - 1; n >= 0; n--) {
      at = putText(bytes, at, LATITUDE);
      at = putNumber(bytes, at, points.lats[n] as number);
      at = putText(bytes, at, LONGITUDE);
      at = putNumber(bytes, at, points.lngs[n] as number);
      at = putText(bytes, at, SPEED);
      at = putNumber(bytes, at, points.speedsKmh[n] as number);
      at = putText(bytes, at, HEADING);
      at = putNumber(bytes, at, points.headings[n] as number);
      at = putText(bytes, at, SATELLITES);
      at = putNumber(bytes, at, points.satellites[n] as number);
      at = putText(bytes, at, RECORDED);
      at = putTime(bytes, at, points.recordedAtMs[n] as number);
      at = putText(bytes, at, END);
    }
  }
  // No comma behind the last one.
  if (count > 0) at--;
  const meta = JSON.stringify({ pagination: { limit, offset: 0, count } });
  at += bytes.write(`],"meta":${meta}}`, at, 'latin1');
  return Buffer.from(bytes.subarray(0, at));
}

/** Where pages are made, one after the other, since one that is half full is twice as much to collect. */
let draft = Buffer.alloc(0);

/** Six names, five numbers of at most 25 characters, and a time. */
const POINT_BYTES_MAX = 256;
const FRAME_BYTES_MAX = 256;

const LATITUDE = Buffer.from('{"latitude":');
const LONGITUDE = Buffer.from(',"longitude":');
const SPEED = Buffer.from(',"speed_kmh":');
const HEADING = Buffer.from(',"heading":');
const SATELLITES = Buffer.from(',"satellites":');
const RECORDED = Buffer.from(',"recorded_at":"');
const END = Buffer.from('"},');

/** The methods of Buffer take longer than a loop for so few bytes. */
function putText(bytes: Buffer, at: number, text: Buffer): number {
  for (let n = 0; n < text.length; n++) bytes[at + n] = text[n] as number;
  return at + text.length;
}

const [MINUS, POINT, ZERO, COLON, ZULU] = Buffer.from('-.0:Z') as unknown as [
  number,
  number,
  number,
  number,
  number,
];
const BILLION = 1e9;
/** Numbers below have at most 15 digits with nine decimals: no other decimal of so few digits is the same double. */
const DECIMAL_MAX = 1e6;
/** JavaScript writes smaller ones with an exponent. */
const DECIMAL_MIN = 1e-6;

/** A number as JSON has it: the shortest decimal that is this double. */
function putNumber(bytes: Buffer, at: number, value: number): number {
  const size = Math.abs(value);
  const billionths = Math.round(size * BILLION);
  const isDecimal =
    size < DECIMAL_MAX && (size >= DECIMAL_MIN || size === 0) && billionths / BILLION === size;
  if (!isDecimal) return at + bytes.write(JSON.stringify(value), at, 'latin1');
  if (value < 0) bytes[at++] = MINUS;
  const whole = Math.floor(size);
  at = putWhole(bytes, at, whole);
  const rest = billionths - whole * BILLION;
  if (rest === 0) return at;
  bytes[at++] = POINT;
  const thousandths = Math.floor(rest / 1e6);
  at = putDigits(bytes, at, thousandths);
  const afterThree = rest - thousandths * 1e6;
  if (afterThree !== 0) {
    const millionths = Math.floor(afterThree / 1e3);
    at = putDigits(bytes, at, millionths);
    const afterSix = afterThree - millionths * 1e3;
    if (afterSix !== 0) at = putDigits(bytes, at, afterSix);
  }
  while (bytes[at - 1] === ZERO) at--;
  return at;
}

function putWhole(bytes: Buffer, at: number, whole: number): number {
  if (whole < 10) {
    bytes[at] = ZERO + whole;
    return at + 1;
  }
  if (whole >= 1_000) return putDigits(bytes, putWhole(bytes, at, Math.floor(whole / 1_000)), whole % 1_000);
  if (whole >= 100) return putDigits(bytes, at, whole);
  return putTwo(bytes, at, whole);
}

/** The three digits of each number below 1 000. */
const DIGITS = Uint8Array.from({ length: 3_000 }, (_, n) =>
  String(Math.floor(n / 3))
    .padStart(3, '0')
    .charCodeAt(n % 3),
);

function putDigits(bytes: Buffer, at: number, below1000: number): number {
  const from = 3 * below1000;
  bytes[at] = DIGITS[from] as number;
  bytes[at + 1] = DIGITS[from + 1] as number;
  bytes[at + 2] = DIGITS[from + 2] as number;
  return at + 3;
}

function putTwo(bytes: Buffer, at: number, below100: number): number {
  bytes[at] = DIGITS[3 * below100 + 1] as number;
  bytes[at + 1] = DIGITS[3 * below100 + 2] as number;
  return at + 2;
}

const DATE_LENGTH = 'YYYY-MM-DDT'.length;
let writtenDay = Number.NaN;
let writtenDate = Buffer.alloc(0);

/** A time as formatIso writes it. */
function putTime(bytes: Buffer, at: number, ms: number): number {
  const wholeMs = Math.trunc(ms);
  const day = Math.floor(wholeMs / DAY_MS);
  if (day !== writtenDay) {
    writtenDate = Buffer.from(formatIso(day * DAY_MS).slice(0, DATE_LENGTH));
    writtenDay = day;
  }
  const inDayMs = wholeMs - day * DAY_MS;
  at = putTwo(bytes, putText(bytes, at, writtenDate), Math.floor(inDayMs / HOUR_MS));
  bytes[at++] = COLON;
  at = putTwo(bytes, at, Math.floor(inDayMs / MINUTE_MS) % 60);
  bytes[at++] = COLON;
  at = putTwo(bytes, at, Math.floor(inDayMs / 1_000) % 60);
  bytes[at++] = POINT;
  at = putDigits(bytes, at, inDayMs % 1_000);
  bytes[at++] = ZULU;
  return at;
}
