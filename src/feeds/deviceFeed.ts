import { type KeyState, worldsKey } from '../access/credentials.ts';
import { isSameServer, type Server, type ServerState } from '../changelog/serverStarts.ts';
import { type DeviceFilter, filterSeen } from '../devices/living/deviceFilter.ts';
import type { Changed } from '../devices/worldChanges.memory.ts';
import { invariant } from '../lib/errors.ts';
import { inOneGo, type Steps } from '../lib/workTurns.ts';
import type { DevicesRead, FeedCursor } from './cursors.ts';
import { catchUpWith, followFirst } from './devicesFollowed.ts';
import { FilteredFeed } from './filteredFeed.ts';
import { type Gathering, gather } from './gather.ts';
import { type FeedPorts, LongPoll, PollGroup } from './longPolls.ts';
import { type FeedAnswer, type FeedPage, type PageEnd, pageBytes, type SharedPage } from './pages.ts';
import type { DevicesPage, FleetView } from './readDevices.ts';
import { firstRead, hasChanges, isCurrent, readDevices } from './readDevices.ts';
import { readInSteps } from './readInSteps.ts';

/** A page of up to this many items (the default) is made at once, in a millisecond; a larger one in turns. */
const ITEMS_AT_ONCE = 500;

interface ChangesQuery extends Gathering {
  readonly cursor: string | null;
  readonly limit: number;
  readonly waitMs: number;
  /** Null: every device. */
  readonly filter?: DeviceFilter | null;
}

type Caller = Pick<KeyState, 'id' | 'accountId' | 'worldIds'>;

/** A page that is asked for, by one call or by a group of them. */
interface PageRequest {
  readonly caller: Pick<Caller, 'accountId' | 'worldIds'>;
  readonly limit: number;
  readonly read: DevicesRead;
  /** The cursor that was sent, as text and opened. */
  readonly sent: { readonly text: string; readonly cursor: FeedCursor } | null;
}

/** Calls with nothing new between their cursors, and with pages of one size. */
type DeviceGroup = PollGroup<{ readonly request: PageRequest; readonly server: Server }>;

/** One call, which may wait. */
type CallRequest = PageRequest & ChangesQuery & { readonly caller: Caller };

/** Devices that have changed since a cursor, from memory. */
export class DeviceFeed {
  readonly #ports: FeedPorts;
  readonly #filtered: FilteredFeed;
  /** The groups that a call may join, by name. */
  readonly #groups = new Map<string, DeviceGroup>();

  constructor(ports: FeedPorts) {
    this.#ports = ports;
    this.#filtered = new FilteredFeed(ports);
  }

  /**
   * The next page; at once unless it is a large one, the caller waits, or this pod must first learn what the cursor has
   * seen elsewhere. Rejects when Postgres is needed for that and cannot be asked.
   */
  next(caller: Caller, query: ChangesQuery): FeedAnswer | Promise<FeedAnswer> {
    const { cursors, follower } = this.#ports;
    follower.applied.noteReader();
    const filter = filterSeen(caller.worldIds, query.filter ?? null);
    if (filter !== null) return this.#filtered.next(caller, { ...query, filter });
    if (query.gatherMs > 0) return this.#gathered(caller, query);
    if (query.cursor === null)
      return this.#page({ ...query, caller, sent: null, read: firstRead(follower.applied.followed) });
    const text = query.cursor;
    const cursor = cursors.open(text, caller);
    if (cursor !== 'unmet') return this.#behind({ text, cursor }, caller, query);
    const met = cursors.openMet(text, caller, follower);
    return met.then((cursor) => this.#behind({ text, cursor }, caller, query));
  }

  /** The page as of the time until which the call gathers. A bad cursor is refused before. */
  async #gathered(caller: Caller, query: ChangesQuery): Promise<FeedAnswer> {
    const { cursors, clock, follower } = this.#ports;
    const { cursor: text } = query;
    const untilMs = clock() + query.waitMs;
    const cursor = text === null ? null : cursors.open(text, caller);
    if (cursor === 'malformed' || cursor === 'expired') return cursor;
    if (typeof cursor === 'object' && cursor !== null) {
      if (cursor.devices === null) return 'malformed';
      if (cursor.devices.filtered !== undefined) return 'other_filters';
    }
    const outcome = await gather(this.#ports, caller, query);
    if (outcome === 'full') return 'crowded';
    if (outcome === 'over')
      return this.next(caller, { ...query, gatherMs: 0, waitMs: Math.max(0, untilMs - clock()) });
    const begun = text ?? cursors.seal(caller, firstRead(follower.applied.followed), null);
    // Nobody has looked whether there is more.
    return { bytes: inOneGo(this.#bytes([], { cursor: begun, hasMore: true })), handover: null };
  }

  #behind(
    { text, cursor }: { text: string; cursor: FeedCursor | 'malformed' | 'expired' },
    caller: Caller,
    query: ChangesQuery,
  ): FeedAnswer | Promise<FeedAnswer> {
    if (cursor === 'malformed' || cursor === 'expired') return cursor;
    if (cursor.devices === null) return 'malformed';
    if (cursor.devices.filtered !== undefined) return 'other_filters';
    const request = { ...query, caller, sent: { text, cursor }, read: cursor.devices };
    return isCurrent(this.#view, request.read) ? this.#page(request) : this.#pageOnceCurrent(request);
  }

  get #view(): FleetView {
    const { fleet, follower } = this.#ports;
    return { fleet, followed: follower.applied.followed, own: follower.applied.own };
  }

  async #pageOnceCurrent(request: CallRequest): Promise<FeedAnswer> {
    const { cursor, caller, read } = request;
    const caught = await catchUpWith(this.#ports, cursor, caller, read);
    return caught === 'expired' ? caught : this.#page(request);
  }

  #page(request: CallRequest, isFollowed = false): FeedAnswer | Promise<FeedAnswer> {
    const { unread } = this.#ports;
    const { caller, limit, read } = request;
    if (!this.#canFollow(request)) return 'expired';
    const page = readDevices(this.#view, caller.worldIds, read, Math.min(limit, ITEMS_AT_ONCE));
    if (page.hasMore && limit > ITEMS_AT_ONCE) return this.#largePage(request, isFollowed);
    if (page.isCut && !isFollowed) return this.#pageOnceFollowed(request);
    if (page.items.length > 0 || page.hasMore)
      return unread.hasRoom(caller.accountId)
        ? unread.page(caller.accountId, inOneGo(this.#bytes(page.items, this.#end(request, page))))
        : 'unread';
    return request.waitMs > 0 && page.read.listedTo === null
      ? this.#wait({ ...request, read: page.read })
      : this.#emptyPage(request, page.read);
  }

  /** Removals that a reader has not seen are remembered for a while only. */
  #canFollow({ caller, read }: PageRequest): boolean {
    return read.seen.sees(this.#ports.fleet.removalHorizonXid(caller.worldIds));
  }

  /** Too small to be counted as unread. */
  #emptyPage(request: CallRequest, read: DevicesRead): FeedPage {
    const end = this.#end(request, { items: [], read, hasMore: false });
    return { bytes: inOneGo(this.#bytes([], end)), handover: null };
  }

  /** The end of a page. A cursor that would say the same is given back as it came. */
  #end(
    { caller, read, sent }: PageRequest,
    page: Pick<DevicesPage, 'items' | 'read' | 'hasMore'>,
    readOn?: ServerState,
  ): PageEnd {
    const { cursors } = this.#ports;
    const { items, hasMore } = page;
    const isSame = items.length === 0 && !hasMore && read.open === null && read.listedTo === null;
    if (isSame && sent !== null && cursors.isFresh(sent.cursor)) return { cursor: sent.text, hasMore };
    return { cursor: cursors.seal(caller, page.read, null, readOn), hasMore };
  }

  #bytes(items: readonly Changed[], end: PageEnd): Steps<Buffer> {
    const { texts, clock } = this.#ports;
    const nowMs = clock();
    return pageBytes(items, (item) => texts.device(item, nowMs), end);
  }

  async #largePage(request: CallRequest, isFollowed: boolean): Promise<FeedAnswer> {
    const made = await this.#pageInTurns(request, this.#ports.follower.applied.server, isFollowed);
    if (typeof made === 'string') return made;
    const page = made.take();
    made.release();
    return page;
  }

  async #pageInTurns(
    request: PageRequest,
    server: Server,
    isFollowed = false,
  ): Promise<SharedPage | 'expired' | 'unread'> {
    const steps = this.#pageSteps(request, server, isFollowed);
    const made = await this.#ports.turns.run(`changes of ${request.caller.accountId}`, steps);
    if (made !== 'cut') return made;
    await followFirst(this.#ports.follower);
    return this.#pageInTurns(request, server, true);
  }

  /** Memory is read in these steps, so nothing is held for a call until it is its turn. */
  *#pageSteps(
    request: PageRequest,
    server: Server,
    isFollowed: boolean,
  ): Steps<SharedPage | 'cut' | 'expired' | 'unread'> {
    const { cursors, unread, follower } = this.#ports;
    const { caller, limit, read } = request;
    if (!unread.hasRoom(caller.accountId)) return 'unread';
    let readOn: ServerState = server;
    const view = (): FleetView | null => {
      if (!cursors.isKept(readOn) || !this.#canFollow(request)) return null;
      readOn = follower.applied.server;
      return this.#view;
    };
    const page = yield* readInSteps(view, caller.worldIds, read, limit);
    if (page === null) return 'expired';
    if (page.isCut && !isFollowed) return 'cut';
    const end = this.#end(request, page, readOn);
    const bytes = yield* this.#bytes(page.items, end);
    return unread.share(caller.accountId, bytes);
  }

  /** So much was committed by this pod just now that a cursor has no room for it: it is followed first. */
  async #pageOnceFollowed(request: CallRequest): Promise<FeedAnswer> {
    const { cursors, follower } = this.#ports;
    const { server } = follower.applied;
    await followFirst(follower);
    return cursors.isKept(server) ? this.#page(request, true) : 'expired';
  }

  #wait(request: CallRequest): FeedAnswer | Promise<FeedAnswer> {
    const { polls, clock, cursors, follower } = this.#ports;
    const { caller, read } = request;
    const poll = new LongPoll(this.#groupOf(request), caller.id, clock() + request.waitMs);
    const joined = polls.join(poll);
    if (joined === 'full') return 'crowded';
    if (joined === 'none') return this.#emptyPage(request, read);
    request.whenLeft?.(() => polls.leave(poll));
    const { server } = follower.applied;
    return poll.outcome.promise.then((outcome) => {
      invariant(outcome !== 'again', 'a group of devices looks for its calls');
      if (outcome !== 'over' && outcome !== 'ended') return outcome;
      // Meanwhile a replica that lacks something may have taken over.
      return cursors.isKept(server) ? this.#emptyPage(request, read) : 'expired';
    });
  }

  #groupOf({ caller, limit, read }: CallRequest): DeviceGroup {
    const { server } = this.#ports.follower.applied;
    const name = `${caller.accountId} ${worldsKey(caller.worldIds)} ${limit} ${read.also.join()}`;
    const present = this.#groups.get(name);
    if (present !== undefined && isSameServer(present.wanted.server, server) && this.#moveOn(present, read))
      return present;
    const wanted = { request: { caller, limit, read, sent: null }, server };
    const serve = (): void => this.#serve(group);
    const group: DeviceGroup = new PollGroup(this.#groups, name, caller, 'devices', wanted, serve);
    return group;
  }

  /** Moves a group on to the cursor of another caller if nothing lies between them. */
  #moveOn(group: DeviceGroup, read: DevicesRead): boolean {
    const { request, server } = group.wanted;
    const { seen } = request.read;
    if (seen.equals(read.seen)) return true;
    if (!read.seen.contains(seen) || hasChanges(this.#view, group.worldIds, request.read)) return false;
    group.wanted = { request: { ...request, read }, server };
    return true;
  }

  #serve(group: DeviceGroup): void {
    const { polls, unread } = this.#ports;
    if (group.polls.size === 0) return;
    // A cursor that can no longer be followed is news too.
    const { request } = group.wanted;
    if (this.#canFollow(request) && !hasChanges(this.#view, group.worldIds, request.read)) return;
    if (unread.hasRoom(group.accountId)) void this.#answer(group);
    else polls.block(group);
  }

  /** Answers all calls of a group with one page. */
  async #answer(group: DeviceGroup): Promise<void> {
    const { polls } = this.#ports;
    const taken = group.takeAll();
    try {
      const page = await this.#pageInTurns(group.wanted.request, group.wanted.server);
      if (page === 'unread') {
        // Other pages of the account have taken the room.
        polls.block(group, taken);
        return;
      }
      await polls.answer(taken, (poll) =>
        poll.outcome.resolve(typeof page === 'string' ? page : page.take()),
      );
      if (typeof page !== 'string') page.release();
    } catch (error) {
      await polls.answer(taken, (poll) => poll.outcome.reject(error));
    }
  }
}
