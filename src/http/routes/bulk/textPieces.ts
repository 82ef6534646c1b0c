import { invariant } from '../../../base/invariant.ts';

/** Characters of a piece: it is made into bytes in a tenth of a millisecond. */
const PIECE_CHARS = 64 * 1024;

/** A long text that is made part by part and kept as pieces of bytes, so that it is never joined as a whole. */
export class TextPieces {
  readonly #pieces: Buffer[] = [];
  #open = '';
  #bytes = 0;
  #next = 0;

  add(text: string): void {
    this.#open += text;
    if (this.#open.length >= PIECE_CHARS) this.#close();
  }

  /** Of the whole text, in UTF-8. */
  get bytes(): number {
    if (this.#open !== '') this.#close();
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#open === '' && this.#next === this.#pieces.length;
  }

  /** Removes the first piece and returns it. */
  shift(): Buffer {
    if (this.#open !== '') this.#close();
    invariant(!this.isEmpty, 'a piece is left');
    const piece = this.#pieces[this.#next] as Buffer;
    this.#pieces[this.#next++] = EMPTY;
    return piece;
  }

  #close(): void {
    const piece = Buffer.from(this.#open);
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    this.#open = '';
  }
}

const EMPTY = Buffer.alloc(0);
