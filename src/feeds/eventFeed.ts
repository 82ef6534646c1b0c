import { type KeyState, worldsKey } from '../access/credentials.ts';
import type { Snapshot } from '../changelog/appliedTransactions.memory.ts';
import { FairSemaphore, KeyedQueue } from '../lib/fairSemaphore.ts';
import { inOneGo, inTurns, type Steps } from '../lib/workTurns.ts';
import type { EventsRead } from './cursors.ts';
import type { EventFilters, RecordedEvent } from './eventFeed.sql.ts';
import { type Gathering, gather } from './gather.ts';
import { type FeedPorts, LongPoll, type LongPolls, PollGroup, type PollOutcome } from './longPolls.ts';
import { type FeedAnswer, pageBytes, type SharedPage } from './pages.ts';
import { EVENTS_PER_QUERY, type EventsCursor, type EventsPage } from './readEvents.ts';

type Caller = Pick<KeyState, 'id' | 'accountId' | 'worldIds'>;

/** What a call waits for. */
interface WantedEvents extends EventFilters {
  /** Events produced earlier are left out. */
  readonly fromMs: number | null;
  readonly limit: number;
}

interface EventFeedRequest extends WantedEvents, Gathering {
  readonly cursor: string | null;
  readonly waitMs: number;
}

/**
 * Pages of more events than one query reads. Until such a page is written, its events are in memory, some 10 MB: an account
 * makes one at a time.
 */
export class LargePages {
  readonly #permits = new FairSemaphore<number>({
    running: 4,
    runningPerKey: 1,
    waiting: 500,
    waitingPerKey: 50,
  });

  /** Runs `work`, which makes a page of up to `limit` events. Rejects with Overloaded when its turn does not come. */
  async run<T>(accountId: number, limit: number, work: () => Promise<T>): Promise<T> {
    if (limit <= EVENTS_PER_QUERY) return work();
    await this.#permits.acquireWithin(accountId, TURN_LIMIT_MS);
    try {
      return await work();
    } finally {
      this.#permits.release(accountId);
    }
  }
}

const TURN_LIMIT_MS = 15_000;

/** Fleet events in the order in which their transactions became visible, each once along the cursors. */
export class EventFeed {
  readonly #ports: FeedPorts;
  readonly #polls: EventPolls;
  readonly #largePages = new LargePages();

  constructor(ports: FeedPorts) {
    this.#ports = ports;
    this.#polls = new EventPolls(ports, this.#largePages);
  }

  /** The next page, when there is one or the caller has waited. Rejects when Postgres cannot be asked. */
  async next(caller: KeyState, request: EventFeedRequest): Promise<FeedAnswer> {
    const { cursors, clock, polls, reader, follower } = this.#ports;
    follower.applied.noteReader();
    const { cursor: text } = request;
    const opened = text === null ? null : await cursors.openMet(text, caller, follower);
    if (opened === 'malformed' || opened === 'expired') return opened;
    if (opened !== null && opened.events === null) return 'malformed';
    const begin = (): Promise<EventsCursor> | EventsCursor =>
      opened === null || opened.events === null
        ? reader.begin(caller, request.fromMs)
        : { read: opened.events, server: opened.server };
    const untilMs = clock() + request.waitMs;
    let cursor = await begin();
    if (request.gatherMs > 0) {
      const outcome = await gather(this.#ports, caller, request);
      if (outcome === 'full') return 'crowded';
      // Nobody has looked whether there is more.
      if (outcome === 'ended') return this.#answer(caller, { ...cursor, events: [], hasMore: true });
    }
    for (;;) {
      const forMs = untilMs - clock();
      // Before the page is read: events that come during that end the waiting.
      const wanted = { ...request, fromMs: cursor.read.fromMs };
      const poll = forMs > 0 ? this.#polls.join(caller, wanted, forMs) : 'none';
      try {
        const found = await this.#look(caller, cursor, request);
        if (found === 'other server') await reader.catchUp();
        if (found === 'lost' && opened !== null) return 'expired';
        if (typeof found === 'string') {
          cursor = await begin();
          continue;
        }
        cursor = found.cursor;
        if (found.answer !== null) return found.answer;
        if (poll === 'none') return await this.#answer(caller, { ...cursor, events: [], hasMore: false });
        if (poll === 'full') return 'crowded';
        request.whenLeft?.(() => polls.leave(poll));
        const outcome = await poll.wait(cursor);
        cursor = poll.cursor ?? cursor;
        if (outcome === 'over' || outcome === 'ended')
          return await this.#answer(caller, { ...cursor, events: [], hasMore: false });
        if (outcome !== 'again') return outcome;
      } finally {
        if (typeof poll !== 'string') polls.leave(poll);
      }
    }
  }

  /** Looks for events behind a cursor; `answer` is null when there are none. */
  #look(caller: KeyState, from: EventsCursor, request: EventFeedRequest) {
    return this.#largePages.run(caller.accountId, request.limit, async () => {
      const page = await this.#page(caller, from, request);
      if (typeof page === 'string') return page;
      const { read, server } = page;
      const hasNews = page.events.length > 0 || page.hasMore;
      return { cursor: { read, server }, answer: hasNews ? await this.#answer(caller, page) : null };
    });
  }

  /** The events behind a cursor; where an open read ends, also those that have come since it was opened. */
  async #page(
    caller: KeyState,
    cursor: EventsCursor,
    request: EventFeedRequest,
  ): Promise<EventsPage | 'other server' | 'lost'> {
    const { reader } = this.#ports;
    const first = await reader.next(caller, cursor, request, request.limit);
    if (typeof first === 'string' || cursor.read.open === null || first.hasMore) return first;
    const left = request.limit - first.events.length;
    if (left === 0) return { ...first, hasMore: true };
    const second = await reader.next(caller, first, request, left);
    if (typeof second === 'string') return first;
    return { ...second, events: [...first.events, ...second.events] };
  }

  async #answer(caller: KeyState, { events, read, server, hasMore }: EventsPage): Promise<FeedAnswer> {
    const { cursors, unread, texts, turns } = this.#ports;
    const { accountId } = caller;
    const end = { cursor: cursors.seal(caller, null, read, server), hasMore };
    const steps = pageBytes(events, (event) => texts.event(event), end);
    // Too small to be counted as unread.
    if (events.length === 0) return { bytes: inOneGo(steps), handover: null };
    if (!unread.hasRoom(accountId)) return 'unread';
    return unread.page(accountId, await inTurns(turns, `events of ${accountId}`, steps));
  }
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
  readonly #ports: FeedPorts;
  /** The groups that a call may join, by name. */
  readonly #groups = new Map<string, EventGroup>();
  /** An account asks one thing after the other. */
  readonly #queue = new KeyedQueue();
  readonly #largePages: LargePages;

  constructor(ports: FeedPorts, largePages: LargePages) {
    this.#ports = ports;
    this.#largePages = largePages;
  }

  /** To be called before the caller looks for itself, so that it misses nothing. 'none', 'full': see LongPolls. */
  join(caller: Caller, wanted: WantedEvents, forMs: number): EventPoll | 'none' | 'full' {
    const { polls, clock } = this.#ports;
    const poll = new EventPoll(polls, this.#groupOf(caller, wanted), caller.id, clock() + forMs);
    const joined = polls.join(poll);
    return joined === 'in' ? poll : joined;
  }

  #groupOf(caller: Caller, { type, direction, imei, fromMs, limit }: WantedEvents): EventGroup {
    const name = [caller.accountId, worldsKey(caller.worldIds), type, direction, imei, fromMs, limit].join(
      ' ',
    );
    const present = this.#groups.get(name);
    if (present !== undefined) return present;
    const asked = { type, direction, imei, limit, isAsking: false };
    const serve = (): void => void this.#serve(group);
    const group: EventGroup = new PollGroup(this.#groups, name, caller, 'events', asked, serve);
    return group;
  }

  async #serve(group: EventGroup): Promise<void> {
    if (group.wanted.isAsking) return;
    group.wanted.isAsking = true;
    for (let news = -1; news !== group.news && group.polls.size > 0; ) {
      news = group.news;
      await this.#queue.run(String(group.accountId), () => this.#look(group));
    }
    group.wanted.isAsking = false;
  }

  /** Never rejects. */
  async #look(group: EventGroup): Promise<void> {
    const { polls, unread } = this.#ports;
    const waiting = [...group.polls].filter(({ cursor }) => cursor !== null);
    const oldest = oldestOf(waiting);
    if (oldest === null) return;
    if (!unread.hasRoom(group.accountId)) {
      polls.block(group);
      return;
    }
    try {
      const { accountId, wanted } = group;
      const shares = await this.#largePages.run(accountId, wanted.limit, () =>
        this.#read(group, waiting, oldest),
      );
      if (shares === null) {
        await polls.answer(waiting, (poll) => poll.outcome.resolve('again'));
        return;
      }
      for (const { page, polls: sharing } of shares) {
        await polls.answer(sharing, (poll) => poll.outcome.resolve(page === null ? 'again' : page.take()));
        page?.release();
      }
    } catch (error) {
      await polls.answer(waiting, (poll) => poll.outcome.reject(error));
    }
  }

  /** The pages for calls that wait; null when they must look for themselves. */
  async #read(
    group: EventGroup,
    waiting: readonly EventPoll[],
    oldest: EventsCursor,
  ): Promise<Share[] | null> {
    const { reader, turns } = this.#ports;
    const page = await reader.next(group, oldest, group.wanted, group.wanted.limit);
    if (typeof page === 'string') return null;
    const shares = this.#shares(group, waiting, page, oldest.read.seen);
    return turns.run(`events of ${group.accountId}`, shares);
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
      const events = yield* unseen(found.events, seen);
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

/** Events that are compared with what was seen before others have their turn. */
const COMPARED_PER_STEP = 1_000;

function* unseen(events: readonly RecordedEvent[], seen: Snapshot): Steps<RecordedEvent[]> {
  const found: RecordedEvent[] = [];
  for (const [n, event] of events.entries()) {
    if (n % COMPARED_PER_STEP === COMPARED_PER_STEP - 1) yield;
    if (!seen.sees(event.xid)) found.push(event);
  }
  return found;
}

/** Calls that wait for the same events with pages of one size, wherever the cursor of each is. */
type EventGroup = PollGroup<EventFilters & { readonly limit: number; isAsking: boolean }, EventPoll>;

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
