import type { KeyState } from '../access/keyState.ts';
import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { isSameServer, type Server } from '../changelog/servers.ts';
import type { FeedPage, SharedPage } from './feedPage.ts';
import { type HeldFleet, hasChanges } from './readDevices.ts';
import type { DevicesRead } from './readerCursor.ts';
import type { UnreadAnswers } from './unreadAnswers.ts';
import { type Seat, WaitGroup, type WaitRoom } from './waitRoom.ts';

export type DeviceCaller = Pick<KeyState, 'id' | 'accountId' | 'worldIds'>;

export interface DeviceWaitPorts {
  readonly held: HeldFleet;
  readonly room: Pick<WaitRoom, 'sit' | 'wake' | 'answer'>;
  readonly unread: Pick<UnreadAnswers, 'hasRoom' | 'onRoom'>;
  readonly follower: Pick<LogFollower, 'applied'>;
  /** The next page for all who stand at a place. */
  readonly makePage: (group: DeviceGroup) => Promise<SharedPage | 'expired' | 'unread'>;
}

/** What a wait has come to. 'over': there was nothing. 'unread': there is something, and no room for it. */
export type WaitedPage = FeedPage | 'expired' | 'over' | 'unread';

export interface DeviceWaiting {
  /** Rejects with what making the page has failed with. */
  readonly outcome: Promise<WaitedPage>;
  cancel(): void;
}

interface Waiter {
  readonly seat: Seat;
  hasEnded: boolean;
  readonly resolve: (outcome: WaitedPage) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls that stand at the same place: of one account, with pages of one size, with nothing new for any of them. */
export class DeviceGroup extends WaitGroup {
  readonly name: string;
  readonly limit: number;
  readonly server: Server;
  read: DevicesRead;
  readonly waiters = new Set<Waiter>();
  readonly #serve: (group: DeviceGroup) => void;

  constructor(
    name: string,
    caller: DeviceCaller,
    place: Pick<DeviceGroup, 'limit' | 'server' | 'read'>,
    serve: (group: DeviceGroup) => void,
  ) {
    super(caller, 'devices');
    this.name = name;
    this.limit = place.limit;
    this.server = place.server;
    this.read = place.read;
    this.#serve = serve;
  }

  override serve(): void {
    this.#serve(this);
  }
}

/**
 * Waits for changes of devices. As long as nothing is new, those who came at different times stand at the same place, so
 * what then comes is looked up and made into a page once for all of them.
 */
export class DeviceWaits {
  readonly #ports: DeviceWaitPorts;
  readonly #groups = new Map<string, DeviceGroup>();
  /** Those that have something new, by accounts that have no room for it. */
  readonly #heldBack = new Map<number, Set<DeviceGroup>>();

  constructor(ports: DeviceWaitPorts) {
    this.#ports = ports;
    ports.unread.onRoom((accountId) => {
      const groups = this.#heldBack.get(accountId) ?? [];
      this.#heldBack.delete(accountId);
      for (const group of groups) ports.room.wake(group);
    });
  }

  /** Waits at a place where nothing is new; 'none' and 'full' as WaitRoom says. */
  wait(
    caller: DeviceCaller,
    limit: number,
    read: DevicesRead,
    forMs: number,
  ): DeviceWaiting | 'none' | 'full' {
    const { room, unread } = this.#ports;
    const group = this.#groupAt(caller, limit, read);
    const { promise: outcome, resolve, reject } = Promise.withResolvers<WaitedPage>();
    const onOver = (): void => {
      waiter.hasEnded = true;
      // Before the last one leaves it, which ends that.
      const isHeldBack = this.#heldBack.get(caller.accountId)?.has(group) === true;
      this.#leave(group, waiter);
      resolve(isHeldBack && !unread.hasRoom(caller.accountId) ? 'unread' : 'over');
    };
    const seat = room.sit(group, { keyId: caller.id, forMs, onOver });
    if (typeof seat === 'string') return seat;
    const waiter: Waiter = { seat, resolve, reject, hasEnded: false };
    group.waiters.add(waiter);
    this.#groups.set(group.name, group);
    const cancel = (): void => {
      if (!seat.leave()) return;
      waiter.hasEnded = true;
      this.#leave(group, waiter);
      resolve('over');
    };
    return { outcome, cancel };
  }

  #groupAt(caller: DeviceCaller, limit: number, read: DevicesRead): DeviceGroup {
    const { server } = this.#ports.follower.applied;
    const name = `${caller.accountId} ${caller.worldIds.join()} ${limit} ${read.also.join()}`;
    const present = this.#groups.get(name);
    if (present !== undefined && isSameServer(present.server, server) && this.#moveOn(present, read))
      return present;
    return new DeviceGroup(name, caller, { limit, server, read }, (group) => this.#serve(group));
  }

  /** Moves a group to the place of another caller if nothing lies between them. */
  #moveOn(group: DeviceGroup, read: DevicesRead): boolean {
    if (group.read.seen.equals(read.seen)) return true;
    const { held } = this.#ports;
    if (!read.seen.contains(group.read.seen) || hasChanges(held, group.worldIds, group.read)) return false;
    group.read = read;
    return true;
  }

  #serve(group: DeviceGroup): void {
    const { held, unread } = this.#ports;
    if (group.waiters.size === 0 || !this.#isNew(held, group)) return;
    if (unread.hasRoom(group.accountId)) void this.#answer(group);
    else this.#holdBack(group);
  }

  #holdBack(group: DeviceGroup): void {
    const groups = this.#heldBack.get(group.accountId);
    if (groups === undefined) this.#heldBack.set(group.accountId, new Set([group]));
    else groups.add(group);
  }

  /** Also what cannot be told any more is new: see DeviceFeed. */
  #isNew(held: HeldFleet, { worldIds, read }: DeviceGroup): boolean {
    return !read.seen.sees(held.fleet.removalHorizonXid(worldIds)) || hasChanges(held, worldIds, read);
  }

  /** Whoever comes from now on stands at another place. */
  async #answer(group: DeviceGroup): Promise<void> {
    const { room, makePage } = this.#ports;
    const waiters = [...group.waiters];
    for (const waiter of waiters) this.#leave(group, waiter);
    const tell = (answer: (waiter: Waiter) => void) =>
      room.answer(
        group.accountId,
        waiters.map((waiter) => () => {
          if (waiter.seat.leave()) answer(waiter);
        }),
      );
    try {
      const page = await makePage(group);
      if (page === 'unread') {
        this.#takeBack(group, waiters);
        return;
      }
      await tell(({ resolve }) => resolve(typeof page === 'string' ? page : page.take()));
      if (typeof page !== 'string') page.release();
    } catch (error) {
      await tell(({ reject }) => reject(error));
    }
  }

  /** Other pages of the account have taken its room meanwhile. */
  #takeBack(group: DeviceGroup, waiters: readonly Waiter[]): void {
    for (const waiter of waiters) if (!waiter.hasEnded) group.waiters.add(waiter);
    if (group.waiters.size === 0) return;
    if (this.#ports.unread.hasRoom(group.accountId)) this.#ports.room.wake(group);
    else this.#holdBack(group);
  }

  #leave(group: DeviceGroup, waiter: Waiter): void {
    group.waiters.delete(waiter);
    if (group.waiters.size > 0) return;
    if (this.#groups.get(group.name) === group) this.#groups.delete(group.name);
    const heldBack = this.#heldBack.get(group.accountId);
    heldBack?.delete(group);
    if (heldBack?.size === 0) this.#heldBack.delete(group.accountId);
  }
}
