import type { Keyring } from '../access/authorizer.ts';
import type { KeyState } from '../access/credentials.ts';
import type {
  AppliedBy,
  AppliedTransactions,
  LogFollower,
  Novelty,
  WorldWatch,
} from '../changelog/appliedTransactions.memory.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import type { Clock } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Cursors } from './cursors.ts';
import type { FeedPage, ItemTexts, UnreadAnswers } from './pages.ts';
import type { EventReader } from './readEvents.ts';

/** What the feeds and the streams of a pod share. */
export interface FeedPorts {
  readonly fleet: Fleet;
  readonly follower: LogFollower;
  readonly cursors: Cursors;
  readonly polls: LongPolls;
  readonly unread: UnreadAnswers;
  readonly reader: EventReader;
  readonly texts: ItemTexts;
  readonly turns: WorkTurns<string | number>;
  readonly clock: Clock;
}

/** How often the polls are ended whose time is over. */
const TICK_MS = 250;
/** Calls of one key that wait at a time: more are answered at once. */
export const POLLS_PER_KEY = 20;
/** Calls of one account that wait at a time: more are refused. */
export const POLLS_PER_ACCOUNT = 2_000;
/** All calls that wait at a time. More are answered at once: it is not the fault of their accounts. */
const POLLS_MAX = 20_000;
/** Calls of an account that are answered in one turn of the event loop. */
const ANSWERS_PER_TURN = 8;

/** The worlds in which something is new, of those that are followed. */
export type Touched = Readonly<Record<Novelty, ReadonlySet<number>>>;

export interface PollPorts {
  readonly watch: WorldWatch;
  readonly keyring: Pick<Keyring, 'onDropped'>;
  readonly applied: AppliedTransactions;
  readonly unread: UnreadAnswers;
  readonly turns: Pick<WorkTurns<string>, 'once'>;
  readonly clock: Clock;
}

/**
 * Calls that wait for something new. They cost nothing while nothing is new: one timer serves all of them, and a change
 * concerns only the groups that see its world. Groups are served and polls are answered in turns, fair by account.
 */
export class LongPolls {
  readonly #ports: PollPorts;
  readonly #groups: GroupsByWorld<PollGroup>;
  readonly #polls = new Set<LongPoll>();
  readonly #counts = new OpenCounts(POLLS_PER_KEY, POLLS_PER_ACCOUNT);
  readonly #listeners = new Set<(touched: Touched, by: AppliedBy) => void>();
  #tick: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(ports: PollPorts) {
    this.#ports = ports;
    this.#groups = new GroupsByWorld(ports.watch);
    ports.applied.onApplied((by) => this.#noteApplied(by));
    ports.keyring.onDropped((isDropped) =>
      this.#endInTurns(({ keyId, group }) => isDropped(keyId, group.accountId), 'ended'),
    );
    ports.unread.onRoom((accountId) => {
      for (const { group } of this.#polls) if (group.accountId === accountId) this.#unblock(group);
    });
  }

  get size(): number {
    return this.#polls.size;
  }

  /**
   * Begins to wait. 'none': the key or the pod has as many polls as it may, or the pod stops; the call is answered at
   * once. 'full': the account has as many as it may.
   */
  join(poll: LongPoll): 'in' | 'none' | 'full' {
    const { group, keyId } = poll;
    if (this.#isClosed || this.#polls.size >= POLLS_MAX) return 'none';
    const full = this.#counts.full(keyId, group.accountId);
    if (full !== null) return full === 'account' ? 'full' : 'none';
    this.#polls.add(poll);
    this.#counts.change(keyId, group.accountId, 1);
    if (group.count++ === 0) this.#groups.add(group);
    group.add(poll);
    this.#tick ??= setInterval(() => {
      const nowMs = this.#ports.clock();
      this.#endInTurns(({ untilMs }) => untilMs <= nowMs, 'over');
    }, TICK_MS);
    return 'in';
  }

  /** The caller has hung up, or has its answer already. */
  leave(poll: LongPoll): void {
    if (!poll.isEnding && this.#remove(poll)) poll.outcome.resolve('ended');
  }

  /** Answers polls of one account, a few in each turn of the event loop. `settle` must not throw. */
  async answer<Poll extends LongPoll>(polls: readonly Poll[], settle: (poll: Poll) => void): Promise<void> {
    await this.#inTurns(polls, (poll) => {
      if (!poll.isEnding && this.#remove(poll)) settle(poll);
    });
  }

  /** Has a group served in its turn: something may be new. */
  wake(group: PollGroup): void {
    if (group.isDue) return;
    group.isDue = true;
    void this.#ports.turns.once(turnsOf(group.accountId), () => {
      group.isDue = false;
      group.serve();
    });
  }

  /** Has a group served when its account has room for another page. `taken`: its polls that could not be answered. */
  block(group: PollGroup, taken: readonly LongPoll[] = []): void {
    for (const poll of taken) if (this.#polls.has(poll)) group.add(poll);
    if (group.polls.size === 0) return;
    group.isBlocked = true;
    if (this.#ports.unread.hasRoom(group.accountId)) this.#unblock(group);
  }

  /** Calls `listener` with the worlds in which something is new. */
  onNews(listener: (touched: Touched, by: AppliedBy) => void): void {
    this.#listeners.add(listener);
  }

  /** The followed worlds in which memory may hold something new that nobody was sent yet. */
  get touched(): Touched {
    const { watch } = this.#ports;
    return { devices: watch.touched('devices'), events: watch.touched('events') };
  }

  /** Ends all waiting; from now on nobody waits. */
  close(): void {
    this.#isClosed = true;
    for (const poll of this.#polls) this.#end(poll, 'over');
  }

  #noteApplied(by: AppliedBy): void {
    const { watch, applied } = this.#ports;
    const { touched } = this;
    for (const novelty of ['devices', 'events'] as const) {
      for (const worldId of touched[novelty]) {
        for (const group of this.#groups.of(worldId)) if (group.novelty === novelty) this.#tellNews(group);
      }
    }
    for (const listener of this.#listeners) listener(touched, by);
    // Until then there is something in memory that readers were not sent yet.
    if (by === 'log' && applied.isComplete) watch.clear();
  }

  #unblock(group: PollGroup): void {
    if (!group.isBlocked) return;
    group.isBlocked = false;
    this.#tellNews(group);
  }

  #tellNews(group: PollGroup): void {
    group.news++;
    this.wake(group);
  }

  #endInTurns(isOver: (poll: LongPoll) => boolean, outcome: 'over' | 'ended'): void {
    const over = [...this.#polls].filter((poll) => !poll.isEnding && isOver(poll));
    for (const poll of over) poll.isEnding = true;
    for (const polls of Map.groupBy(over, ({ group }) => group.accountId).values())
      void this.#inTurns(polls, (poll) => this.#end(poll, outcome));
  }

  async #inTurns<Poll extends LongPoll>(polls: readonly Poll[], work: (poll: Poll) => void): Promise<void> {
    for (const [n, poll] of polls.entries()) {
      if (n % ANSWERS_PER_TURN === 0)
        await this.#ports.turns.once(turnsOf(poll.group.accountId), () => undefined);
      work(poll);
    }
  }

  #end(poll: LongPoll, outcome: 'over' | 'ended'): void {
    // Asked before the last poll leaves its group, which ends that.
    const { isBlocked } = poll.group;
    if (this.#remove(poll)) poll.outcome.resolve(isBlocked ? 'unread' : outcome);
  }

  #remove(poll: LongPoll): boolean {
    if (!this.#polls.delete(poll)) return false;
    const { group, keyId } = poll;
    this.#counts.change(keyId, group.accountId, -1);
    group.remove(poll);
    if (--group.count === 0) this.#groups.remove(group);
    if (this.#polls.size === 0 && this.#tick !== null) {
      clearInterval(this.#tick);
      this.#tick = null;
    }
    return true;
  }
}

/**
 * 'over': the time is up and nothing is new, or the pod stops. 'ended': the caller has hung up, or its key may have changed:
 * it is told nothing new. 'unread': something is new, and the account has no room for it (see
 * UnreadAnswers). 'expired': the cursor can no longer be followed. 'again': the caller must look for itself.
 */
export type PollOutcome = FeedPage | 'over' | 'ended' | 'unread' | 'expired' | 'again';

/** A call that waits for something new. */
export class LongPoll {
  readonly group: PollGroup;
  readonly keyId: number;
  readonly untilMs: number;
  /** Its promise rejects with the error that making the page has failed with. */
  readonly outcome = Promise.withResolvers<PollOutcome>();
  /** It will be answered in its turn that its time is over. */
  isEnding = false;

  constructor(group: PollGroup, keyId: number, untilMs: number) {
    this.group = group;
    this.keyId = keyId;
    this.untilMs = untilMs;
  }
}

/** Calls of one account that wait for the same. They are served together, with one look when something may be new. */
export class PollGroup<Wanted = unknown, Poll extends LongPoll = LongPoll> {
  readonly name: string;
  readonly accountId: number;
  readonly worldIds: readonly number[];
  readonly novelty: Novelty;
  wanted: Wanted;
  readonly #joinable: Map<string, PollGroup<Wanted, Poll>>;
  /** Something may be new. Called in turns with all long work of the pod; does a millisecond of work at most. */
  readonly serve: () => void;
  readonly polls = new Set<Poll>();
  /** How many wait, with those that are being answered. */
  count = 0;
  /** How often something may have become new since the first of them came. */
  news = 0;
  /** It will be served in a turn that has not come yet. */
  isDue = false;
  /** Something is new, and the account has no room for it. */
  isBlocked = false;

  /** `joinable`: the groups that calls may join, by name. */
  constructor(
    joinable: Map<string, PollGroup<Wanted, Poll>>,
    name: string,
    { accountId, worldIds }: Pick<KeyState, 'accountId' | 'worldIds'>,
    novelty: Novelty,
    wanted: Wanted,
    serve: () => void,
  ) {
    this.#joinable = joinable;
    this.name = name;
    this.accountId = accountId;
    this.worldIds = worldIds;
    this.novelty = novelty;
    this.wanted = wanted;
    this.serve = serve;
  }

  add(poll: Poll): void {
    this.polls.add(poll);
    this.#joinable.set(this.name, this);
  }

  remove(poll: Poll): void {
    this.polls.delete(poll);
    if (this.polls.size === 0) this.#close();
  }

  /** Takes all polls out, to be answered. Calls that come from now on join another group. */
  takeAll(): Poll[] {
    const taken = [...this.polls];
    this.polls.clear();
    this.#close();
    return taken;
  }

  #close(): void {
    if (this.#joinable.get(this.name) === this) this.#joinable.delete(this.name);
    this.isBlocked = false;
  }
}

/** Turns of an account's polls do not wait for what else it computes. */
const turnsOf = (accountId: number): string => `waits of ${accountId}`;

/** Groups of readers by the worlds that they see. News of a world are noted as long as it has a group. */
export class GroupsByWorld<Group extends { readonly worldIds: readonly number[] }> {
  readonly #watch: WorldWatch;
  readonly #byWorld = new Map<number, Set<Group>>();

  constructor(watch: WorldWatch) {
    this.#watch = watch;
  }

  add(group: Group): void {
    for (const worldId of group.worldIds) {
      this.#watch.follow(worldId);
      const present = this.#byWorld.get(worldId);
      if (present === undefined) this.#byWorld.set(worldId, new Set([group]));
      else present.add(group);
    }
  }

  remove(group: Group): void {
    for (const worldId of group.worldIds) {
      this.#watch.unfollow(worldId);
      const present = this.#byWorld.get(worldId);
      present?.delete(group);
      if (present?.size === 0) this.#byWorld.delete(worldId);
    }
  }

  of(worldId: number): Iterable<Group> {
    return this.#byWorld.get(worldId) ?? [];
  }
}

/** Counts open calls by key and by account, each with its limit. */
export class OpenCounts {
  readonly #maxPerKey: number;
  readonly #maxPerAccount: number;
  readonly #open = new Map<string, number>();

  constructor(maxPerKey: number, maxPerAccount: number) {
    this.#maxPerKey = maxPerKey;
    this.#maxPerAccount = maxPerAccount;
  }

  /** Which of the two has as many as it may; null: one more may be opened. */
  full(keyId: number, accountId: number): 'key' | 'account' | null {
    if ((this.#open.get(`key ${keyId}`) ?? 0) >= this.#maxPerKey) return 'key';
    return (this.#open.get(`account ${accountId}`) ?? 0) >= this.#maxPerAccount ? 'account' : null;
  }

  change(keyId: number, accountId: number, by: 1 | -1): void {
    for (const name of [`key ${keyId}`, `account ${accountId}`]) {
      const count = (this.#open.get(name) ?? 0) + by;
      if (count > 0) this.#open.set(name, count);
      else this.#open.delete(name);
    }
  }
}
