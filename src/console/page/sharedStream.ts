import type { DeviceChange } from './fleet.ts';
import type { FleetEvent } from './types.ts';

/** A part of the stream, as one tab of a session forwards it to another. */
export interface StreamPart {
  /** The first part that a tab gets: it forgets what it knew before. */
  readonly isFirst: boolean;
  readonly devices: readonly DeviceChange[];
  readonly events: readonly FleetEvent[];
  /** The cursor after this part; '' in all but the last part of the beginning. */
  readonly cursor: string;
}

/** A message between the tabs of one session. `from` and `to` are names that tabs give themselves. */
type TabMessage =
  | { readonly kind: 'ask'; readonly from: string }
  | { readonly kind: 'offer' | 'accept' | 'end'; readonly from: string; readonly to: string }
  | { readonly kind: 'part'; readonly to: readonly string[]; readonly part: StreamPart };

/** How long a tab waits for another one to answer: a hidden tab answers at once, a tab that is busy drawing soon. */
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
 * stream and forwards it to the others: a browser opens six connections to a host, and the service ten streams for a session.
 */
export class SharedStream {
  readonly #name = crypto.randomUUID?.() ?? String(Math.random());
  readonly #channel: BroadcastChannel;
  readonly #followers = new Set<string>();
  /** Gives all that this tab knows to a new follower, in parts. */
  readonly #begin: (send: (part: StreamPart) => void) => void;
  #isOpen = false;
  #isClosed = false;
  #markedAtMs = 0;
  /** Another tab had a stream before, so there may be more of them. */
  #hasFollowed = false;

  /** `begin` gives all that this tab knows, in parts, to one tab. */
  constructor(token: string, begin: (send: (part: StreamPart) => void) => void) {
    this.#begin = begin;
    this.#channel = new BroadcastChannel(`fleet-stream-${token}`);
    this.#channel.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => this.#receive(data));
  }

  /** Whether this tab has a stream of its own. Once it has none, its followers look for another one. */
  set isOpen(isOpen: boolean) {
    const wasOpen = this.#isOpen;
    this.#isOpen = isOpen;
    if (isOpen) {
      this.#mark();
      return;
    }
    if (wasOpen) localStorage.removeItem(OPEN_AT);
    for (const to of this.#followers) this.#send({ kind: 'end', from: this.#name, to });
    this.#followers.clear();
  }

  /** Forwards what came from the stream, if another tab follows. */
  forward(devices: readonly DeviceChange[], events: readonly FleetEvent[], cursor: string): void {
    this.#mark();
    if (this.#followers.size === 0) return;
    this.#send({ kind: 'part', to: [...this.#followers], part: { isFirst: false, devices, events, cursor } });
  }

  /** Follows another tab until that one ends or is silent. False: this tab has to open a stream. */
  async follow(signal: AbortSignal, take: (part: StreamPart) => void): Promise<boolean> {
    const source = await this.#findSource(signal);
    if (source === null) return false;
    this.#hasFollowed = true;
    await new Promise<void>((resolve) => {
      let timer = setTimeout(() => end(), SILENCE_MS);
      const end = (): void => {
        clearTimeout(timer);
        this.#channel.removeEventListener('message', hear);
        signal.removeEventListener('abort', end);
        this.#send({ kind: 'end', from: this.#name, to: source });
        resolve();
      };
      const hear = ({ data }: MessageEvent<TabMessage>): void => {
        if (data.kind === 'end' && data.to === this.#name && data.from === source) end();
        if (data.kind !== 'part' || !data.to.includes(this.#name)) return;
        clearTimeout(timer);
        timer = setTimeout(() => end(), SILENCE_MS);
        take(data.part);
      };
      this.#channel.addEventListener('message', hear);
      signal.addEventListener('abort', end);
      this.#send({ kind: 'accept', from: this.#name, to: source });
    });
    return true;
  }

  close(): void {
    this.isOpen = false;
    this.#isClosed = true;
    this.#channel.close();
  }

  /** The first tab that offers its stream. Null: this tab has to open one. */
  async #findSource(signal: AbortSignal): Promise<string | null> {
    const ageMs = Date.now() - Number(localStorage.getItem(OPEN_AT) ?? 0);
    if (ageMs > SILENCE_MS && !this.#hasFollowed) return null;
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
      const hear = ({ data }: MessageEvent<TabMessage>): void => {
        if (data.kind === 'offer' && data.to === this.#name) end(data.from);
        if (data.kind === 'ask' && data.from < this.#name) isFirst = false;
      };
      const timer = setTimeout(() => end(isFirst ? null : 'wait'), OFFER_WAIT_MS);
      this.#channel.addEventListener('message', hear);
      this.#send({ kind: 'ask', from: this.#name });
    });
  }

  #mark(): void {
    const nowMs = Date.now();
    if (nowMs - this.#markedAtMs < MARK_EVERY_MS) return;
    this.#markedAtMs = nowMs;
    localStorage.setItem(OPEN_AT, String(nowMs));
  }

  #receive(message: TabMessage): void {
    if (message.kind === 'ask' && this.#isOpen && this.#followers.size < FOLLOWERS_MAX)
      this.#send({ kind: 'offer', from: this.#name, to: message.from });
    if (!('from' in message) || message.kind === 'ask' || message.to !== this.#name) return;
    if (message.kind === 'end') this.#followers.delete(message.from);
    if (message.kind !== 'accept') return;
    if (!this.#isOpen) {
      this.#send({ kind: 'end', from: this.#name, to: message.from });
      return;
    }
    this.#begin((part) => this.#send({ kind: 'part', to: [message.from], part }));
    this.#followers.add(message.from);
  }

  #send(message: TabMessage): void {
    if (!this.#isClosed) this.#channel.postMessage(message);
  }
}
