import { invariant } from './invariant.ts';

/** Writes whole numbers from 0 to 2^53 - 1 in groups of seven bits, lowest first (LEB128), and short texts. */
export class VarintWriter {
  readonly #bytes: number[] = [];

  get length(): number {
    return this.#bytes.length;
  }

  number(value: number): void {
    invariant(Number.isSafeInteger(value) && value >= 0, 'a varint is a whole number');
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes.push((rest % 0x80) | 0x80);
    this.#bytes.push(rest);
  }

  /** Characters below 256, at most 255 of them. */
  text(text: string): void {
    invariant(text.length < 256, 'a text of a cursor is short');
    this.#bytes.push(text.length);
    for (let at = 0; at < text.length; at++) this.#bytes.push(text.charCodeAt(at) & 0xff);
  }

  bytes(): Buffer {
    return Buffer.from(this.#bytes);
  }
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

  number(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      if (scale > Number.MAX_SAFE_INTEGER) throw new RangeError('a varint is too long');
    }
  }

  text(): string {
    let text = '';
    for (let left = this.#byte(); left > 0; left--) text += String.fromCharCode(this.#byte());
    return text;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError('the bytes end too early');
    return byte;
  }
}
