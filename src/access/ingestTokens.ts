import { hash, timingSafeEqual } from 'node:crypto';

/** The tokens that senders of points may show; several while one takes the place of another. */
export class IngestTokens {
  readonly #digests: readonly Buffer[];

  constructor(tokens: readonly string[]) {
    this.#digests = tokens.map(digestOf);
  }

  /**
   * Which of the tokens was given, or -1. Digests are compared, each with all of them, so neither content nor length of
   * a token, nor which of them it was, shows in the time taken.
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
