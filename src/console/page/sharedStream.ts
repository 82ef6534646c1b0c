import type { DeviceChange } from './fleet.ts';
import type { FleetEvent } from './types.ts';

/** What the stream has told, as one tab of a session gives it to another. */
export interface Told {
  /** The first part of what a tab is given: what it knew before is to be forgotten. */
  readonly isFirst: boolean;
  readonly devices: readonly DeviceChange[];
  readonly events: readonly FleetEvent[];
  /** Behind what was told; '' within the parts of the beginning. */
  readonly cursor: string;
}

/** What tabs of one session say to each other. `from` and `to` are names that tabs give themselves. */
type Word =
  | { readonly kind: 'ask'; readonly from: string }
  | { readonly kind: 'offer' | 'accept' | 'end'; readonly from: string; readonly to: string }
  | { readonly kind: 'told'; readonly to: readonly string[]; readonly told: Told };

/** How long an answer of another tab is waited for: a hidden tab answers at once, a tab that is busy drawing soon. */
const OFFER_WAIT_MS = 500;
/** Rounds in which a tab lets another one go first, before it opens a stream of its own all the same. */
const ROUNDS_MAX = 4;
/** In the local storage: when a tab of this browser last had a stream. Without it there is nobody to ask. */
const OPEN_AT = 'fleet-stream-at';
const MARK_EVERY_MS = 5_000;
/** The same as for the stream itself, since its heartbeats are passed on as well. */
const SILENCE_MS = 25_000;
const FOLLOWERS_MAX = 50;

/**
 * The tabs of one session, which is in the session storage of each tab that was opened from another. One of them has a
 * stream and tells the others: a browser opens six connections to a host, and the service ten streams for a session.
 */
export class SharedStream {
  readonly #name = crypto.randomUUID?.() ?? String(Math.random());
  readonly #channel: BroadcastChannel;
  readonly #followers = new Set<string>();
  /** Tells a new follower all that this tab knows. */
  readonly #begin: (tell: (told: Told) => void) => void;
  #isOpen = false;
  #isClosed = false;
  #markedAtMs = 0;
  /** Another tab has told this one, so there may be more of them. */
  #wasTold = false;

  /** `begin` gives all that this tab knows, in parts, to one tab. */
  constructor(token: string, begin: (tell: (told: Told) => void) => void) {
    this.#begin = begin;
    this.#channel = new BroadcastChannel(`fleet-stream-${token}`);
    this.#channel.addEventListener('message', ({ data }: MessageEvent<Word>) => this.#hear(data));
  }

  /** Whether this tab has a stream of its own. Once it has none, its followers are told to look elsewhere. */
  set isOpen(isOpen: boolean) {
    const wasOpen = this.#isOpen;
    this.#isOpen = isOpen;
    if (isOpen) {
      this.#mark();
      return;
    }
    if (wasOpen) localStorage.removeItem(OPEN_AT);
    for (const to of this.#followers) this.#say({ kind: 'end', from: this.#name, to });
    this.#followers.clear();
  }

  /** Hands on what the stream has told, if another tab listens. */
  tell(devices: readonly DeviceChange[], events: readonly FleetEvent[], cursor: string): void {
    this.#mark();
    if (this.#followers.size === 0) return;
    this.#say({ kind: 'told', to: [...this.#followers], told: { isFirst: false, devices, events, cursor } });
  }

  /** Is told by another tab until that one ends or is silent. False: this tab is to open a stream. */
  async follow(signal: AbortSignal, take: (told: Told) => void): Promise<boolean> {
    const source = await this.#findSource(signal);
    if (source === null) return false;
    this.#wasTold = true;
    await new Promise<void>((resolve) => {
      let timer = setTimeout(() => end(), SILENCE_MS);
      const end = (): void => {
        clearTimeout(timer);
        this.#channel.removeEventListener('message', hear);
        signal.removeEventListener('abort', end);
        this.#say({ kind: 'end', from: this.#name, to: source });
        resolve();
      };
      const hear = ({ data }: MessageEvent<Word>): void => {
        if (data.kind === 'end' && data.to === this.#name && data.from === source) end();
        if (data.kind !== 'told' || !data.to.includes(this.#name)) return;
        clearTimeout(timer);
        timer = setTimeout(() => end(), SILENCE_MS);
        take(data.told);
      };
      this.#channel.addEventListener('message', hear);
      signal.addEventListener('abort', end);
      this.#say({ kind: 'accept', from: this.#name, to: source });
    });
    return true;
  }

  close(): void {
    this.isOpen = false;
    this.#isClosed = true;
    this.#channel.close();
  }

  /** The first tab that offers to tell. Null: this tab is to open a stream. */
  async #findSource(signal: AbortSignal): Promise<string | null> {
    const ageMs = Date.now() - Number(localStorage.getItem(OPEN_AT) ?? 0);
    if (ageMs > SILENCE_MS && !this.#wasTold) return null;
    for (let round = 0; round < ROUNDS_MAX && !signal.aborted; round++) {
      const answer = await this.#ask();
      if (answer !== 'wait') return signal.aborted ? null : answer;
    }
    return null;
  }

  /** An offer, or null when nobody has a stream; `wait` when another tab asks too and goes first. */
  #ask(): Promise<string | null> {
    return new Promise((resolve) => {
      let isFirst = true;
      const end = (answer: string | null): void => {
        clearTimeout(timer);
        this.#channel.removeEventListener('message', hear);
        resolve(answer);
      };
      const hear = ({ data }: MessageEvent<Word>): void => {
        if (data.kind === 'offer' && data.to === this.#name) end(data.from);
        if (data.kind === 'ask' && data.from < this.#name) isFirst = false;
      };
      const timer = setTimeout(() => end(isFirst ? null : 'wait'), OFFER_WAIT_MS);
      this.#channel.addEventListener('message', hear);
      this.#say({ kind: 'ask', from: this.#name });
    });
  }

  #mark(): void {
    const nowMs = Date.now();
    if (nowMs - this.#markedAtMs < MARK_EVERY_MS) return;
    this.#markedAtMs = nowMs;
    localStorage.setItem(OPEN_AT, String(nowMs));
  }

  #hear(word: Word): void {
    if (word.kind === 'ask' && this.#isOpen && this.#followers.size < FOLLOWERS_MAX)
      this.#say({ kind: 'offer', from: this.#name, to: word.from });
    if (!('from' in word) || word.kind === 'ask' || word.to !== this.#name) return;
    if (word.kind === 'end') this.#followers.delete(word.from);
    if (word.kind !== 'accept') return;
    if (!this.#isOpen) {
      this.#say({ kind: 'end', from: this.#name, to: word.from });
      return;
    }
    this.#begin((told) => this.#say({ kind: 'told', to: [word.from], told }));
    this.#followers.add(word.from);
  }

  #say(word: Word): void {
    if (!this.#isClosed) this.#channel.postMessage(word);
  }
}
