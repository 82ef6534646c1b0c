import type { Keyring } from '../access/keyring.memory.ts';
import type { KeyState } from '../access/keyState.ts';
import type { AppliedBy, LogFollower } from '../changelog/appliedTransactions.memory.ts';
import type { Novelty } from '../changelog/worldWatch.memory.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import type { Clock } from '../lib/clock.ts';
import type { WorkTurns } from '../lib/workTurns.ts';

/** How often it is looked whose time is over. */
const TICK_MS = 250;
/** Calls of one key that wait at a time: more are answered at once. */
export const WAITS_PER_KEY = 20;
/** The same of one account: more are refused. */
export const WAITS_PER_ACCOUNT = 2_000;
/** The same of all: more are answered at once, since it is not for their account that there is no place. */
const WAITS_MAX = 20_000;
/** Calls of an account that are answered in one turn of the event loop. */
const ANSWERS_PER_TURN = 8;

/** Calls of one account that wait for the same. They are looked after together, in one look when something may be new. */
export abstract class WaitGroup {
  readonly accountId: number;
  readonly worldIds: readonly number[];
  readonly novelty: Novelty;
  /** How often something may have become new since the first of them came. */
  news = 0;
  /** It is to be served in a turn that has not come yet. */
  isDue = false;
  seatCount = 0;

  constructor(caller: Pick<WaitGroup, 'accountId' | 'worldIds'>, novelty: Novelty) {
    this.accountId = caller.accountId;
    this.worldIds = caller.worldIds;
    this.novelty = novelty;
  }

  /** Something may be new. Called in turns with all long work of the pod; does a millisecond of work at most. */
  abstract serve(): void;
}

export interface WaitRequest {
  readonly keyId: number;
  readonly forMs: number;
  /** The waiting has ended: the time is up, or the key has changed, or the pod stops. */
  readonly onOver: () => void;
}

/** One waiting call. */
export interface Seat {
  /** Ends the waiting. False where it has ended, or `onOver` is on its way. */
  leave(): boolean;
}

interface TakenSeat extends WaitRequest {
  readonly group: WaitGroup;
  readonly untilMs: number;
  isEnding: boolean;
}

export interface WaitPorts {
  readonly fleet: Pick<Fleet, 'watch'>;
  readonly keyring: Pick<Keyring, 'onDropped'>;
  readonly follower: Pick<LogFollower, 'applied'>;
  readonly turns: Pick<WorkTurns<string>, 'once'>;
  readonly clock: Clock;
}

/**
 * Calls that wait for something new. They cost nothing while nothing is: one tick serves all of them, and only those
 * are looked at in whose worlds something has changed. However many wait for it, they are looked after and answered in
 * turns, fair by account.
 */
export class WaitRoom {
  readonly #ports: WaitPorts;
  readonly #byWorld = new Map<number, Set<WaitGroup>>();
  readonly #seats = new Set<TakenSeat>();
  readonly #countOfKey = new Map<number, number>();
  readonly #countOfAccount = new Map<number, number>();
  readonly #listeners = new Set<(worldIds: Touched, by: AppliedBy) => void>();
  #tick: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(ports: WaitPorts) {
    this.#ports = ports;
    ports.follower.applied.onApplied((by) => this.#look(by));
    ports.keyring.onDropped((isDropped) =>
      this.#endInTurns((seat) => isDropped(seat.keyId, seat.group.accountId)),
    );
  }

  get size(): number {
    return this.#seats.size;
  }

  /**
   * A seat in a group. 'none': the key or the pod has as many as it may, or the pod stops; the call is answered at once.
   * 'full': the account has.
   */
  sit(group: WaitGroup, request: WaitRequest): Seat | 'none' | 'full' {
    const { accountId } = group;
    if (this.#isClosed || this.#seats.size >= WAITS_MAX) return 'none';
    if ((this.#countOfKey.get(request.keyId) ?? 0) >= WAITS_PER_KEY) return 'none';
    if ((this.#countOfAccount.get(accountId) ?? 0) >= WAITS_PER_ACCOUNT) return 'full';
    const untilMs = this.#ports.clock() + request.forMs;
    const seat: TakenSeat = { ...request, group, untilMs, isEnding: false };
    this.#seats.add(seat);
    changeCount(this.#countOfKey, request.keyId, 1);
    changeCount(this.#countOfAccount, accountId, 1);
    if (group.seatCount++ === 0) this.#enter(group);
    this.#tick ??= setInterval(() => this.#endOverdue(), TICK_MS);
    return { leave: () => !seat.isEnding && this.#remove(seat) };
  }

  /** Has a group served in its turn: something may be new, or what it waited for beside that is there. */
  wake(group: WaitGroup): void {
    if (group.isDue) return;
    group.isDue = true;
    void this.#ports.turns.once(keyOf(group.accountId), () => {
      group.isDue = false;
      group.serve();
    });
  }

  /** Calls the functions, which answer calls of an account, a few in each turn of the event loop. They must not throw. */
  async answer(accountId: number, answers: readonly (() => void)[]): Promise<void> {
    for (const [n, answer] of answers.entries()) {
      if (n % ANSWERS_PER_TURN === 0) await this.#ports.turns.once(keyOf(accountId), () => undefined);
      answer();
    }
  }

  /** Calls `listener` with the worlds in which something is new, of those that are watched. */
  onNews(listener: (touched: Touched, by: AppliedBy) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends all waiting; from now on nobody waits. */
  close(): void {
    this.#isClosed = true;
    for (const seat of this.#seats) if (this.#remove(seat)) seat.onOver();
  }

  #enter(group: WaitGroup): void {
    for (const worldId of group.worldIds) {
      this.#ports.fleet.watch.follow(worldId);
      const present = this.#byWorld.get(worldId);
      if (present === undefined) this.#byWorld.set(worldId, new Set([group]));
      else present.add(group);
    }
  }

  #remove(seat: TakenSeat): boolean {
    if (!this.#seats.delete(seat)) return false;
    const { group } = seat;
    changeCount(this.#countOfKey, seat.keyId, -1);
    changeCount(this.#countOfAccount, group.accountId, -1);
    if (--group.seatCount === 0) {
      for (const worldId of group.worldIds) {
        this.#ports.fleet.watch.unfollow(worldId);
        const present = this.#byWorld.get(worldId);
        present?.delete(group);
        if (present?.size === 0) this.#byWorld.delete(worldId);
      }
    }
    if (this.#seats.size === 0 && this.#tick !== null) {
      clearInterval(this.#tick);
      this.#tick = null;
    }
    return true;
  }

  #endOverdue(): void {
    const nowMs = this.#ports.clock();
    this.#endInTurns(({ untilMs }) => untilMs <= nowMs);
  }

  #endInTurns(isOver: (seat: TakenSeat) => boolean): void {
    const over = [...this.#seats].filter((seat) => !seat.isEnding && isOver(seat));
    for (const seat of over) seat.isEnding = true;
    for (const [accountId, seats] of Map.groupBy(over, ({ group }) => group.accountId)) {
      const ends = seats.map((seat) => () => {
        if (this.#remove(seat)) seat.onOver();
      });
      void this.answer(accountId, ends);
    }
  }

  /** The followed worlds in which memory may hold something new that nobody was sent yet. */
  get touched(): Touched {
    const { watch } = this.#ports.fleet;
    return { devices: watch.touched('devices'), events: watch.touched('events') };
  }

  #look(by: AppliedBy): void {
    const { fleet, follower } = this.#ports;
    const { touched } = this;
    for (const novelty of ['devices', 'events'] as const) {
      for (const worldId of touched[novelty]) {
        for (const group of this.#byWorld.get(worldId) ?? []) {
          if (group.novelty !== novelty) continue;
          group.news++;
          this.wake(group);
        }
      }
    }
    for (const listener of this.#listeners) listener(touched, by);
    // Until then there is something in memory that readers were not sent yet.
    if (by === 'log' && follower.applied.isComplete) fleet.watch.clear();
  }
}

/** Of the turns of an account's waits, which do not wait for what else it computes. */
const keyOf = (accountId: number): string => `waits of ${accountId}`;

export type Touched = Readonly<Record<Novelty, ReadonlySet<number>>>;

/** Open streams of one key on one pod, and of all keys of an account. */
export const STREAMS_PER_KEY = 10;
const STREAMS_PER_ACCOUNT = 5_000;

/** Whose streams are open, by key and account. */
export class StreamCounts {
  readonly #ofKey = new Map<number, number>();
  readonly #ofAccount = new Map<number, number>();

  hasRoom({ id, accountId }: Pick<KeyState, 'id' | 'accountId'>): boolean {
    const ofKey = this.#ofKey.get(id) ?? 0;
    return ofKey < STREAMS_PER_KEY && (this.#ofAccount.get(accountId) ?? 0) < STREAMS_PER_ACCOUNT;
  }

  add({ id, accountId }: Pick<KeyState, 'id' | 'accountId'>): void {
    changeCount(this.#ofKey, id, 1);
    changeCount(this.#ofAccount, accountId, 1);
  }

  remove({ keyId, accountId }: { readonly keyId: number; readonly accountId: number }): void {
    changeCount(this.#ofKey, keyId, -1);
    changeCount(this.#ofAccount, accountId, -1);
  }
}

/** Counts up or down; what has come to nothing is forgotten. */
function changeCount(counts: Map<number, number>, id: number, by: 1 | -1): void {
  const count = (counts.get(id) ?? 0) + by;
  if (count > 0) counts.set(id, count);
  else counts.delete(id);
}
