import { hash, timingSafeEqual } from 'node:crypto';

/** The tokens that senders of points may show; several while one takes the place of another. */
export class IngestTokens {
  readonly #digests: readonly Buffer[];

  constructor(tokens: readonly string[]) {
    this.#digests = tokens.map(digestOf);
  }

  /**
   * The index of the token that was given, or -1. Its digest is compared with those of all tokens, so the time taken
   * shows neither the content nor the length of a token, nor which one it was.
   */
  indexOf(given: string): number {
    const digest = digestOf(given);
    let found = -1;
    this.#digests.forEach((expected, at) => {
      if (timingSafeEqual(digest, expected)) found = at;
    });
    return found;
  }
}

const digestOf = (token: string): Buffer => hash('sha256', token, 'buffer');
