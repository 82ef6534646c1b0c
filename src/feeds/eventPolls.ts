import type { KeyState } from '../access/keyring.memory.ts';
import type { Snapshot } from '../changelog/logCursor.ts';
import type { Clock } from '../lib/clock.ts';
import { KeyedQueue } from '../lib/keyedQueue.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import type { Cursors, EventsRead } from './cursors.ts';
import type { EventFilters, RecordedEvent } from './eventFeed.sql.ts';
import { LongPoll, type LongPolls, PollGroup, type PollOutcome } from './longPolls.ts';
import { type ItemTexts, pageBytes, type SharedPage, type UnreadAnswers } from './pages.ts';
import type { EventReader, EventsCursor, EventsPage } from './readEvents.ts';

type Caller = Pick<KeyState, 'id' | 'accountId' | 'worldIds'>;

/** What a call waits for. */
export interface WantedEvents extends EventFilters {
  /** Events produced earlier are left out. */
  readonly fromMs: number | null;
  readonly limit: number;
}

export interface EventPollPorts {
  readonly polls: LongPolls;
  readonly unread: UnreadAnswers;
  readonly cursors: Pick<Cursors, 'seal' | 'isKept'>;
  readonly texts: Pick<ItemTexts, 'event'>;
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  readonly clock: Clock;
  readonly reader: Pick<EventReader, 'next'>;
}

/** Calls that get the same page; where it is null, they must look for themselves. */
interface Share {
  readonly page: SharedPage | null;
  readonly polls: EventPoll[];
}

/**
 * Calls that wait for events. When some may have come, Postgres is asked once for all calls that wait for the same: from
 * the cursor of the one that has seen least. Each of the others gets the events of that page that it has not seen.
 */
export class EventPolls {
  readonly #ports: EventPollPorts;
  /** The groups that a call may join, by name. */
  readonly #groups = new Map<string, EventGroup>();
  /** An account asks one thing after the other. */
  readonly #queue = new KeyedQueue();

  constructor(ports: EventPollPorts) {
    this.#ports = ports;
  }

  /** To be called before the caller looks for itself, so that it misses nothing. 'none', 'full': see LongPolls. */
  join(caller: Caller, wanted: WantedEvents, forMs: number): EventPoll | 'none' | 'full' {
    const { polls, clock } = this.#ports;
    const poll = new EventPoll(polls, this.#groupOf(caller, wanted), caller.id, clock() + forMs);
    const joined = polls.join(poll);
    return joined === 'in' ? poll : joined;
  }

  #groupOf(caller: Caller, { type, direction, imei, fromMs, limit }: WantedEvents): EventGroup {
    const name = [caller.accountId, caller.worldIds.join(), type, direction, imei, fromMs, limit].join(' ');
    const filters = { type, direction, imei };
    const serve = (group: EventGroup): void => void this.#serve(group);
    return this.#groups.get(name) ?? new EventGroup(this.#groups, name, caller, filters, limit, serve);
  }

  async #serve(group: EventGroup): Promise<void> {
    if (group.isAsking) return;
    group.isAsking = true;
    for (let news = -1; news !== group.news && group.polls.size > 0; ) {
      news = group.news;
      await this.#queue.run(String(group.accountId), () => this.#look(group));
    }
    group.isAsking = false;
  }

  /** Never rejects. */
  async #look(group: EventGroup): Promise<void> {
    const { polls, unread, turns, reader } = this.#ports;
    const waiting = [...group.polls].filter(({ cursor }) => cursor !== null);
    const oldest = oldestOf(waiting);
    if (oldest === null) return;
    if (!unread.hasRoom(group.accountId)) {
      polls.block(group);
      return;
    }
    try {
      const page = await reader.next(group, oldest, group.filters, group.limit);
      if (typeof page === 'string') {
        await polls.answer(waiting, (poll) => poll.outcome.resolve('again'));
        return;
      }
      const shares = this.#shares(group, waiting, page, oldest.read.seen);
      for (const { page, polls: sharing } of await turns.run(`events of ${group.accountId}`, shares)) {
        await polls.answer(sharing, (poll) => poll.outcome.resolve(page === null ? 'again' : page.take()));
        page?.release();
      }
    } catch (error) {
      await polls.answer(waiting, (poll) => poll.outcome.reject(error));
    }
  }

  /** The pages for calls that wait. The cursor of a call without news moves on. `from`: what the oldest has seen. */
  *#shares(
    group: EventGroup,
    waiting: readonly EventPoll[],
    found: EventsPage,
    from: Snapshot,
  ): Steps<Share[]> {
    const { polls, unread, cursors } = this.#ports;
    const upTo = found.read.open?.upTo ?? found.read.seen;
    const shares = new Map<string, Share>();
    for (const alike of Map.groupBy(waiting, ({ cursor }) => `${cursor?.read.seen}`).values()) {
      yield;
      const cursor = alike[0]?.cursor ?? null;
      if (cursor === null || !upTo.contains(cursor.read.seen)) continue;
      const { seen } = cursor.read;
      const events = found.events.filter(({ xid }) => !seen.sees(xid));
      // Events for them may begin behind this page.
      const isBehind = found.hasMore && events.length === 0 && found.events.length > 0;
      // Two snapshots that were cut short may lack something of each other.
      const isPart = !isBehind && seen.contains(from) && cursors.isKept(cursor.server);
      const read = found.read.open === null ? found.read : { ...found.read, seen };
      if (isPart && events.length === 0 && !found.hasMore) {
        for (const poll of alike) poll.cursor = { read, server: found.server };
        continue;
      }
      const ids = events.map(({ id }) => id).join();
      const name = isPart ? `${read.open === null ? '' : seen} ${ids}` : 'again';
      const present = shares.get(name);
      if (present !== undefined) {
        present.polls.push(...alike);
        continue;
      }
      if (!unread.hasRoom(group.accountId)) {
        polls.block(group);
        break;
      }
      const page = isPart ? yield* this.#page(group, events, read, found) : null;
      shares.set(name, { page, polls: alike });
    }
    return [...shares.values()];
  }

  *#page(
    group: EventGroup,
    events: readonly RecordedEvent[],
    read: EventsRead,
    { hasMore, server }: EventsPage,
  ): Steps<SharedPage> {
    const { cursors, texts, unread } = this.#ports;
    const end = { cursor: cursors.seal(group, null, read, server), hasMore };
    return unread.share(group.accountId, yield* pageBytes(events, (event) => texts.event(event), end));
  }
}

/** A call that waits for events, or looks for itself before it does. */
export class EventPoll extends LongPoll {
  /** Up to where there is nothing for it; null as long as it looks for itself. */
  cursor: EventsCursor | null = null;
  readonly #polls: LongPolls;
  readonly #newsBefore: number;

  constructor(polls: LongPolls, group: EventGroup, keyId: number, untilMs: number) {
    super(group, keyId, untilMs);
    this.#polls = polls;
    this.#newsBefore = group.news;
  }

  /** Waits behind a cursor where it has found nothing. */
  wait(cursor: EventsCursor): Promise<PollOutcome> {
    this.cursor = cursor;
    if (this.group.news !== this.#newsBefore) this.#polls.wake(this.group);
    return this.outcome.promise;
  }
}

/** Calls that wait for the same events with pages of one size, wherever the cursor of each is. */
class EventGroup extends PollGroup<EventPoll> {
  readonly filters: EventFilters;
  readonly limit: number;
  isAsking = false;
  readonly #serve: (group: EventGroup) => void;

  constructor(
    joinable: Map<string, EventGroup>,
    name: string,
    caller: Caller,
    filters: EventFilters,
    limit: number,
    serve: (group: EventGroup) => void,
  ) {
    super(joinable, name, caller, 'events');
    this.filters = filters;
    this.limit = limit;
    this.#serve = serve;
  }

  override serve(): void {
    this.#serve(this);
  }
}

/** The cursor of the call that has seen least: snapshots of one server contain each other. */
function oldestOf(polls: readonly EventPoll[]): EventsCursor | null {
  let oldest: EventsCursor | null = null;
  for (const { cursor } of polls) {
    if (cursor !== null && (oldest === null || isOlder(cursor.read.seen, oldest.read.seen))) oldest = cursor;
  }
  return oldest;
}

function isOlder(a: Snapshot, b: Snapshot): boolean {
  return a.xmax < b.xmax || (a.xmax === b.xmax && b.contains(a));
}
