import { invariant } from '../lib/invariant.ts';

const PIECE_BYTES = 64 * 1024;
/** The most bytes that a UTF-16 code unit takes in UTF-8. */
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
    this.#reserve(text.length * UTF8_PER_CHAR);
    this.#used += this.#open.write(text, this.#used);
  }

  /** Adds characters of ASCII. Of short texts nothing has to be joined first, and no call leaves JavaScript. */
  addAscii(text: string): void {
    this.#reserve(text.length);
    const open = this.#open;
    let at = this.#used;
    for (let n = 0; n < text.length; n++) open[at++] = text.charCodeAt(n);
    this.#used = at;
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

  #reserve(bytes: number): void {
    if (this.#used + bytes <= this.#open.length) return;
    this.#close();
    this.#open = Buffer.allocUnsafeSlow(Math.max(PIECE_BYTES, bytes));
  }

  #close(): void {
    if (this.#used === 0) return;
    this.#pieces.push(this.#open.subarray(0, this.#used));
    this.#closedBytes += this.#used;
    this.#open = EMPTY;
    this.#used = 0;
  }
}
