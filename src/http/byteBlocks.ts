const BLOCK_BYTES = 64 * 1024;

/**
 * Bytes in the order in which they came, in blocks of 64 KB. Keeping the chunks themselves would let the sender decide
 * on the memory: chunks of one byte take a hundred times their bytes. Joining all of them takes a millisecond or more
 * for each megabyte, and is not needed.
 */
export class ByteBlocks {
  readonly #full: Buffer[] = [];
  #last: Buffer;
  #used = 0;

  /** `expectedBytes`: what is known of their number; a body of a few bytes takes no whole block. */
  constructor(expectedBytes: number) {
    this.#last = Buffer.allocUnsafeSlow(Math.min(expectedBytes, BLOCK_BYTES));
  }

  get length(): number {
    return this.#full.length * BLOCK_BYTES + this.#used;
  }

  add(piece: Buffer): void {
    for (let from = 0; from < piece.length; ) {
      if (this.#used === this.#last.length) this.#begin();
      const copied = piece.copy(this.#last, this.#used, from);
      this.#used += copied;
      from += copied;
    }
  }

  /** All of them; nothing is added afterwards. */
  pieces(): readonly Buffer[] {
    return this.#used === 0 ? this.#full : [...this.#full, this.#last.subarray(0, this.#used)];
  }

  #begin(): void {
    const before = this.#last;
    this.#last = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    if (before.length === BLOCK_BYTES) {
      this.#full.push(before);
      this.#used = 0;
    } else this.#used = before.copy(this.#last, 0); // more came than was expected
  }
}
