import type { KeyState } from '../../access/keyState.ts';
import type { Clock } from '../../base/clock.ts';
import { withDeadline } from '../../base/deadline.ts';
import type { EventType } from '../../engine/eventTypes.ts';
import { type EventsRead, SNAPSHOT_MAX_BYTES } from '../../feeds/readerCursor.ts';
import { isSameServer, type LiveServer, type ServerMark, serverMark } from '../../feeds/serverMark.ts';
import type { Snapshot } from '../../feeds/snapshot.ts';
import {
  type EventFeedPage,
  type RecordedEvent,
  selectEventFeed,
  selectPresent,
  selectSeenBefore,
} from '../../store/devices/eventFeed.ts';
import type { EventCuts } from '../../store/devices/eventParts.ts';
import type { Direction } from '../../store/devices/fleetEvents.ts';
import { knownHistory } from '../../store/feed/changes.ts';
import type { Sql } from '../../store/sql/sql.ts';
import type { Cursors } from './cursors.ts';
import type { WaitRoom } from './waitRoom.ts';

/** How long Postgres may take for a page. */
const READ_LIMIT_MS = 15_000;

export interface EventFeedPorts {
  readonly reads: (accountId: number) => Sql;
  readonly cuts: EventCuts;
  readonly cursors: Cursors;
  readonly room: WaitRoom;
  readonly clock: Clock;
  readonly follower: { catchUp(): Promise<void>; noteReader(): void; readonly server: LiveServer };
}

export interface EventFilters {
  readonly type: EventType | null;
  readonly direction: Direction | null;
  readonly imei: string | null;
}

export interface EventFeedRequest extends EventFilters {
  readonly cursor: string | null;
  readonly fromMs: number | null;
  readonly limit: number;
  readonly waitMs: number;
}

export type EventFeedAnswer =
  | { readonly events: readonly RecordedEvent[]; readonly cursor: string; readonly hasMore: boolean }
  | 'malformed'
  | 'expired';

/** How far a reader has come, and on which server. */
export interface EventsPlace {
  readonly read: EventsRead;
  readonly server: ServerMark;
}

export interface EventsStep extends EventsPlace {
  readonly events: readonly RecordedEvent[];
  readonly hasMore: boolean;
}

/** Fleet events in the order in which their transactions became visible, each once along the cursors. */
export class EventFeed {
  readonly #ports: EventFeedPorts;

  constructor(ports: EventFeedPorts) {
    this.#ports = ports;
  }

  /** The next page, when there is one or the caller has waited. Rejects when Postgres cannot be asked. */
  async next(caller: KeyState, request: EventFeedRequest): Promise<EventFeedAnswer> {
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
      // Before it is looked: what comes while it is looked ends the waiting.
      const waiting = this.#wait(caller, untilMs - clock());
      try {
        const step = await this.#page(sql, caller.worldIds, place, request);
        if (step === 'other') await this.catchUp();
        if (step === 'lost' && opened !== null) return 'expired';
        if (step === 'other' || step === 'lost') {
          place = await begin();
          continue;
        }
        place = step;
        const isOver = step.events.length > 0 || step.hasMore || waiting === null;
        if (isOver || (await waiting.outcome) === 'over') {
          const text = cursors.seal(caller, null, step.read, step.server);
          return { events: step.events, cursor: text, hasMore: step.hasMore };
        }
      } finally {
        waiting?.cancel();
      }
    }
  }

  /** Makes memory follow the server that Postgres' address leads to now. */
  catchUp(): Promise<void> {
    return withDeadline(this.#ports.follower.catchUp(), READ_LIMIT_MS, 'reading the change feed');
  }

  /** Of a reader without a cursor: from a time on, or from now. */
  async firstPlace(sql: Sql, worldIds: readonly number[], fromMs: number | null): Promise<EventsPlace> {
    // Before it is asked: where the answer is of another server, the next step notices.
    const { server } = this.#ports.follower;
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
      const query = { seen, upTo, after: open?.place ?? null, fromMs, type, direction, imei, limit };
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
    const server = serverMark({ ...page, history: knownHistory(page.history), xmax: page.present.xmax });
    const { cursors, follower } = this.#ports;
    const isFollowed = isSameServer(server, follower.server) && server.start === follower.server.start;
    if (!isFollowed) return 'other';
    // The second: of a copy of the files from before, which knows nothing of that.
    if (!cursors.isKept(seenOn) || !page.present.contains(open?.upTo ?? seen)) return 'lost';
    if (!page.upTo.contains(seen)) return { events: [], read, hasMore: false, server };
    const next: EventsRead =
      page.next === null
        ? { seen: page.upTo, open: null, fromMs }
        : { seen, open: { upTo: page.upTo, place: page.next }, fromMs };
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

  #wait({ id: keyId, accountId, worldIds }: KeyState, forMs: number) {
    if (forMs <= 0) return null;
    return this.#ports.room.wait({
      keyId,
      accountId,
      worldIds,
      novelty: 'events',
      forMs,
      isReady: () => true,
    });
  }
}
