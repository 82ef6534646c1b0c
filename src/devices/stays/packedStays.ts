import { invariant } from '../../lib/errors.ts';

/** A device is inside an area, or was at its newest point. Kept with the device's state, from point to point. */
export interface Stay {
  readonly areaId: number;
  /** GPS time of the first point inside. */
  readonly insideSinceMs: number;
  /** GPS time of the point that completed the minimum stay and produced the entry; null: still pending. */
  readonly confirmedAtMs: number | null;
}

/** A device that is in no area. Stays are ordered by area, at most one for each. */
export const NO_STAYS: readonly Stay[] = [];

/** Where the stay in this area, or in the next one by id, is in the list. */
export function indexOfArea(stays: readonly Stay[], areaId: number): number {
  let low = 0;
  let high = stays.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if ((stays[mid] as Stay).areaId < areaId) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** The stays of a device as compact JSON: [[areaId, insideSinceMs, confirmedAtMs or null], …]. */
export function encodeStays(stays: readonly Stay[]): string {
  if (stays.length === 0) return NONE;
  return JSON.stringify(
    stays.map(({ areaId, insideSinceMs, confirmedAtMs }) => [areaId, insideSinceMs, confirmedAtMs]),
  );
}

/** What `encodeStays` made, as text or already parsed → the stays. Anything else is a bug and throws. */
export function decodeStays(stored: unknown): readonly Stay[] {
  if (stored === NONE) return NO_STAYS;
  const rows: unknown = typeof stored === 'string' ? JSON.parse(stored) : stored;
  invariant(Array.isArray(rows), 'stays are stored as a list');
  let previousId = 0;
  return rows.map((row: unknown): Stay => {
    invariant(Array.isArray(row) && row.length === 3, 'a stay is stored as three values');
    const [areaId, insideSinceMs, confirmedAtMs]: unknown[] = row;
    invariant(isInteger(areaId) && areaId > previousId, 'stays are stored in the order of their areas');
    invariant(isInteger(insideSinceMs), 'a stay has a beginning');
    invariant(confirmedAtMs === null || isInteger(confirmedAtMs), 'a stay is confirmed at a time or not yet');
    previousId = areaId;
    return { areaId, insideSinceMs, confirmedAtMs };
  });
}

const NONE = '[]';

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

declare const packed: unique symbol;

/**
 * The stays of one device, ordered by area, as bytes in a text of one byte a character: a text takes 16 bytes more than
 * its characters, a typed array some 200. Memory holds millions of them, and a stay takes 2 to 15 bytes here.
 *
 *   bytes 0, 1, 2    widths in bytes of the area, the beginning and the entry of each stay
 *   bytes 3 to 23    the lowest area, the earliest beginning and the shortest wait for an entry, 7 bytes each
 *   then each stay   the area and the beginning, less the lowest; the entry: 0 while it is pending, else the wait since
 *                    the beginning, less the shortest, plus 1
 */
export type PackedStays = string & { readonly [packed]: true };

/** The stays of a device outside all areas. */
export const NO_PACKED_STAYS = '' as PackedStays;

const BASE_BYTES = 7;
const HEADER_BYTES = 3 + 3 * BASE_BYTES;
/** Makes times positive: one may be before 1970, and data from elsewhere may have an entry before the beginning. */
const TIME_OFFSET = 2 ** 51;

/** Reads packed stays one by one, from `open` on, without an object for each. */
export class StayReader {
  count = 0;
  #packed: string = NO_PACKED_STAYS;
  #areaBytes = 0;
  #sinceBytes = 0;
  #entryBytes = 0;
  #stayBytes = 0;
  #firstAreaId = 0;
  #firstSinceMs = 0;

  open(packed: PackedStays): this {
    this.#packed = packed;
    this.count = 0;
    if (packed === NO_PACKED_STAYS) return this;
    this.#areaBytes = packed.charCodeAt(0);
    this.#sinceBytes = packed.charCodeAt(1);
    this.#entryBytes = packed.charCodeAt(2);
    this.#stayBytes = this.#areaBytes + this.#sinceBytes + this.#entryBytes;
    this.#firstAreaId = this.#number(3, BASE_BYTES);
    this.#firstSinceMs = this.#number(3 + BASE_BYTES, BASE_BYTES) - TIME_OFFSET;
    this.count = (packed.length - HEADER_BYTES) / this.#stayBytes;
    return this;
  }

  areaId(n: number): number {
    return this.#firstAreaId + this.#number(HEADER_BYTES + n * this.#stayBytes, this.#areaBytes);
  }

  insideSinceMs(n: number): number {
    const at = HEADER_BYTES + n * this.#stayBytes + this.#areaBytes;
    return this.#firstSinceMs + this.#number(at, this.#sinceBytes);
  }

  isPending(n: number): boolean {
    return this.#entry(n) === 0;
  }

  confirmedAtMs(n: number): number | null {
    const entry = this.#entry(n);
    if (entry === 0) return null;
    const leastWaitMs = this.#number(3 + 2 * BASE_BYTES, BASE_BYTES) - TIME_OFFSET;
    return this.insideSinceMs(n) + leastWaitMs + entry - 1;
  }

  stay(n: number): Stay {
    return {
      areaId: this.areaId(n),
      insideSinceMs: this.insideSinceMs(n),
      confirmedAtMs: this.confirmedAtMs(n),
    };
  }

  /** Where the stay in this area, or in the next one by id, is. */
  indexOf(areaId: number): number {
    let low = 0;
    let high = this.count;
    // The ids of an import follow each other.
    const guess = areaId - this.#firstAreaId;
    if (guess >= 0 && guess < high && this.areaId(guess) === areaId) return guess;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.areaId(mid) < areaId) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  #entry(n: number): number {
    const at = HEADER_BYTES + (n + 1) * this.#stayBytes - this.#entryBytes;
    return this.#number(at, this.#entryBytes);
  }

  #number(at: number, bytes: number): number {
    let value = 0;
    for (let n = at; n < at + bytes; n++) value = value * 256 + this.#packed.charCodeAt(n);
    return value;
  }
}

/** Packs stays that are added one by one in the order of their areas. `take` returns them and starts again. */
class StayPacker {
  #count = 0;
  /** Three for each stay: area, beginning, entry or NaN. */
  #values = new Float64Array(3 * 64);
  #bytes = Buffer.alloc(0);

  add(areaId: number, insideSinceMs: number, confirmedAtMs: number | null): void {
    const at = 3 * this.#count;
    if (at === this.#values.length) {
      const wider = new Float64Array(2 * at);
      wider.set(this.#values);
      this.#values = wider;
    }
    invariant(
      at === 0 || areaId > (this.#values[at - 3] as number),
      'stays come in the order of their areas',
    );
    this.#values[at] = areaId;
    this.#values[at + 1] = insideSinceMs;
    this.#values[at + 2] = confirmedAtMs ?? Number.NaN;
    this.#count++;
  }

  take(): PackedStays {
    const count = this.#count;
    if (count === 0) return NO_PACKED_STAYS;
    this.#count = 0;
    const values = this.#values;
    const firstAreaId = values[0]!;
    const span = { firstMs: Infinity, lastMs: -Infinity, leastWaitMs: Infinity, mostWaitMs: -Infinity };
    for (let at = 0; at < 3 * count; at += 3) {
      const sinceMs = values[at + 1]!;
      const waitMs = values[at + 2]! - sinceMs;
      if (sinceMs < span.firstMs) span.firstMs = sinceMs;
      if (sinceMs > span.lastMs) span.lastMs = sinceMs;
      if (waitMs < span.leastWaitMs) span.leastWaitMs = waitMs;
      if (waitMs > span.mostWaitMs) span.mostWaitMs = waitMs;
    }
    const isAllPending = span.leastWaitMs === Infinity;
    const leastWaitMs = isAllPending ? 0 : span.leastWaitMs;
    const areaBytes = bytesOf(values[3 * count - 3]! - firstAreaId);
    const sinceBytes = bytesOf(span.lastMs - span.firstMs);
    // At least one, so that the length tells how many there are.
    const entryBytes = isAllPending ? 1 : bytesOf(span.mostWaitMs - leastWaitMs + 1);
    const length = HEADER_BYTES + count * (areaBytes + sinceBytes + entryBytes);
    if (this.#bytes.length < length) this.#bytes = Buffer.alloc(2 * length);
    const bytes = this.#bytes;
    let end = 0;
    for (const width of [areaBytes, sinceBytes, entryBytes]) end = write(bytes, end, width, 1);
    for (const base of [firstAreaId, span.firstMs + TIME_OFFSET, leastWaitMs + TIME_OFFSET]) {
      end = write(bytes, end, base, BASE_BYTES);
    }
    for (let at = 0; at < 3 * count; at += 3) {
      const sinceMs = values[at + 1]!;
      const confirmedAtMs = values[at + 2]!;
      end = write(bytes, end, values[at]! - firstAreaId, areaBytes);
      end = write(bytes, end, sinceMs - span.firstMs, sinceBytes);
      const isPending = Number.isNaN(confirmedAtMs);
      end = write(bytes, end, isPending ? 0 : confirmedAtMs - sinceMs - leastWaitMs + 1, entryBytes);
    }
    return bytes.toString('latin1', 0, end) as PackedStays;
  }

  /** Forgets what was added. */
  clear(): void {
    this.#count = 0;
  }
}

/** One for all, since each use ends before the next begins. */
const packer = new StayPacker();
const counting = new StayReader();

/** Stays in the order of their areas, at most one for each, as `encodeStays` makes them of a list. */
export function encodePackedStays(packed: PackedStays): string {
  const reader = new StayReader().open(packed);
  let json = '';
  for (let n = 0; n < reader.count; n++) {
    const stay = `[${reader.areaId(n)},${reader.insideSinceMs(n)},${reader.confirmedAtMs(n)}]`;
    json += n === 0 ? stay : `,${stay}`;
  }
  return `[${json}]`;
}

/** What `encodeStays` made → packed, without a list between. Anything else is a bug and throws. */
export function packStoredStays(stored: string): PackedStays {
  return new StoredText(stored).stays();
}

/** Reads `[[deviceId, stays], …]`, with stays as `encodeStays` makes them, one device at a time. */
export class StoredStaysReader {
  readonly #text: StoredText;
  /** The device that comes next; null at the end. */
  #deviceId: number | null;

  constructor(stored: string) {
    this.#text = new StoredText(stored);
    this.#deviceId = this.#text.opens() ? this.#text.integer() : null;
  }

  /** The stays of a device if it comes next; the text must have its devices in the order of the questions. */
  take(deviceId: number): PackedStays | null {
    if (deviceId !== this.#deviceId) return null;
    this.#text.expect(',');
    const stays = this.#text.stays();
    this.#text.expect(']');
    this.#deviceId = this.#text.continues() ? this.#text.integer() : null;
    return stays;
  }
}

export function stayCount(packed: PackedStays): number {
  return counting.open(packed).count;
}

/** Stays in the order of their areas, at most one for each. */
export function packStays(stays: readonly Stay[]): PackedStays {
  packer.clear();
  for (const { areaId, insideSinceMs, confirmedAtMs } of stays) {
    packer.add(areaId, insideSinceMs, confirmedAtMs);
  }
  return packer.take();
}

/** The stays of `head` in areas below `fromAreaId`, and those of `tail` from there on. */
export function joinStays(head: StayReader, tail: StayReader, fromAreaId: number): PackedStays {
  packer.clear();
  for (let n = 0; n < head.indexOf(fromAreaId); n++) {
    packer.add(head.areaId(n), head.insideSinceMs(n), head.confirmedAtMs(n));
  }
  for (let n = tail.indexOf(fromAreaId); n < tail.count; n++) {
    packer.add(tail.areaId(n), tail.insideSinceMs(n), tail.confirmedAtMs(n));
  }
  return packer.take();
}

const MINUS = '-'.charCodeAt(0);
const ZERO = '0'.charCodeAt(0);

/** Lists of integers as JSON.stringify writes them, read from the front. */
class StoredText {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  stays(): PackedStays {
    packer.clear();
    let isOpen = this.opens();
    while (isOpen) {
      const areaId = this.integer();
      this.expect(',');
      const insideSinceMs = this.integer();
      this.expect(',');
      const isPending = this.#skips('null');
      packer.add(areaId, insideSinceMs, isPending ? null : this.integer());
      this.expect(']');
      isOpen = this.continues();
    }
    return packer.take();
  }

  /** The beginning of a list of lists; false when it is empty. */
  opens(): boolean {
    this.expect('[');
    if (this.#skips(']')) return false;
    this.expect('[');
    return true;
  }

  /** Whether another list follows one that has ended, which is then begun. */
  continues(): boolean {
    if (this.#skips(']')) return false;
    this.expect(',');
    this.expect('[');
    return true;
  }

  expect(text: string): void {
    invariant(this.#skips(text), 'stays are stored as lists of numbers');
  }

  integer(): number {
    const isNegative = this.#text.charCodeAt(this.#at) === MINUS;
    const first = isNegative ? this.#at + 1 : this.#at;
    let value = 0;
    let at = first;
    for (; ; at++) {
      const digit = this.#text.charCodeAt(at) - ZERO;
      if (!(digit >= 0 && digit <= 9)) break;
      value = value * 10 + digit;
    }
    invariant(at > first && Number.isSafeInteger(value), 'stays are stored as whole numbers');
    this.#at = at;
    return isNegative ? -value : value;
  }

  #skips(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}

/** How many bytes it takes; 0 for 0. */
function bytesOf(value: number): number {
  let bytes = 0;
  for (let rest = value; rest >= 1; rest /= 256) bytes++;
  return bytes;
}

/** Writes a number, highest byte first, and returns where it ends. */
function write(target: Uint8Array, at: number, value: number, bytes: number): number {
  let rest = value;
  for (let n = at + bytes - 1; n >= at; n--) {
    target[n] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  return at + bytes;
}
