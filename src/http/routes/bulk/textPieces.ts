import { invariant } from '../../../base/invariant.ts';

const PIECE_BYTES = 64 * 1024;
/** A UTF-16 code unit takes at most so many bytes in UTF-8. */
const UTF8_PER_CHAR = 3;
const EMPTY = Buffer.alloc(0);

/**
 * A long text that is made part by part and kept as pieces of bytes. It is never joined as a whole, and its parts are
 * not kept as text, which the garbage collector would copy while more are added.
 */
export class TextPieces {
  readonly #pieces: Buffer[] = [];
  #open = EMPTY;
  /** Bytes of the open piece that are written. */
  #used = 0;
  #closedBytes = 0;
  #next = 0;

  add(text: string): void {
    const most = text.length * UTF8_PER_CHAR;
    if (this.#used + most > this.#open.length) {
      this.#close();
      this.#open = Buffer.allocUnsafeSlow(Math.max(PIECE_BYTES, most));
    }
    this.#used += this.#open.write(text, this.#used);
  }

  /** Of the whole text, in UTF-8. */
  get bytes(): number {
    return this.#closedBytes + this.#used;
  }

  get isEmpty(): boolean {
    return this.#used === 0 && this.#next === this.#pieces.length;
  }

  /** Removes the first piece and returns it. */
  shift(): Buffer {
    invariant(!this.isEmpty, 'a piece is left');
    if (this.#next === this.#pieces.length) this.#close();
    const piece = this.#pieces[this.#next] as Buffer;
    this.#pieces[this.#next++] = EMPTY;
    return piece;
  }

  #close(): void {
    if (this.#used === 0) return;
    this.#pieces.push(this.#open.subarray(0, this.#used));
    this.#closedBytes += this.#used;
    this.#open = EMPTY;
    this.#used = 0;
  }
}
