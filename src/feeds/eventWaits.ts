import type { KeyState } from '../access/keyState.ts';
import type { Snapshot } from '../changelog/snapshot.ts';
import { KeyedQueue } from '../lib/keyedQueue.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import type { Cursors } from './cursors.ts';
import type { RecordedEvent } from './eventFeed.sql.ts';
import type { EventFeedRequest, EventFilters, EventsPlace, EventsStep } from './eventsPlace.ts';
import { type FeedFormat, type FeedPage, SharedPage } from './feedPage.ts';
import type { EventsRead } from './readerCursor.ts';
import type { UnreadAnswers } from './unreadAnswers.ts';
import { type Seat, WaitGroup, type WaitRoom } from './waitRoom.ts';

type Caller = Pick<KeyState, 'id' | 'accountId' | 'worldIds'>;

export interface EventWaitPorts {
  readonly room: Pick<WaitRoom, 'sit' | 'wake' | 'answer'>;
  readonly unread: UnreadAnswers;
  readonly cursors: Pick<Cursors, 'seal' | 'isKept'>;
  readonly format: Pick<FeedFormat, 'events'>;
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  /** Asks Postgres for what is behind a place. */
  readonly ask: (group: EventGroup, place: EventsPlace) => Promise<EventsStep | 'other' | 'lost'>;
}

/** What a wait has come to. 'again': the caller is to look by itself. 'unread': there is no room for what is there. */
export type WaitedEvents = FeedPage | 'over' | 'again' | 'unread';

/** A call that waits for events, or may. */
export interface EventWaiter {
  /** Up to where it was told that there is nothing for it; null as long as it looks by itself. */
  place: EventsPlace | null;
  /** Waits behind a place where it has found nothing. */
  wait(place: EventsPlace): Promise<WaitedEvents>;
  leave(): void;
}

interface SeatedWaiter extends EventWaiter {
  readonly seat: Seat;
  readonly resolve: (outcome: WaitedEvents) => void;
  readonly reject: (error: unknown) => void;
}

/** What a caller waits for; `fromMs` is that of its place: events produced before are left out. */
export type EventWish = EventFilters & Pick<EventFeedRequest, 'fromMs' | 'limit'>;

/** Those who get the same page; those who are to look by themselves where it is null. */
interface Share {
  readonly page: SharedPage | null;
  readonly readers: SeatedWaiter[];
}

/** Calls of one account that wait for the same events with pages of one size, wherever each of them stands. */
export class EventGroup extends WaitGroup {
  readonly name: string;
  readonly filters: EventFilters;
  readonly limit: number;
  readonly waiters = new Set<SeatedWaiter>();
  isAsking = false;
  /** Something is there, and the account has no room for it. */
  isHeldBack = false;
  readonly #serve: (group: EventGroup) => void;

  constructor(name: string, caller: Caller, request: EventWish, serve: (group: EventGroup) => void) {
    super(caller, 'events');
    this.name = name;
    this.filters = request;
    this.limit = request.limit;
    this.#serve = serve;
  }

  override serve(): void {
    this.#serve(this);
  }
}

/**
 * Waits for events. When some may have come, Postgres is asked once for all who wait for the same: from the place of the
 * one that has seen least, and each of the others is told what it has not seen of that.
 */
export class EventWaits {
  readonly #ports: EventWaitPorts;
  readonly #groups = new Map<string, EventGroup>();
  /** An account asks one thing after the other. */
  readonly #queue = new KeyedQueue();

  constructor(ports: EventWaitPorts) {
    this.#ports = ports;
    ports.unread.onRoom((accountId) => {
      for (const group of this.#groups.values()) {
        if (!group.isHeldBack || group.accountId !== accountId) continue;
        group.isHeldBack = false;
        group.news++;
        ports.room.wake(group);
      }
    });
  }

  /** Before a caller looks by itself: what comes meanwhile is noticed. 'none' and 'full' as WaitRoom says. */
  join(caller: Caller, request: EventWish, forMs: number): EventWaiter | 'none' | 'full' {
    const { room } = this.#ports;
    const group = this.#groupOf(caller, request);
    const { promise: outcome, resolve, reject } = Promise.withResolvers<WaitedEvents>();
    const onOver = (): void => {
      this.#leave(group, waiter);
      resolve(group.isHeldBack ? 'unread' : 'over');
    };
    const seat = room.sit(group, { keyId: caller.id, forMs, onOver });
    if (typeof seat === 'string') return seat;
    const newsBefore = group.news;
    const waiter: SeatedWaiter = {
      seat,
      resolve,
      reject,
      place: null,
      wait: (place) => {
        waiter.place = place;
        if (group.news !== newsBefore) room.wake(group);
        return outcome;
      },
      leave: () => {
        if (!seat.leave()) return;
        this.#leave(group, waiter);
        resolve('over');
      },
    };
    group.waiters.add(waiter);
    this.#groups.set(group.name, group);
    return waiter;
  }

  #groupOf(caller: Caller, request: EventWish): EventGroup {
    const { type, direction, imei, fromMs, limit } = request;
    const name = [caller.accountId, caller.worldIds.join(), type, direction, imei, fromMs, limit].join(' ');
    const wanted = { type, direction, imei, fromMs, limit };
    return this.#groups.get(name) ?? new EventGroup(name, caller, wanted, (group) => void this.#serve(group));
  }

  async #serve(group: EventGroup): Promise<void> {
    if (group.isAsking) return;
    group.isAsking = true;
    for (let news = -1; news !== group.news && group.waiters.size > 0; ) {
      news = group.news;
      await this.#queue.run(String(group.accountId), () => this.#look(group));
    }
    group.isAsking = false;
  }

  /** Never rejects. */
  async #look(group: EventGroup): Promise<void> {
    const { unread, turns, ask } = this.#ports;
    const waiters = [...group.waiters].filter(({ place }) => place !== null);
    const oldest = oldestOf(waiters);
    if (oldest === null) return;
    group.isHeldBack = !unread.hasRoom(group.accountId);
    if (group.isHeldBack) return;
    try {
      const step = await ask(group, oldest);
      if (typeof step === 'string') {
        await this.#tell(group, waiters, ({ resolve }) => resolve('again'));
        return;
      }
      const shares = this.#shares(group, waiters, { ...step, from: oldest.read.seen });
      for (const { page, readers } of await turns.run(`events of ${group.accountId}`, shares)) {
        await this.#tell(group, readers, ({ resolve }) => resolve(page === null ? 'again' : page.take()));
        page?.release();
      }
    } catch (error) {
      await this.#tell(group, waiters, ({ reject }) => reject(error));
    }
  }

  #tell(
    group: EventGroup,
    waiters: readonly SeatedWaiter[],
    answer: (waiter: SeatedWaiter) => void,
  ): Promise<void> {
    const answers = waiters.map((waiter) => () => {
      if (!waiter.seat.leave()) return;
      this.#leave(group, waiter);
      answer(waiter);
    });
    return this.#ports.room.answer(group.accountId, answers);
  }

  /** The pages that a step makes for those who wait; whoever gets none is moved behind what was looked at. */
  *#shares(
    group: EventGroup,
    waiters: readonly SeatedWaiter[],
    step: EventsStep & { from: Snapshot },
  ): Steps<Share[]> {
    const { unread } = this.#ports;
    const upTo = step.read.open?.upTo ?? step.read.seen;
    const shares = new Map<string, Share>();
    for (const readers of Map.groupBy(waiters, ({ place }) => `${place?.read.seen}`).values()) {
      yield;
      const [{ place }] = readers as [SeatedWaiter];
      if (place === null || !upTo.contains(place.read.seen)) continue;
      const { seen } = place.read;
      const events = step.events.filter(({ xid }) => !seen.sees(xid));
      // What is there for them may begin behind this page.
      const isBehind = step.hasMore && events.length === 0 && step.events.length > 0;
      // Two snapshots that were cut short may lack something of each other.
      const isPart = !isBehind && seen.contains(step.from) && this.#ports.cursors.isKept(place.server);
      const read = step.read.open === null ? step.read : { ...step.read, seen };
      if (isPart && events.length === 0 && !step.hasMore) {
        for (const reader of readers) reader.place = { read, server: step.server };
        continue;
      }
      const ids = events.map(({ id }) => id).join();
      const name = isPart ? `${read.open === null ? '' : seen} ${ids}` : 'again';
      const present = shares.get(name);
      if (present !== undefined) {
        present.readers.push(...readers);
        continue;
      }
      group.isHeldBack = !unread.hasRoom(group.accountId);
      if (group.isHeldBack) break;
      const page = isPart ? yield* this.#page(group, events, read, step) : null;
      shares.set(name, { page, readers });
    }
    return [...shares.values()];
  }

  *#page(
    group: EventGroup,
    events: readonly RecordedEvent[],
    read: EventsRead,
    { hasMore, server }: EventsStep,
  ): Steps<SharedPage> {
    const { cursors, format, unread } = this.#ports;
    const bytes = yield* format.events(events, { cursor: cursors.seal(group, null, read, server), hasMore });
    return new SharedPage(unread, group.accountId, bytes);
  }

  #leave(group: EventGroup, waiter: SeatedWaiter): void {
    group.waiters.delete(waiter);
    if (group.waiters.size === 0 && this.#groups.get(group.name) === group) this.#groups.delete(group.name);
  }
}

/** The place of the one that has seen least: snapshots of one server contain each other. */
function oldestOf(waiters: readonly SeatedWaiter[]): EventsPlace | null {
  let oldest: EventsPlace | null = null;
  for (const { place } of waiters) {
    if (place !== null && (oldest === null || isOlder(place.read.seen, oldest.read.seen))) oldest = place;
  }
  return oldest;
}

function isOlder(a: Snapshot, b: Snapshot): boolean {
  return a.xmax < b.xmax || (a.xmax === b.xmax && b.contains(a));
}
