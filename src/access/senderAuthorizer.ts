import { hash, timingSafeEqual } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { type Clock, DAY_MS, MINUTE_MS } from '../lib/time.ts';

/** Wrong tokens allowed from one network per window. Then every token not recently accepted from it is denied. */
export const WRONG_TOKENS = { perWindow: 20, windowSeconds: 15 * 60 } as const;

/** How long a token stays accepted from a network that it was accepted from, despite wrong tokens from there. */
const KNOWN_MS = DAY_MS;
/** How old what is known may be before it is written down again: senders call many times a second. */
const KNOWN_STEP_MS = MINUTE_MS;
/** Networks that are counted, and pairs of network and token that are known; beyond it the oldest go. */
const REMEMBERED_MAX = 50_000;

/** 'limited': refused because too many wrong tokens came from that network. */
export type SenderDecision = 'granted' | 'denied' | 'limited';

/**
 * Decides who may send points. Wrong tokens are counted by network, in this process. Beyond the limit every token from
 * that network is denied, except one that was accepted from there within a day: somebody who guesses must not stop
 * senders behind the same proxy or router.
 */
export class SenderAuthorizer {
  /** Of the tokens that may be shown: several while one takes the place of another. */
  readonly #digests: readonly Buffer[];
  readonly #clock: Clock;
  readonly #wrong = new RateLimiterMemory({
    points: WRONG_TOKENS.perWindow,
    duration: WRONG_TOKENS.windowSeconds,
  });
  /** Networks that have a counter, the oldest first: the limiter itself would keep any number of them. */
  readonly #counted = new Set<string>();
  /** When a token was last accepted from a network, by both; the longest ago first. */
  readonly #known = new Map<string, number>();

  constructor(tokens: readonly string[], clock: Clock) {
    this.#digests = tokens.map(digestOf);
    this.#clock = clock;
  }

  /** `given`: the one token that was shown; undefined for none, which is denied and not counted. */
  async authorize(network: string, given: string | undefined): Promise<SenderDecision> {
    const isShutOut = this.#counted.has(network) && (await this.#isShutOut(network));
    if (given === undefined) return isShutOut ? 'limited' : 'denied';
    const token = this.#indexOf(given);
    const pair = `${token} ${network}`;
    if (isShutOut) return token >= 0 && this.#isKnown(pair) ? 'granted' : 'limited';
    if (token < 0) return this.#count(network);
    this.#remember(pair);
    return 'granted';
  }

  /**
   * The index of the token that was given, or -1. Its digest is compared with those of all tokens, so the time taken
   * shows neither the content nor the length of a token, nor which one it was.
   */
  #indexOf(given: string): number {
    const digest = digestOf(given);
    let found = -1;
    this.#digests.forEach((expected, at) => {
      if (timingSafeEqual(digest, expected)) found = at;
    });
    return found;
  }

  async #isShutOut(network: string): Promise<boolean> {
    const counter = await this.#wrong.get(network);
    return counter !== null && counter.consumedPoints >= WRONG_TOKENS.perWindow;
  }

  async #count(network: string): Promise<SenderDecision> {
    this.#counted.delete(network);
    this.#counted.add(network);
    const [oldest] = this.#counted;
    if (this.#counted.size > REMEMBERED_MAX && oldest !== undefined) {
      this.#counted.delete(oldest);
      await this.#wrong.delete(oldest);
    }
    try {
      await this.#wrong.consume(network);
      return 'denied';
    } catch (error) {
      if (error instanceof RateLimiterRes) return 'limited'; // its way to say that there were too many
      throw error;
    }
  }

  #isKnown(pair: string): boolean {
    const acceptedAtMs = this.#known.get(pair);
    if (acceptedAtMs === undefined || this.#clock() - acceptedAtMs > KNOWN_MS) return false;
    this.#remember(pair);
    return true;
  }

  #remember(pair: string): void {
    const nowMs = this.#clock();
    if (nowMs - (this.#known.get(pair) ?? Number.NEGATIVE_INFINITY) < KNOWN_STEP_MS) return;
    this.#known.delete(pair);
    this.#known.set(pair, nowMs);
    const [oldest] = this.#known.keys();
    if (this.#known.size > REMEMBERED_MAX && oldest !== undefined) this.#known.delete(oldest);
  }
}

const digestOf = (token: string): Buffer => hash('sha256', token, 'buffer');
