import { invariant } from '../../lib/invariant.ts';

const LOW_BITS = 0x7f;
const MORE = 0x80;
/** Below it the operators on 32-bit integers are exact. */
const TWO_31 = 2 ** 31;
const TWO_BYTES = MORE * MORE;
/** Of a number up to 2^53: seven bits a byte. */
export const VARINT_BYTES_MAX = 8;

/** How many bytes a whole number from 0 to 2^53 takes as a varint. */
export function varintLength(value: number): number {
  let length = 1;
  let rest = value;
  for (; rest >= TWO_31; rest = Math.floor(rest / MORE)) length++;
  for (; rest >= MORE; rest >>>= 7) length++;
  return length;
}

/** Writes bytes one after the other into one buffer, which grows. */
export class ByteWriter {
  #bytes = new Uint8Array(2 ** 16);
  #at = 0;

  get length(): number {
    return this.#at;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
  }

  /** A whole number from 0 to 2^53, in groups of seven bits, lowest first (LEB128). */
  varint(value: number): void {
    this.#reserve(VARINT_BYTES_MAX);
    this.#at = put(this.#bytes, this.#at, value);
  }

  /** Integers below 2^52 in size, of either sign: small ones of both signs take few bytes (zigzag). */
  zigzags(values: Float64Array, count: number): void {
    this.#reserve(count * VARINT_BYTES_MAX);
    const bytes = this.#bytes;
    let at = this.#at;
    for (let n = 0; n < count; n++) {
      const value = values[n] as number;
      const whole = value < 0 ? -2 * value - 1 : 2 * value;
      // One byte or two: nearly all of them.
      if (whole < MORE) {
        bytes[at++] = whole;
      } else if (whole < TWO_BYTES) {
        bytes[at++] = (whole & LOW_BITS) | MORE;
        bytes[at++] = whole >> 7;
      } else {
        at = put(bytes, at, whole);
      }
    }
    this.#at = at;
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** A view of what was written. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  #reserve(more: number): void {
    if (this.#at + more <= this.#bytes.length) return;
    const grown = new Uint8Array(2 * (this.#at + more));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

/** Writes a varint to a place, and returns the place behind it. */
function put(bytes: Uint8Array, to: number, value: number): number {
  let at = to;
  let rest = value;
  for (; rest >= TWO_31; rest = Math.floor(rest / MORE)) bytes[at++] = (rest % MORE) | MORE;
  for (; rest >= MORE; rest >>>= 7) bytes[at++] = (rest & LOW_BITS) | MORE;
  bytes[at++] = rest;
  return at;
}

/** Reads what ByteWriter wrote. Throws RangeError where the bytes end too early. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError('the bytes end too early');
    return byte;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= MORE) {
      const byte = this.byte();
      value += (byte & LOW_BITS) * scale;
      if (byte < MORE) return value;
      if (scale > Number.MAX_SAFE_INTEGER) throw new RangeError('a varint is too long');
    }
  }

  /** Reads integers of either sign into the first `count` places of `values`. */
  zigzags(values: Float64Array, count: number): void {
    invariant(count <= values.length, 'there is a place for each value');
    const bytes = this.#bytes;
    let at = this.#at;
    for (let n = 0; n < count; n++) {
      const byte = bytes[at] as number;
      // One byte or two: nearly all of them.
      if (byte < MORE) {
        at++;
        values[n] = byte & 1 ? -(byte + 1) >> 1 : byte >> 1;
        continue;
      }
      const second = bytes[at + 1] as number;
      if (second < MORE) {
        at += 2;
        const value = (byte & LOW_BITS) | (second << 7);
        values[n] = value & 1 ? -(value + 1) >> 1 : value >> 1;
        continue;
      }
      this.#at = at;
      const value = this.varint();
      at = this.#at;
      values[n] = value % 2 === 1 ? -(value + 1) / 2 : value / 2;
    }
    if (!(at <= bytes.length)) throw new RangeError('the bytes end too early');
    this.#at = at;
  }

  /** A view of the next bytes. */
  take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new RangeError('the bytes end too early');
    const bytes = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }
}
