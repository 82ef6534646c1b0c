import type { KeyState } from '../access/keyState.ts';
import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import type { Server } from '../changelog/servers.ts';
import type { Changed } from '../devices/changes/worldChanges.ts';
import type { Clock } from '../lib/clock.ts';
import { DeadlineExceeded, withDeadline } from '../lib/deadline.ts';
import { invariant } from '../lib/invariant.ts';
import { inOneGo, type Steps, type WorkTurns } from '../lib/workTurns.ts';
import { isUnavailable } from '../postgres/sqlErrors.ts';
import type { Cursors } from './cursors.ts';
import { type DeviceGroup, DeviceWaits } from './deviceWaits.ts';
import { type FeedAnswer, type FeedFormat, type FeedPage, type PageEnd, SharedPage } from './feedPage.ts';
import { type DevicesPage, firstRead, type HeldFleet, isCurrent, readDevices } from './readDevices.ts';
import type { DevicesRead, ReaderCursor } from './readerCursor.ts';
import type { UnreadAnswers } from './unreadAnswers.ts';
import type { WaitRoom } from './waitRoom.ts';

/** How long memory may take to hold what a cursor of another pod has seen. */
const CATCH_UP_LIMIT_MS = 2_000;
/** A page of so many items (the default) is made at once, in a millisecond; a larger one in turns. */
const ITEMS_AT_ONCE = 500;

export interface DeviceFeedPorts {
  readonly held: HeldFleet;
  readonly cursors: Cursors;
  readonly room: WaitRoom;
  readonly unread: UnreadAnswers;
  readonly format: Pick<FeedFormat, 'changes'>;
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  readonly clock: Clock;
  readonly follower: LogFollower;
}

export interface ChangesQuery {
  readonly cursor: string | null;
  readonly limit: number;
  readonly waitMs: number;
  /** Calls `listener` when the caller hangs up. */
  readonly whenLeft?: ((listener: () => void) => void) | undefined;
}

type Caller = Pick<KeyState, 'id' | 'accountId' | 'worldIds'>;

/** Where a call stands: its cursor, opened, and what that has seen. */
interface Place {
  readonly cursor: ReaderCursor | null;
  readonly read: DevicesRead;
}

/** Devices that have changed since a cursor, from memory. */
export class DeviceFeed {
  readonly #ports: DeviceFeedPorts;
  readonly #waits: DeviceWaits;

  constructor(ports: DeviceFeedPorts) {
    this.#ports = ports;
    this.#waits = new DeviceWaits({ ...ports, makePage: (group) => this.#sharedPage(group) });
  }

  /**
   * The next page; at once unless it is a large one, the caller waits, or this pod must first learn what the cursor has
   * seen elsewhere. Rejects when Postgres is needed for that and cannot be asked.
   */
  next(caller: Caller, query: ChangesQuery): FeedAnswer | Promise<FeedAnswer> {
    const { held, cursors, follower } = this.#ports;
    follower.noteReader();
    if (query.cursor === null) return this.#page(caller, query, { cursor: null, read: firstRead(held) });
    const cursor = cursors.open(query.cursor, caller);
    if (cursor === 'malformed' || cursor === 'expired') return cursor;
    const { devices } = cursor;
    if (devices === null) return 'malformed';
    const place = { cursor, read: devices };
    return isCurrent(held, devices)
      ? this.#page(caller, query, place)
      : this.#pageLater(caller, query, place);
  }

  async #pageLater(caller: Caller, query: ChangesQuery, place: Place): Promise<FeedAnswer> {
    const { follower, cursors, held } = this.#ports;
    const untilMs = performance.now() + CATCH_UP_LIMIT_MS;
    do await withDeadline(follower.catchUp(), CATCH_UP_LIMIT_MS, 'reading the change log');
    while (!isCurrent(held, place.read) && performance.now() < untilMs);
    // Another server may have taken over, or another database was put in its place.
    if (cursors.open(query.cursor ?? '', caller) === 'expired') return 'expired';
    if (isCurrent(held, place.read)) return this.#page(caller, query, place);
    if (follower.applied.isComplete) return 'expired';
    throw new DeadlineExceeded('memory does not hold yet what the cursor has seen');
  }

  #page(
    caller: Caller,
    query: ChangesQuery,
    place: Place,
    isFollowing = false,
  ): FeedAnswer | Promise<FeedAnswer> {
    const { held, unread } = this.#ports;
    const { read } = place;
    if (!this.#canFollow(caller, read)) return 'expired';
    const page = readDevices(held, caller.worldIds, read, Math.min(query.limit, ITEMS_AT_ONCE));
    if (page.hasMore && query.limit > ITEMS_AT_ONCE)
      return this.#largePage(caller, query, place, isFollowing);
    if (page.isCut && !isFollowing) return this.#pageFollowed(caller, query, place);
    const isEmpty = page.items.length === 0 && !page.hasMore;
    if (isEmpty && query.waitMs > 0 && page.read.listedTo === null)
      return this.#wait(caller, query, { cursor: place.cursor, read: page.read });
    if (isEmpty) return this.#emptyPage(caller, query, place, page);
    if (!unread.hasRoom(caller.accountId)) return 'unread';
    const bytes = inOneGo(this.#bytesOf(page, this.#endOf(caller, query, place, page)));
    return new SharedPage(unread, caller.accountId, bytes).takeLast();
  }

  #emptyPage(caller: Caller, query: ChangesQuery, place: Place, page: DevicesPage): FeedPage {
    // Too small to be counted.
    return { bytes: inOneGo(this.#bytesOf(page, this.#endOf(caller, query, place, page))), handover: null };
  }

  /** Removals that a reader has not seen are remembered for a while only. */
  #canFollow({ worldIds }: Pick<Caller, 'worldIds'>, { seen }: DevicesRead): boolean {
    return seen.sees(this.#ports.held.fleet.removalHorizonXid(worldIds));
  }

  /** The cursor behind a page; one that says the same is given back as it came. */
  #endOf(caller: Caller, query: ChangesQuery, { cursor, read }: Place, page: DevicesPage): PageEnd {
    const { cursors } = this.#ports;
    const isSame = page.items.length === 0 && !page.hasMore && read.open === null && read.listedTo === null;
    const text =
      isSame && query.cursor !== null && cursor !== null && cursors.isFresh(cursor)
        ? query.cursor
        : cursors.seal(caller, page.read, null);
    return { cursor: text, hasMore: page.hasMore };
  }

  #bytesOf({ items }: DevicesPage, end: PageEnd): Steps<Buffer> {
    const { format, clock } = this.#ports;
    return format.changes(items, end, clock());
  }

  /** What is made in turns is read in the first of them, so nothing is held for a call until it is its turn. */
  async #largePage(
    caller: Caller,
    query: ChangesQuery,
    place: Place,
    isFollowing: boolean,
  ): Promise<FeedAnswer> {
    const { turns, follower } = this.#ports;
    const { server } = follower.applied;
    const endOf = (page: DevicesPage) => this.#endOf(caller, query, place, page);
    const steps = this.#largeSteps(caller, query.limit, place.read, server, isFollowing, endOf);
    const made = await turns.run(turnsOf(caller), steps);
    if (made === 'cut') return this.#pageFollowed(caller, query, place);
    return typeof made === 'string' ? made : made.takeLast();
  }

  *#largeSteps(
    caller: Pick<Caller, 'accountId' | 'worldIds'>,
    limit: number,
    read: DevicesRead,
    server: Server,
    isFollowing: boolean,
    endOf: (page: DevicesPage) => PageEnd,
  ): Steps<SharedPage | 'cut' | 'expired' | 'unread'> {
    const { cursors, held, unread } = this.#ports;
    if (!cursors.isKept(server) || !this.#canFollow(caller, read)) return 'expired';
    if (!unread.hasRoom(caller.accountId)) return 'unread';
    const page = readDevices(held, caller.worldIds, read, limit);
    if (page.isCut && !isFollowing) return 'cut';
    const end = endOf(page);
    // Memory goes on while the page is made, and an answer must not be newer than its cursor says.
    const items = page.items.map(asNow);
    const bytes = yield* this.#bytesOf({ ...page, items }, end);
    return new SharedPage(unread, caller.accountId, bytes);
  }

  /** So much was committed by this pod just now that a cursor has no room for it: it is followed first. */
  async #pageFollowed(caller: Caller, query: ChangesQuery, place: Place): Promise<FeedAnswer> {
    const { server } = this.#ports.follower.applied;
    await this.#follow();
    return this.#ports.cursors.isKept(server) ? this.#page(caller, query, place, true) : 'expired';
  }

  /** Without Postgres a page is sent without what a cursor has no room for. */
  async #follow(): Promise<void> {
    const { follower } = this.#ports;
    await withDeadline(follower.catchUp(), CATCH_UP_LIMIT_MS, 'reading the change log').catch((error) => {
      if (!isUnavailable(error)) throw error;
    });
  }

  #wait(caller: Caller, query: ChangesQuery, place: Place): FeedAnswer | Promise<FeedAnswer> {
    const nothing = (): FeedAnswer => {
      const page = { items: [], read: place.read, begun: place.read, hasMore: false, isCut: false };
      return this.#emptyPage(caller, query, place, page);
    };
    const waiting = this.#waits.wait(caller, query.limit, place.read, query.waitMs);
    if (waiting === 'full') return 'crowded';
    if (waiting === 'none') return nothing();
    query.whenLeft?.(waiting.cancel);
    const { server } = this.#ports.follower.applied;
    return waiting.outcome.then((outcome) => {
      if (outcome !== 'over') return outcome;
      // Meanwhile a replica that lacks something may have taken over.
      return this.#ports.cursors.isKept(server) ? nothing() : 'expired';
    });
  }

  /** The page of all who have waited at a place. */
  async #sharedPage(group: DeviceGroup): Promise<SharedPage | 'expired' | 'unread'> {
    const { turns, cursors } = this.#ports;
    const endOf = ({ read, hasMore }: DevicesPage): PageEnd => ({
      cursor: cursors.seal(group, read, null),
      hasMore,
    });
    const make = (isFollowing: boolean) =>
      turns.run(
        turnsOf(group),
        this.#largeSteps(group, group.limit, group.read, group.server, isFollowing, endOf),
      );
    let made = await make(false);
    if (made === 'cut') {
      await this.#follow();
      made = await make(true);
    }
    invariant(made !== 'cut', 'what was followed is not followed again');
    return made;
  }
}

const turnsOf = ({ accountId }: { readonly accountId: number }): string => `changes of ${accountId}`;

/** A device as it is now: memory replaces what it consists of and changes nothing in it. */
function asNow(item: Changed): Changed {
  if (item.device === null) return item;
  const { fields, position } = item.device;
  return { ...item, device: { fields, position } };
}
