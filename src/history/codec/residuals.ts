import type { VarintReader, VarintWriter } from '../../lib/varints.ts';
import { readFrame, writeFrame } from './frames.ts';

/**
 * Integers below 2^52 in size, most of them small, as bytes. Each becomes a whole number (zigzag: 0, −1, 1, −2 … are 0, 1,
 * 2, 3 …), of which the length in bits and the bits below the highest one are written apart (as in Elias' gamma code). The
 * lengths are alike, and Zstandard gives each as many bits as its frequency asks for. The bits below are noise and stay as
 * they are.
 */

const WHOLE_BITS_MAX = 53;
const TWO_31 = 2 ** 31;
/** How many bits are moved at once. */
const PART_BITS = 24;
const TWO_24 = 2 ** PART_BITS;
const WORD_BYTES = 4;

/** Writes the first `count` integers. */
export function writeResiduals(writer: VarintWriter, integers: Float64Array, count: number): void {
  const lengths = new Uint8Array(count);
  const bits = new BitWriter(count * 7);
  for (let n = 0; n < count; n++) {
    const whole = wholeOf(integers[n] as number);
    const length = bitLength(whole);
    lengths[n] = length;
    if (length > 1)
      bits.put(length <= PART_BITS ? whole ^ (1 << (length - 1)) : whole - 2 ** (length - 1), length - 1);
  }
  writeFrame(writer, lengths);
  writer.append(bits.bytes());
}

/**
 * Reads `count` integers and puts those from place `from` on into the first places of `integers`, as many as it has. The
 * others are passed over. Throws RangeError, or an error of zlib, where the bytes are damaged.
 */
export function readResiduals(
  reader: VarintReader,
  integers: Float64Array,
  count: number,
  from: number,
): void {
  const lengths = readFrame(reader, count);
  let bitsBefore = 0;
  let bitCount = 0;
  for (let n = 0; n < count; n++) {
    if (n === from) bitsBefore = bitCount;
    const length = lengths[n] as number;
    if (length > WHOLE_BITS_MAX) throw new RangeError('a number is too long');
    if (length > 1) bitCount += length - 1;
  }
  const bits = viewOf(reader.take(Math.ceil(bitCount / 8)));
  let at = bitsBefore;
  for (let n = 0; n < integers.length; n++) {
    const length = lengths[from + n] as number;
    if (length <= 1) {
      integers[n] = length === 0 ? 0 : -1;
      continue;
    }
    let left = length - 1;
    if (left <= PART_BITS) {
      const part = (bits.getUint32(at >>> 3, true) >>> (at & 7)) & ((1 << left) - 1);
      const whole = (1 << left) | part;
      at += left;
      // Odd ones are below 0. Without a branch: which of them are is noise.
      integers[n] = (whole >>> 1) ^ -(whole & 1);
      continue;
    }
    let below = 0;
    for (let scale = 1; left > 0; scale *= TWO_24) {
      const taken = Math.min(left, PART_BITS);
      below += ((bits.getUint32(at >>> 3, true) >>> (at & 7)) & ((1 << taken) - 1)) * scale;
      at += taken;
      left -= taken;
    }
    const whole = 2 ** (length - 1) + below;
    integers[n] = whole % 2 === 1 ? -(whole + 1) / 2 : whole / 2;
  }
}

/** Bytes of which four can be read from each place on. */
function viewOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  if (byteOffset + length + WORD_BYTES <= buffer.byteLength)
    return new DataView(buffer, byteOffset, length + WORD_BYTES);
  const copy = new Uint8Array(length + WORD_BYTES);
  copy.set(new Uint8Array(buffer, byteOffset, length));
  return new DataView(copy.buffer);
}

/** How many bits integers take: what the lengths tell at least (their entropy), and the bits below the highest one. */
export class BitCost {
  readonly #counts = new Float64Array(WHOLE_BITS_MAX + 1);
  #count = 0;

  add(integer: number): void {
    this.#counts[bitLength(wholeOf(integer))]!++;
    this.#count++;
  }

  get bits(): number {
    let bits = 0;
    this.#counts.forEach((count, length) => {
      if (count > 0) bits += count * (Math.log2(this.#count / count) + Math.max(0, length - 1));
    });
    return bits;
  }
}

function wholeOf(integer: number): number {
  return integer < 0 ? -2 * integer - 1 : 2 * integer;
}

function bitLength(whole: number): number {
  if (whole < TWO_31) return 32 - Math.clz32(whole);
  return 31 + bitLength(Math.floor(whole / TWO_31));
}

class BitWriter {
  readonly #bytes: Uint8Array;
  #at = 0;
  #held = 0;
  #heldBits = 0;

  constructor(bytesMax: number) {
    this.#bytes = new Uint8Array(bytesMax);
  }

  /** Puts the lowest `count` bits of `value`, lowest first. */
  put(value: number, count: number): void {
    let rest = value;
    let left = count;
    for (; left > PART_BITS; left -= PART_BITS) {
      this.#putPart(rest % TWO_24, PART_BITS);
      rest = Math.floor(rest / TWO_24);
    }
    this.#putPart(rest, left);
  }

  #putPart(part: number, count: number): void {
    let held = this.#held | (part << this.#heldBits);
    let heldBits = this.#heldBits + count;
    for (; heldBits >= 8; heldBits -= 8) {
      this.#bytes[this.#at++] = held;
      held >>>= 8;
    }
    this.#held = held;
    this.#heldBits = heldBits;
  }

  bytes(): Uint8Array {
    if (this.#heldBits > 0) this.#bytes[this.#at++] = this.#held;
    this.#heldBits = 0;
    return this.#bytes.subarray(0, this.#at);
  }
}
