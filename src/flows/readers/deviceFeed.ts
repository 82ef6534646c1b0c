import type { KeyState } from '../../access/keyState.ts';
import { DeadlineExceeded, withDeadline } from '../../base/deadline.ts';
import type { DevicesRead, ReaderCursor } from '../../feeds/readerCursor.ts';
import type { ServerMark } from '../../feeds/serverMark.ts';
import type { Changed } from '../../memory/changes/worldChanges.ts';
import { isUnavailable } from '../../store/sql/sqlErrors.ts';
import type { Cursors } from './cursors.ts';
import { firstRead, type HeldFleet, hasChanges, isCurrent, readDevices } from './readDevices.ts';
import type { WaitRoom } from './waitRoom.ts';

/** How long memory may take to hold what a cursor of another pod has seen. */
const CATCH_UP_LIMIT_MS = 2_000;

export interface DeviceFeedPorts {
  readonly held: HeldFleet;
  readonly cursors: Cursors;
  readonly room: WaitRoom;
  readonly follower: {
    catchUp(): Promise<void>;
    noteReader(): void;
    readonly isComplete: boolean;
    readonly server: ServerMark;
  };
}

export interface ChangesQuery {
  readonly cursor: string | null;
  readonly limit: number;
  readonly waitMs: number;
}

export interface ChangesPage {
  readonly items: readonly Changed[];
  readonly cursor: string;
  readonly hasMore: boolean;
}

export type ChangesAnswer = ChangesPage | 'malformed' | 'expired';

/** Devices that have changed since a cursor, from memory. */
export class DeviceFeed {
  readonly #ports: DeviceFeedPorts;

  constructor(ports: DeviceFeedPorts) {
    this.#ports = ports;
  }

  /**
   * The next page; at once unless the caller waits, or this pod must first learn what the cursor has seen elsewhere.
   * Rejects when Postgres is needed for that and cannot be asked.
   */
  next(caller: KeyState, query: ChangesQuery): ChangesAnswer | Promise<ChangesAnswer> {
    const { held, cursors, follower } = this.#ports;
    follower.noteReader();
    if (query.cursor === null) return this.#page(caller, query, null, firstRead(held));
    const cursor = cursors.open(query.cursor, caller);
    if (cursor === 'malformed' || cursor === 'expired') return cursor;
    const { devices } = cursor;
    if (devices === null) return 'malformed';
    if (!isCurrent(held, devices)) return this.#pageLater(caller, query, cursor, devices);
    return this.#page(caller, query, cursor, devices);
  }

  async #pageLater(
    caller: KeyState,
    query: ChangesQuery,
    cursor: ReaderCursor,
    devices: DevicesRead,
  ): Promise<ChangesAnswer> {
    const { follower, cursors, held } = this.#ports;
    const untilMs = performance.now() + CATCH_UP_LIMIT_MS;
    do await withDeadline(follower.catchUp(), CATCH_UP_LIMIT_MS, 'reading the change feed');
    while (!isCurrent(held, devices) && performance.now() < untilMs);
    // Another server may have taken over, or another database was put in its place.
    if (cursors.open(query.cursor ?? '', caller) === 'expired') return 'expired';
    if (isCurrent(held, devices)) return this.#page(caller, query, cursor, devices);
    if (follower.isComplete) return 'expired';
    throw new DeadlineExceeded('memory does not hold yet what the cursor has seen');
  }

  #page(
    caller: KeyState,
    query: ChangesQuery,
    cursor: ReaderCursor | null,
    read: DevicesRead,
    isFollowing = false,
  ): ChangesAnswer | Promise<ChangesAnswer> {
    const { held, cursors, room, follower } = this.#ports;
    const { worldIds } = caller;
    if (!read.seen.sees(held.fleet.removalHorizonXid(worldIds))) return 'expired';
    const page = readDevices(held, worldIds, read, query.limit);
    if (page.isCut && !isFollowing) return this.#pageFollowed(caller, query, cursor, read);
    const isEmpty = page.items.length === 0 && !page.hasMore;
    if (isEmpty && query.waitMs > 0 && page.read.listedTo === null) {
      const { id: keyId, accountId } = caller;
      const isReady = () => hasChanges(held, worldIds, page.read);
      const request = {
        keyId,
        accountId,
        worldIds,
        novelty: 'devices',
        forMs: query.waitMs,
        isReady,
      } as const;
      const waiting = room.wait(request);
      const rest = { ...query, waitMs: 0 };
      const { server } = follower;
      if (waiting !== null)
        return waiting.outcome.then((outcome) =>
          // Meanwhile a replica that lacks something may have taken over.
          cursors.isKept(server) ? this.#afterWait(outcome, caller, rest, cursor, page.read) : 'expired',
        );
    }
    const isSame =
      isEmpty && cursor !== null && read.open === null && read.listedTo === null && cursors.isFresh(cursor);
    const text = isSame && query.cursor !== null ? query.cursor : cursors.seal(caller, page.read, null);
    return { items: page.items, cursor: text, hasMore: page.hasMore };
  }

  /** So much was committed by this pod just now that a cursor has no room for it: it is followed first. */
  async #pageFollowed(
    caller: KeyState,
    query: ChangesQuery,
    cursor: ReaderCursor | null,
    read: DevicesRead,
  ): Promise<ChangesAnswer> {
    const { follower, cursors } = this.#ports;
    const { server } = follower;
    await withDeadline(follower.catchUp(), CATCH_UP_LIMIT_MS, 'reading the change feed').catch((error) => {
      // Without Postgres the page is sent without what does not fit.
      if (!isUnavailable(error)) throw error;
    });
    return cursors.isKept(server) ? this.#page(caller, query, cursor, read, true) : 'expired';
  }

  #afterWait(
    outcome: 'ready' | 'over',
    caller: KeyState,
    query: ChangesQuery,
    cursor: ReaderCursor | null,
    read: DevicesRead,
  ): ChangesAnswer | Promise<ChangesAnswer> {
    if (outcome === 'ready') return this.#page(caller, query, cursor, read);
    const { cursors } = this.#ports;
    const text =
      query.cursor !== null && cursor !== null && cursors.isFresh(cursor)
        ? query.cursor
        : cursors.seal(caller, read, null);
    return { items: [], cursor: text, hasMore: false };
  }
}
