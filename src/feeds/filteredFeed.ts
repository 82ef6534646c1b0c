import type { KeyState } from '../access/credentials.ts';
import type { ServerState } from '../changelog/serverStarts.ts';
import { leftDeviceJson } from '../devices/device.ts';
import { ageLimitsMs, type DeviceFilter } from '../devices/living/deviceFilter.ts';
import { inOneGo, type Steps } from '../lib/workTurns.ts';
import type { DevicesRead, FilteredRead } from './cursors.ts';
import { catchUpWith, followFirst } from './devicesFollowed.ts';
import { type Gathering, gather } from './gather.ts';
import { type FeedPorts, LongPoll, PollGroup, type PollOutcome } from './longPolls.ts';
import { type FeedAnswer, type FeedPage, pageBytes } from './pages.ts';
import { type FleetView, firstRead, hasChanges } from './readDevices.ts';
import { type FilteredItem, filteredFrom, filterHash, readFiltered } from './readFiltered.ts';

/**
 * How long a call waits at most between two looks at what time has changed, and at least after a look at changes of which
 * none passed.
 */
const LOOK_MS = 1_000;

type Caller = Pick<KeyState, 'id' | 'accountId' | 'worldIds'>;
type Read = DevicesRead & { readonly filtered: FilteredRead };

interface FilteredQuery extends Gathering {
  readonly cursor: string | null;
  readonly filter: DeviceFilter;
  readonly limit: number;
  readonly waitMs: number;
}

/** Where a call reads on. `server`: where its cursor was opened. */
interface Place {
  readonly read: Read;
  readonly server: ServerState;
}

/** A page, and whether it contains anything. */
interface Found extends Place {
  readonly page: FeedPage;
  readonly hasNews: boolean;
}

/** Devices that pass filters and have changed, or begin or cease to pass, since a cursor: from memory. */
export class FilteredFeed {
  readonly #ports: FeedPorts;

  constructor(ports: FeedPorts) {
    this.#ports = ports;
  }

  /** The next page, made in turns. Rejects when Postgres is needed for it and cannot be asked. */
  async next(caller: Caller, query: FilteredQuery): Promise<FeedAnswer> {
    const { clock, follower } = this.#ports;
    const untilMs = clock() + query.waitMs;
    let place = await this.#begin(caller, query);
    if (typeof place === 'string') return place;
    if (query.gatherMs > 0) {
      const outcome = await gather(this.#ports, caller, query);
      if (outcome === 'full') return 'crowded';
      // Nobody has looked whether there is more.
      if (outcome === 'ended') return this.#empty(caller, place, true);
    }
    const caught = await catchUpWith(this.#ports, query.cursor, caller, place.read);
    if (caught === 'expired') return 'expired';
    for (let wasInVain = false, isFollowed = false; ; ) {
      const steps = this.#pageSteps(caller, query, place);
      const found = await this.#ports.turns.run(`changes of ${caller.accountId}`, steps);
      if (found === 'cut' && !isFollowed) {
        isFollowed = true;
        await followFirst(follower);
        continue;
      }
      if (typeof found === 'string') return found === 'cut' ? this.#empty(caller, place, true) : found;
      place = found;
      if (found.hasNews || clock() >= untilMs) return found.page;
      found.page.handover?.done();
      const outcome = await this.#wait(caller, query, place, untilMs, wasInVain);
      if (outcome === 'crowded') return outcome;
      if (outcome === 'none' || outcome === 'ended') return this.#empty(caller, place, false);
      wasInVain = outcome === 'again' && !wasInVain;
    }
  }

  async #begin(
    caller: Caller,
    { cursor: text, filter }: FilteredQuery,
  ): Promise<Place | 'malformed' | 'expired' | 'other_filters'> {
    const { cursors, follower, clock } = this.#ports;
    const { followed, server } = follower.applied;
    if (text === null)
      return { read: { ...firstRead(followed), filtered: filteredFrom(filter, clock()) }, server };
    const cursor = await cursors.openMet(text, caller, follower);
    if (typeof cursor === 'string') return cursor;
    const { devices } = cursor;
    if (devices === null) return 'malformed';
    const { filtered } = devices;
    if (filtered?.hash !== filterHash(filter) || filtered === undefined) return 'other_filters';
    return { read: { ...devices, filtered }, server: cursor.server };
  }

  *#pageSteps(
    caller: Caller,
    { filter, limit }: FilteredQuery,
    { read, server }: Place,
  ): Steps<Found | 'cut' | 'expired' | 'unread'> {
    const { unread, cursors, follower, clock } = this.#ports;
    const { accountId, worldIds } = caller;
    if (!unread.hasRoom(accountId)) return 'unread';
    let readOn = server;
    const view = (): FleetView | null => {
      const isKept = cursors.isKept(readOn);
      if (!isKept || !read.seen.sees(this.#ports.fleet.removalHorizonXid(worldIds))) return null;
      readOn = follower.applied.server;
      return this.#view;
    };
    const nowMs = clock();
    const page = yield* readFiltered(view, worldIds, read, filter, limit, nowMs);
    if (page === null) return 'expired';
    if (page.isCut && page.items.length === 0) return 'cut';
    const { hasMore } = page;
    const place = { read: { ...page.read, filtered: page.read.filtered ?? read.filtered }, server: readOn };
    const end = { cursor: cursors.seal(caller, place.read, null, readOn), hasMore };
    const bytes = yield* pageBytes(page.items, (item) => this.#text(item, nowMs), end);
    const hasNews = page.items.length > 0 || hasMore;
    // Too small to be counted as unread.
    const made = page.items.length === 0 ? { bytes, handover: null } : unread.page(accountId, bytes);
    return { ...place, page: made, hasNews };
  }

  get #view(): FleetView {
    const { fleet, follower } = this.#ports;
    return { fleet, followed: follower.applied.followed, own: follower.applied.own };
  }

  #text({ item, isLeft }: FilteredItem, nowMs: number): string {
    return isLeft && item.device !== null
      ? leftDeviceJson(item.device.imei)
      : this.#ports.texts.device(item, nowMs);
  }

  #empty(caller: Caller, { read, server }: Place, hasMore: boolean): FeedPage {
    const cursor = this.#ports.cursors.seal(caller, read, null, server);
    return { bytes: inOneGo(pageBytes([], String, { cursor, hasMore })), handover: null };
  }

  /**
   * Until something is new, or time may have changed something. `isDeaf`: changes are not told, since those of a busy fleet
   * that do not pass would have every call look again and again.
   */
  async #wait(
    caller: Caller,
    { filter, whenLeft }: FilteredQuery,
    { read }: Place,
    untilMs: number,
    isDeaf: boolean,
  ): Promise<PollOutcome | 'none' | 'crowded'> {
    const { polls, clock } = this.#ports;
    const looksAgain = isDeaf || ageLimitsMs(filter).length > 0;
    const forMs = looksAgain ? Math.min(untilMs, clock() + LOOK_MS) : untilMs;
    const followed = isDeaf ? { ...caller, worldIds: [] } : caller;
    const serve = (): void => void polls.answer([...group.polls], (poll) => poll.outcome.resolve('again'));
    const group: PollGroup = new PollGroup(new Map(), '', followed, 'devices', null, serve);
    const poll = new LongPoll(group, caller.id, forMs);
    const joined = polls.join(poll);
    if (joined !== 'in') return joined === 'full' ? 'crowded' : 'none';
    whenLeft?.(() => polls.leave(poll));
    // What came while the page was made has not been sent to anybody yet.
    if (!isDeaf && hasChanges(this.#view, caller.worldIds, read)) polls.wake(group);
    return poll.outcome.promise;
  }
}
