import type { Clock } from '../../base/clock.ts';
import type { Fleet } from '../../memory/fleet.ts';
import type { Keyring } from '../../memory/keyring.ts';
import type { Novelty } from '../../memory/worldWatch.ts';
import type { Applied } from '../feed/follower.ts';
import { changeCount } from './streamCounts.ts';

/** How often it is looked whose time is over. */
const TICK_MS = 250;
/** Calls that wait at a time, of one key, of one account and of all: more are answered at once. */
export const WAITS_PER_KEY = 20;
const WAITS_PER_ACCOUNT = 5_000;
const WAITS_MAX = 20_000;

export interface WaitRequest {
  readonly keyId: number;
  readonly accountId: number;
  readonly worldIds: readonly number[];
  readonly novelty: Novelty;
  readonly forMs: number;
  /** Asked when something is new in one of the worlds: whether it is what the caller waits for. */
  readonly isReady: () => boolean;
}

/** `over`: the time is up, or the key has changed, or the pod stops. */
export type WaitOutcome = 'ready' | 'over';

export interface Waiting {
  readonly outcome: Promise<WaitOutcome>;
  /** Gives up waiting. */
  cancel(): void;
}

interface Waiter extends WaitRequest {
  readonly untilMs: number;
  readonly end: (outcome: WaitOutcome) => void;
}

export interface WaitPorts {
  readonly fleet: Pick<Fleet, 'watch'>;
  readonly keyring: Pick<Keyring, 'onDropped'>;
  readonly follower: { onApplied(listener: (by: Applied) => void): () => void; readonly isComplete: boolean };
  readonly clock: Clock;
}

/**
 * Calls that wait for something new. They cost nothing while nothing is: one tick serves all of them, and only those
 * are looked at in whose worlds something has changed.
 */
export class WaitRoom {
  readonly #ports: WaitPorts;
  readonly #byWorld = new Map<number, Set<Waiter>>();
  readonly #waiters = new Set<Waiter>();
  readonly #countOfKey = new Map<number, number>();
  readonly #countOfAccount = new Map<number, number>();
  readonly #listeners = new Set<(worldIds: Touched, by: Applied) => void>();
  #tick: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(ports: WaitPorts) {
    this.#ports = ports;
    ports.follower.onApplied((by) => this.#look(by));
    ports.keyring.onDropped((isDropped) => {
      for (const waiter of this.#waiters) if (isDropped(waiter.keyId, waiter.accountId)) waiter.end('over');
    });
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** Waits for something new; null where too many wait already. */
  wait(request: WaitRequest): Waiting | null {
    const { keyId, accountId } = request;
    const isFull =
      (this.#countOfKey.get(keyId) ?? 0) >= WAITS_PER_KEY ||
      (this.#countOfAccount.get(accountId) ?? 0) >= WAITS_PER_ACCOUNT ||
      this.#waiters.size >= WAITS_MAX;
    if (this.#isClosed || isFull) return null;
    changeCount(this.#countOfKey, keyId, 1);
    changeCount(this.#countOfAccount, accountId, 1);
    const { promise: outcome, resolve } = Promise.withResolvers<WaitOutcome>();
    const waiter: Waiter = {
      ...request,
      untilMs: this.#ports.clock() + request.forMs,
      end: (outcome) => {
        if (this.#remove(waiter)) resolve(outcome);
      },
    };
    this.#add(waiter);
    return { outcome, cancel: () => waiter.end('over') };
  }

  /** Calls `listener` with the worlds in which something is new, of those that are watched. */
  onNews(listener: (touched: Touched, by: Applied) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends all waiting; from now on nobody waits. */
  close(): void {
    this.#isClosed = true;
    for (const waiter of this.#waiters) waiter.end('over');
  }

  #add(waiter: Waiter): void {
    this.#waiters.add(waiter);
    for (const worldId of waiter.worldIds) {
      this.#ports.fleet.watch.follow(worldId);
      const present = this.#byWorld.get(worldId);
      if (present === undefined) this.#byWorld.set(worldId, new Set([waiter]));
      else present.add(waiter);
    }
    this.#tick ??= setInterval(() => this.#endOverdue(), TICK_MS);
  }

  #remove(waiter: Waiter): boolean {
    if (!this.#waiters.delete(waiter)) return false;
    for (const worldId of waiter.worldIds) {
      this.#ports.fleet.watch.unfollow(worldId);
      const present = this.#byWorld.get(worldId);
      present?.delete(waiter);
      if (present?.size === 0) this.#byWorld.delete(worldId);
    }
    changeCount(this.#countOfKey, waiter.keyId, -1);
    changeCount(this.#countOfAccount, waiter.accountId, -1);
    if (this.#waiters.size === 0 && this.#tick !== null) {
      clearInterval(this.#tick);
      this.#tick = null;
    }
    return true;
  }

  #endOverdue(): void {
    const nowMs = this.#ports.clock();
    for (const waiter of this.#waiters) if (waiter.untilMs <= nowMs) waiter.end('over');
  }

  /** The followed worlds in which memory may hold something new that nobody was sent yet. */
  get touched(): Touched {
    const { watch } = this.#ports.fleet;
    return { devices: watch.touched('devices'), events: watch.touched('events') };
  }

  #look(by: Applied): void {
    const { fleet, follower } = this.#ports;
    const { touched } = this;
    for (const novelty of ['devices', 'events'] as const) {
      for (const worldId of touched[novelty]) {
        for (const waiter of this.#byWorld.get(worldId) ?? []) {
          if (waiter.novelty === novelty && waiter.isReady()) waiter.end('ready');
        }
      }
    }
    for (const listener of this.#listeners) listener(touched, by);
    // Until then there is something in memory that readers were not sent yet.
    if (by === 'followed' && follower.isComplete) fleet.watch.clear();
  }
}

export type Touched = Readonly<Record<Novelty, ReadonlySet<number>>>;
