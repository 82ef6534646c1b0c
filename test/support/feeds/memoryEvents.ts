import type { Snapshot } from '../../../src/changelog/appliedTransactions.memory.ts';
import type { ServerState } from '../../../src/changelog/serverStarts.ts';
import type { RecordedEvent } from '../../../src/feeds/eventFeed.sql.ts';
import type { EventsCursor, EventsPage } from '../../../src/feeds/readEvents.ts';

/** The events of a test in place of those of Postgres, ascending by transaction and id. */
export class MemoryEvents {
  readonly all: RecordedEvent[] = [];
  readonly #now: () => { readonly followed: Snapshot; readonly server: ServerState };

  constructor(now: () => { readonly followed: Snapshot; readonly server: ServerState }) {
    this.#now = now;
  }

  async begin(): Promise<EventsCursor> {
    const { followed, server } = this.#now();
    return { read: { seen: followed, open: null, fromMs: null }, server };
  }

  async next(
    _caller: unknown,
    { read: { seen, open, fromMs } }: EventsCursor,
    _filters: unknown,
    limit: number,
    latest: Snapshot | null,
  ): Promise<EventsPage> {
    const { followed, server } = this.#now();
    const upTo = open?.upTo ?? latest ?? followed;
    const after = open?.after ?? { xid: 0, id: 0 };
    const found = this.all.filter(
      ({ xid, id }) =>
        upTo.sees(xid) && !seen.sees(xid) && (xid > after.xid || (xid === after.xid && id > after.id)),
    );
    const events = found.slice(0, limit);
    const last = events.at(-1);
    if (found.length <= limit || last === undefined)
      return { events, read: { seen: upTo, open: null, fromMs }, hasMore: false, server };
    return { events, read: { seen, open: { upTo, after: last }, fromMs }, hasMore: true, server };
  }
}
