import type { KeyState } from '../access/credentials.ts';
import type { LogFollower, Snapshot } from '../changelog/appliedTransactions.memory.ts';
import { SNAPSHOT_MAX_BYTES } from '../changelog/appliedTransactions.memory.ts';
import { isSameServer, type ServerState } from '../changelog/serverStarts.ts';
import type { EventCuts } from '../events/eventPartitions.sql.ts';
import { withDeadline } from '../lib/time.ts';
import type { Sql } from '../postgres/sql.ts';
import type { Cursors, EventsRead } from './cursors.ts';
import type { EventFeedPage, EventFilters, RecordedEvent } from './eventFeed.sql.ts';
import { selectEventFeed, selectPresent, selectSeenBefore } from './eventFeed.sql.ts';

/** How long Postgres may take for a page. */
const READ_LIMIT_MS = 15_000;
/** Events that one query reads. A larger page takes several, so that others have their turns between them. */
export const EVENTS_PER_QUERY = 1_000;
/** A page that takes longer ends where it is. */
const LONG_READ_MS = 5_000;

/** How far a reader of events has come, and on which server. */
export interface EventsCursor {
  readonly read: EventsRead;
  readonly server: ServerState;
}

/** The events behind a cursor, with the cursor behind them. */
export interface EventsPage extends EventsCursor {
  readonly events: readonly RecordedEvent[];
  readonly hasMore: boolean;
}

export interface EventReaderPorts {
  readonly reads: (accountId: number) => Sql;
  readonly cuts: EventCuts;
  readonly cursors: Pick<Cursors, 'isKept'>;
  readonly follower: LogFollower;
}

type Reader = Pick<KeyState, 'accountId' | 'worldIds'>;

/** Reads events from Postgres, in the order in which their transactions became visible. */
export class EventReader {
  readonly #ports: EventReaderPorts;

  constructor(ports: EventReaderPorts) {
    this.#ports = ports;
  }

  /** Where a reader without a cursor begins: at a time, or with what comes next. */
  async begin({ accountId, worldIds }: Reader, fromMs: number | null): Promise<EventsCursor> {
    const { reads, follower } = this.#ports;
    const sql = reads(accountId);
    // Noted before the query: if another server answers it, the next page notices.
    const { server } = follower.applied;
    const seen = fromMs === null ? selectPresent(sql) : selectSeenBefore(sql, worldIds, fromMs);
    const found = await withDeadline(seen, READ_LIMIT_MS, 'the database');
    return { read: { seen: found.within(SNAPSHOT_MAX_BYTES), open: null, fromMs }, server };
  }

  /**
   * The events behind a cursor, up to what is committed now or to `upTo`. 'other server': another server has answered than
   * the one that memory follows. 'lost': the server lacks something of what was seen.
   */
  async next(
    caller: Reader,
    cursor: EventsCursor,
    filters: EventFilters,
    limit: number,
    upTo: Snapshot | null = null,
  ): Promise<EventsPage | 'other server' | 'lost'> {
    const longUntilMs = performance.now() + LONG_READ_MS;
    const first = await this.#read(caller, cursor, filters, Math.min(limit, EVENTS_PER_QUERY), upTo);
    if (typeof first === 'string' || limit <= EVENTS_PER_QUERY) return first;
    const events = [...first.events];
    let page = first;
    // As many queries at most as whole ones make a page.
    for (let left = limit - EVENTS_PER_QUERY; left > 0; left -= EVENTS_PER_QUERY) {
      if (!page.hasMore || performance.now() > longUntilMs) break;
      const next = await this.#read(caller, page, filters, Math.min(left, EVENTS_PER_QUERY), upTo);
      // The next call is told of that.
      if (typeof next === 'string') break;
      for (const event of next.events) events.push(event);
      page = next;
    }
    return { ...page, events };
  }

  /** `next` by one query. */
  async #read(
    { accountId, worldIds }: Reader,
    { read, server: seenOn }: EventsCursor,
    { type, direction, imei }: EventFilters,
    limit: number,
    upTo: Snapshot | null,
  ): Promise<EventsPage | 'other server' | 'lost'> {
    const { reads, cuts, cursors, follower } = this.#ports;
    const { seen, open, fromMs } = read;
    const after = open?.after ?? null;
    const ask = (upTo: Snapshot | null): Promise<EventFeedPage> => {
      const query = { seen, upTo, after, fromMs, type, direction, imei, limit };
      const asked = selectEventFeed(reads(accountId), worldIds, query, cuts);
      return withDeadline(asked, READ_LIMIT_MS, 'the database');
    };
    let page = await ask(open?.upTo ?? upTo);
    const cut = page.upTo.within(SNAPSHOT_MAX_BYTES);
    // With very many transactions open at once a cursor has no room for all of them: the newest wait.
    if (!cut.equals(page.upTo)) page = await ask(cut);
    const { server, present } = page;
    const followed = follower.applied.server;
    if (!isSameServer(server, followed) || server.start !== followed.start) return 'other server';
    // Restored files of an earlier time know nothing of their start, but their present lacks what was seen.
    if (!cursors.isKept(seenOn) || !present.contains(open?.upTo ?? seen)) return 'lost';
    if (!page.upTo.contains(seen)) return { events: [], read, hasMore: false, server };
    const next: EventsRead =
      page.next === null
        ? { seen: page.upTo, open: null, fromMs }
        : { seen, open: { upTo: page.upTo, after: page.next }, fromMs };
    return { events: page.events, read: next, hasMore: page.next !== null, server };
  }

  /** Makes memory follow the server that Postgres' address leads to now. */
  catchUp(): Promise<void> {
    return withDeadline(this.#ports.follower.catchUp(), READ_LIMIT_MS, 'reading the change log');
  }
}
