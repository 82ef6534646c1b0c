import type { KeyState } from '../access/keyState.ts';
import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { isSameServer } from '../changelog/servers.ts';
import { SNAPSHOT_MAX_BYTES, type Snapshot } from '../changelog/snapshot.ts';
import type { EventCuts } from '../events/eventParts.sql.ts';
import type { Clock } from '../lib/clock.ts';
import { withDeadline } from '../lib/deadline.ts';
import { inOneGo, inTurns, type WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { Cursors } from './cursors.ts';
import { type EventFeedPage, selectEventFeed, selectPresent, selectSeenBefore } from './eventFeed.sql.ts';
import type { EventFeedRequest, EventFilters, EventsPlace, EventsStep } from './eventsPlace.ts';
import { type EventGroup, EventWaits } from './eventWaits.ts';
import { type FeedAnswer, type FeedFormat, SharedPage } from './feedPage.ts';
import type { EventsRead } from './readerCursor.ts';
import type { UnreadAnswers } from './unreadAnswers.ts';
import type { WaitRoom } from './waitRoom.ts';

/** How long Postgres may take for a page. */
const READ_LIMIT_MS = 15_000;

export interface EventFeedPorts {
  readonly reads: (accountId: number) => Sql;
  readonly cuts: EventCuts;
  readonly cursors: Cursors;
  readonly room: WaitRoom;
  readonly unread: UnreadAnswers;
  readonly format: Pick<FeedFormat, 'events'>;
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  readonly clock: Clock;
  readonly follower: LogFollower;
}

/** Fleet events in the order in which their transactions became visible, each once along the cursors. */
export class EventFeed {
  readonly #ports: EventFeedPorts;
  readonly #waits: EventWaits;

  constructor(ports: EventFeedPorts) {
    this.#ports = ports;
    const ask = (group: EventGroup, place: EventsPlace) =>
      this.step(ports.reads(group.accountId), group.worldIds, place, group.filters, group.limit, null);
    this.#waits = new EventWaits({ ...ports, ask });
  }

  /** The next page, when there is one or the caller has waited. Rejects when Postgres cannot be asked. */
  async next(caller: KeyState, request: EventFeedRequest): Promise<FeedAnswer> {
    const { cursors, clock, follower, reads } = this.#ports;
    follower.noteReader();
    const sql = reads(caller.accountId);
    const opened = request.cursor === null ? null : cursors.open(request.cursor, caller);
    if (opened === 'malformed' || opened === 'expired') return opened;
    if (opened !== null && opened.events === null) return 'malformed';
    const begin = (): Promise<EventsPlace> | EventsPlace =>
      opened === null || opened.events === null
        ? this.firstPlace(sql, caller.worldIds, request.fromMs)
        : { read: opened.events, server: opened.server };
    let place = await begin();
    const untilMs = clock() + request.waitMs;
    for (;;) {
      const forMs = untilMs - clock();
      // Before it is looked: what comes while it is looked ends the waiting.
      const wanted = { ...request, fromMs: place.read.fromMs };
      const waiter = forMs > 0 ? this.#waits.join(caller, wanted, forMs) : 'none';
      try {
        const step = await this.#page(sql, caller.worldIds, place, request);
        if (step === 'other') await this.catchUp();
        if (step === 'lost' && opened !== null) return 'expired';
        if (step === 'other' || step === 'lost') {
          place = await begin();
          continue;
        }
        place = step;
        const isThere = step.events.length > 0 || step.hasMore;
        if (isThere || waiter === 'none') return await this.#answer(caller, step);
        if (waiter === 'full') return 'crowded';
        request.whenLeft?.(waiter.leave);
        const outcome = await waiter.wait(place);
        place = waiter.place ?? place;
        if (outcome === 'over') return await this.#answer(caller, { ...place, events: [], hasMore: false });
        if (outcome !== 'again') return outcome;
      } finally {
        if (typeof waiter !== 'string') waiter.leave();
      }
    }
  }

  /** A page for one call. */
  async #answer(caller: KeyState, { events, read, server, hasMore }: EventsStep): Promise<FeedAnswer> {
    const { cursors, unread, format, turns } = this.#ports;
    const steps = format.events(events, { cursor: cursors.seal(caller, null, read, server), hasMore });
    if (events.length === 0) return { bytes: inOneGo(steps), handover: null };
    if (!unread.hasRoom(caller.accountId)) return 'unread';
    const bytes = await inTurns(turns, `events of ${caller.accountId}`, steps);
    return new SharedPage(unread, caller.accountId, bytes).takeLast();
  }

  /** Makes memory follow the server that Postgres' address leads to now. */
  catchUp(): Promise<void> {
    return withDeadline(this.#ports.follower.catchUp(), READ_LIMIT_MS, 'reading the change log');
  }

  /** Of a reader without a cursor: from a time on, or from now. */
  async firstPlace(sql: Sql, worldIds: readonly number[], fromMs: number | null): Promise<EventsPlace> {
    // Before it is asked: where the answer is of another server, the next step notices.
    const { server } = this.#ports.follower.applied;
    const seen = fromMs === null ? selectPresent(sql) : selectSeenBefore(sql, worldIds, fromMs);
    const found = await withDeadline(seen, READ_LIMIT_MS, 'the database');
    return { read: { seen: found.within(SNAPSHOT_MAX_BYTES), open: null, fromMs }, server };
  }

  /**
   * The events behind a place, up to what is committed now or to `upTo`. 'other': another server has answered than the one
   * that memory follows. 'lost': the server lacks something of what was seen.
   */
  async step(
    sql: Sql,
    worldIds: readonly number[],
    { read, server: seenOn }: EventsPlace,
    filters: EventFilters,
    limit: number,
    upTo: Snapshot | null,
  ): Promise<EventsStep | 'other' | 'lost'> {
    const { seen, open, fromMs } = read;
    const ask = (upTo: Snapshot | null): Promise<EventFeedPage> => {
      const { type, direction, imei } = filters;
      const query = { seen, upTo, after: open?.after ?? null, fromMs, type, direction, imei, limit };
      return withDeadline(
        selectEventFeed(sql, worldIds, query, this.#ports.cuts),
        READ_LIMIT_MS,
        'the database',
      );
    };
    let page = await ask(open?.upTo ?? upTo);
    const cut = page.upTo.within(SNAPSHOT_MAX_BYTES);
    // With very many transactions open at once a cursor has no room for all of them: the newest wait.
    if (!cut.equals(page.upTo)) page = await ask(cut);
    const { server } = page;
    const { cursors, follower } = this.#ports;
    const isFollowed =
      isSameServer(server, follower.applied.server) && server.start === follower.applied.server.start;
    if (!isFollowed) return 'other';
    // The second: of a copy of the files from before, which knows nothing of that.
    if (!cursors.isKept(seenOn) || !page.present.contains(open?.upTo ?? seen)) return 'lost';
    if (!page.upTo.contains(seen)) return { events: [], read, hasMore: false, server };
    const next: EventsRead =
      page.next === null
        ? { seen: page.upTo, open: null, fromMs }
        : { seen, open: { upTo: page.upTo, after: page.next }, fromMs };
    return { events: page.events, read: next, hasMore: page.next !== null, server };
  }

  /** A step; where that ends a read that was open, also what has come since that was opened. */
  async #page(
    sql: Sql,
    worldIds: readonly number[],
    place: EventsPlace,
    request: EventFeedRequest,
  ): Promise<EventsStep | 'other' | 'lost'> {
    const first = await this.step(sql, worldIds, place, request, request.limit, null);
    if (typeof first === 'string' || place.read.open === null || first.hasMore) return first;
    const left = request.limit - first.events.length;
    if (left === 0) return { ...first, hasMore: true };
    const second = await this.step(sql, worldIds, first, request, left, null);
    if (typeof second === 'string') return first;
    return { ...second, events: [...first.events, ...second.events] };
  }
}
