import type { KeyState } from '../access/keyring.memory.ts';
import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { inOneGo, inTurns } from '../lib/workTurns.ts';
import type { Cursors } from './cursors.ts';
import { type EventPollPorts, EventPolls, type WantedEvents } from './eventPolls.ts';
import { type FeedAnswer, pageBytes } from './pages.ts';
import type { EventReader, EventsCursor, EventsPage } from './readEvents.ts';

export interface EventFeedPorts extends EventPollPorts {
  readonly cursors: Cursors;
  readonly reader: EventReader;
  readonly follower: LogFollower;
}

export interface EventFeedRequest extends WantedEvents {
  readonly cursor: string | null;
  readonly waitMs: number;
  /** Calls `listener` when the caller hangs up. */
  readonly whenLeft?: ((listener: () => void) => void) | undefined;
}

/** Fleet events in the order in which their transactions became visible, each once along the cursors. */
export class EventFeed {
  readonly #ports: EventFeedPorts;
  readonly #polls: EventPolls;

  constructor(ports: EventFeedPorts) {
    this.#ports = ports;
    this.#polls = new EventPolls(ports);
  }

  /** The next page, when there is one or the caller has waited. Rejects when Postgres cannot be asked. */
  async next(caller: KeyState, request: EventFeedRequest): Promise<FeedAnswer> {
    const { cursors, clock, polls, reader, follower } = this.#ports;
    follower.applied.noteReader();
    const opened = request.cursor === null ? null : cursors.open(request.cursor, caller);
    if (opened === 'malformed' || opened === 'expired') return opened;
    if (opened !== null && opened.events === null) return 'malformed';
    const begin = (): Promise<EventsCursor> | EventsCursor =>
      opened === null || opened.events === null
        ? reader.begin(caller, request.fromMs)
        : { read: opened.events, server: opened.server };
    let cursor = await begin();
    const untilMs = clock() + request.waitMs;
    for (;;) {
      const forMs = untilMs - clock();
      // Before the page is read: events that come during that end the waiting.
      const wanted = { ...request, fromMs: cursor.read.fromMs };
      const poll = forMs > 0 ? this.#polls.join(caller, wanted, forMs) : 'none';
      try {
        const page = await this.#page(caller, cursor, request);
        if (page === 'other server') await reader.catchUp();
        if (page === 'lost' && opened !== null) return 'expired';
        if (typeof page === 'string') {
          cursor = await begin();
          continue;
        }
        cursor = page;
        if (page.events.length > 0 || page.hasMore || poll === 'none')
          return await this.#answer(caller, page);
        if (poll === 'full') return 'crowded';
        request.whenLeft?.(() => polls.leave(poll));
        const outcome = await poll.wait(cursor);
        cursor = poll.cursor ?? cursor;
        if (outcome === 'over') return await this.#answer(caller, { ...cursor, events: [], hasMore: false });
        if (outcome !== 'again') return outcome;
      } finally {
        if (typeof poll !== 'string') polls.leave(poll);
      }
    }
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
