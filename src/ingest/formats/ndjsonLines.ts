import { type Element, HeldElement } from './heldElement.ts';
import { isSpace } from './jsonElements.ts';

const LINE_FEED = 0x0a;

/** Cuts an NDJSON body, in UTF-8, as it comes: into its lines that are not blank, without the blanks before them. */
export class NdjsonLines {
  readonly #take: (element: Element) => void;
  readonly #held = new HeldElement();

  constructor(take: (element: Element) => void) {
    this.#take = take;
  }

  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#held.isEmpty && isSpace(bytes[at])) {
        at++;
        continue;
      }
      const end = bytes.indexOf(LINE_FEED, at);
      if (end === -1) {
        this.#held.hold(bytes, at);
        return;
      }
      this.#take(this.#held.end(bytes, at, end));
      at = end + 1;
    }
  }

  /** The last line may lack its line feed. */
  end(): void {
    if (!this.#held.isEmpty) this.#take(this.#held.end(Buffer.alloc(0), 0, 0));
  }
}
