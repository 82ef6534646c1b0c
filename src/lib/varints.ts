import { invariant } from './errors.ts';

const LOW_BITS = 0x7f;
const MORE = 0x80;
/** Below it the operators on 32-bit integers are exact. */
const TWO_31 = 2 ** 31;
/** A number up to 2^53 takes at most eight bytes of seven bits each. */
const VARINT_BYTES_MAX = 8;

/** Writes whole numbers in groups of seven bits, lowest first (LEB128), bytes and short texts into a buffer that grows. */
export class VarintWriter {
  #bytes: Buffer;
  #at = 0;

  constructor(expectedBytes = 256) {
    this.#bytes = Buffer.allocUnsafe(expectedBytes);
  }

  get length(): number {
    return this.#at;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
  }

  /** A whole number from 0 to 2^53 - 1. */
  number(value: number): void {
    invariant(Number.isSafeInteger(value) && value >= 0, 'a varint is a whole number');
    this.#reserve(VARINT_BYTES_MAX);
    this.#at = put(this.#bytes, this.#at, value);
  }

  /** Characters below 256, at most 255 of them. */
  text(text: string): void {
    invariant(text.length < 256, 'a text of a cursor is short');
    this.byte(text.length);
    for (let at = 0; at < text.length; at++) this.byte(text.charCodeAt(at) & 0xff);
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** A view of all that was written. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  #reserve(more: number): void {
    if (this.#at + more <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(2 * (this.#at + more));
    grown.set(this.bytes());
    this.#bytes = grown;
  }
}

/** Writes a varint at `to`, and returns where it ends. */
function put(bytes: Uint8Array, to: number, value: number): number {
  let at = to;
  let rest = value;
  for (; rest >= TWO_31; rest = Math.floor(rest / MORE)) bytes[at++] = (rest % MORE) | MORE;
  for (; rest >= MORE; rest >>>= 7) bytes[at++] = (rest & LOW_BITS) | MORE;
  bytes[at++] = rest;
  return at;
}

/** Reads what VarintWriter wrote. Throws RangeError where the bytes end too early. */
export class VarintReader {
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

  number(): number {
    let value = 0;
    for (let scale = 1; ; scale *= MORE) {
      const byte = this.byte();
      value += (byte & LOW_BITS) * scale;
      if (byte < MORE) return value;
      if (scale > Number.MAX_SAFE_INTEGER) throw new RangeError('a varint is too long');
    }
  }

  text(): string {
    let text = '';
    for (let left = this.byte(); left > 0; left--) text += String.fromCharCode(this.byte());
    return text;
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
