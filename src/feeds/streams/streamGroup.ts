import type { KeyState } from '../../access/keyState.ts';
import { isSameServer, type Server } from '../../changelog/servers.ts';
import type { Snapshot } from '../../changelog/snapshot.ts';
import type { Changed } from '../../devices/changes/worldChanges.ts';
import type { Steps, WorkTurns } from '../../lib/workTurns.ts';
import { inTurns } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import type { Cursors } from '../cursors.ts';
import type { RecordedEvent } from '../eventFeed.sql.ts';
import type { EventFeed } from '../eventFeed.ts';
import type { EventsPlace } from '../eventsPlace.ts';
import { type HeldFleet, isCurrent, readDevices, readUpTo } from '../readDevices.ts';
import type { DevicesRead, EventsRead } from '../readerCursor.ts';
import type { Touched } from '../waitRoom.ts';
import type { StreamPlace, StreamReader } from './streamReader.ts';

/** Items of one write: what is made at once for a reader is some hundred kilobytes at most. */
const DEVICES_PER_WRITE = 250;
const EVENTS_PER_WRITE = 250;
/** Some five hundred microseconds of work. */
const EVENTS_PER_STEP = 16;

/** Writes items as lines of a stream; `id` is the cursor behind the item. */
export interface StreamFormat {
  device(item: Changed, id: string, nowMs: number): string;
  event(event: RecordedEvent, id: string): string;
  heartbeat(id: string, nowMs: number): string;
}

export interface GroupPorts {
  readonly held: HeldFleet;
  readonly cursors: Cursors;
  readonly eventFeed: EventFeed;
  readonly reads: (accountId: number) => Sql;
  readonly server: () => Server;
  readonly format: StreamFormat;
  readonly turns: Pick<WorkTurns<number>, 'once' | 'run'>;
  readonly catchUp: () => Promise<void>;
  readonly nowMs: () => number;
}

/** A piece of the stream, with the place behind it. */
export interface StreamPiece {
  readonly bytes: Buffer;
  readonly place: StreamPlace;
}

const NONE_OWN: ReadonlySet<number> = new Set();
const NO_FILTERS = { type: null, direction: null, imei: null } as const;

/**
 * Readers of one account that want the same. What is new is made into bytes once for all of them, from one place in the
 * feed to the next; a reader that comes, or could not keep up, is first brought to the place of the others.
 */
export class StreamGroup {
  readonly #ports: GroupPorts;
  /** Places are meaningful there only. */
  readonly #server: Server;
  readonly caller: Pick<KeyState, 'accountId' | 'worldIds'>;
  /** Those who are at the place of the group. */
  readonly members = new Set<StreamReader>();
  /** Those who are to be brought there with the next flush. */
  readonly joiners = new Set<StreamReader>();
  place: StreamPlace;
  /** How many have it open: members, joiners, and those who are behind. */
  readerCount = 0;
  hasNewDevices = false;
  hasNewEvents = false;
  isFlushing = false;
  /** It was served just now, and others come first. */
  isResting = false;

  constructor(ports: GroupPorts, caller: Pick<KeyState, 'accountId' | 'worldIds'>, place: StreamPlace) {
    this.#ports = ports;
    this.#server = ports.server();
    this.caller = caller;
    this.place = place;
  }

  get isIdle(): boolean {
    return !this.hasNewDevices && !this.hasNewEvents && !this.isFlushing && this.joiners.size === 0;
  }

  /** Another server has taken over: readers must connect again, so that what they have seen is checked. */
  get isOver(): boolean {
    return !isSameServer(this.#server, this.#ports.server());
  }

  get seen(): Snapshot | null {
    return this.place.devices?.seen ?? this.place.events?.seen ?? null;
  }

  /** Remembers what is new in its worlds. */
  note(touched: Touched): void {
    for (const worldId of this.caller.worldIds) {
      if (touched.devices.has(worldId)) this.hasNewDevices = true;
      if (touched.events.has(worldId)) this.hasNewEvents = true;
    }
  }

  /** Nothing is new up to there: moves the place without looking. */
  moveOn(followed: Snapshot): void {
    if (this.isIdle && this.seen !== null && followed.contains(this.seen))
      this.place = placeAt(this.place, followed);
  }

  cursor(place = this.place): string {
    const { cursors, server } = this.#ports;
    if (this.isOver) throw new Error('another server has taken over');
    return cursors.seal(this.caller, place.devices, place.events, server());
  }

  /**
   * What is new between a place and a snapshot, in pieces; positions in between are left out, events never.
   * `wants`: which parts may have something new. `atOnce`: the first page of devices is made at once.
   */
  async *pieces(
    from: StreamPlace,
    upTo: Snapshot,
    wants: { readonly devices: boolean; readonly events: boolean },
    atOnce = true,
  ): AsyncGenerator<StreamPiece, void, void> {
    const { turns, catchUp } = this.#ports;
    let place = from;
    let isAtOnce = atOnce;
    const isOpen = place.devices !== null && (place.devices.listedTo !== null || place.devices.open !== null);
    if (place.devices !== null && (wants.devices || isOpen)) {
      let isCut = false;
      for (let hasMore = true, devices: DevicesRead = place.devices; hasMore; ) {
        // The list is of the present; what has changed since comes after it.
        const followed = devices.listedTo === null ? upTo : this.#ports.held.followed;
        const read = () => {
          const page = readDevices(
            this.#heldUpTo(followed),
            this.caller.worldIds,
            devices,
            DEVICES_PER_WRITE,
          );
          const within = this.cursor({ ...place, devices: page.begun });
          devices = page.read;
          ({ hasMore, isCut } = page);
          place = { ...place, devices };
          return page.items.length === 0 ? null : this.#devices(page.items, within, this.cursor(place));
        };
        // What changes at a time is one page; more is read in turns with everybody else's work.
        const bytes = isAtOnce ? read() : await turns.once(this.caller.accountId, read);
        isAtOnce = false;
        if (bytes !== null) yield { bytes, place };
        if (isCut) await catchUp();
      }
    }
    if (place.devices !== null && isCurrent(this.#heldUpTo(upTo), place.devices))
      place = { ...place, devices: readUpTo(upTo) };
    if (place.events !== null && (wants.events || place.events.open !== null)) {
      yield* this.#events(place, upTo);
    }
  }

  /** What this pod has committed counts when it is followed, so that all of a group are sent the same. */
  #heldUpTo(followed: Snapshot): HeldFleet {
    return { fleet: this.#ports.held.fleet, followed, own: NONE_OWN };
  }

  async *#events(from: StreamPlace, upTo: Snapshot): AsyncGenerator<StreamPiece, void, void> {
    const { eventFeed, reads, turns } = this.#ports;
    const { accountId, worldIds } = this.caller;
    let place = from;
    // Between equal snapshots is nothing: many streams that are opened at once need not ask.
    const isThere = from.events?.open === null && from.events.seen.equals(upTo);
    for (let read = isThere ? null : from.events; read !== null; ) {
      const at: EventsPlace = { read, server: this.#server };
      const step = await eventFeed.step(reads(accountId), worldIds, at, NO_FILTERS, EVENTS_PER_WRITE, upTo);
      if (typeof step === 'string') throw new Error('another server has taken over');
      const text = await inTurns(turns, accountId, this.#eventText(step.events, place, read, upTo));
      place = { ...place, events: step.read };
      if (text !== '') yield { bytes: Buffer.from(text), place };
      const isDone = !step.hasMore && (step.read.seen.equals(upTo) || step.read === read);
      read = isDone ? null : step.read;
    }
  }

  /** Each event has a cursor of its own, which is encrypted: a step makes a few. */
  *#eventText(
    events: readonly RecordedEvent[],
    place: StreamPlace,
    { seen, open, fromMs }: EventsRead,
    upTo: Snapshot,
  ): Steps<string> {
    let text = '';
    for (const [n, event] of events.entries()) {
      if (n > 0 && n % EVENTS_PER_STEP === 0) yield;
      const at: EventsRead = { seen, open: { upTo: open?.upTo ?? upTo, after: event }, fromMs };
      text += this.#ports.format.event(event, this.cursor({ ...place, events: at }));
    }
    return text;
  }

  /** The last item has the cursor behind all of them; the others that within them, since order is only known to the page. */
  #devices(items: readonly Changed[], within: string, behind: string): Buffer {
    const { format, nowMs } = this.#ports;
    const atMs = nowMs();
    let text = '';
    items.forEach((item, n) => {
      text += format.device(item, n === items.length - 1 ? behind : within, atMs);
    });
    return Buffer.from(text);
  }
}

/** A place with everything sent up to a snapshot. */
export function placeAt(place: StreamPlace, upTo: Snapshot): StreamPlace {
  return {
    devices: place.devices === null ? null : readUpTo(upTo),
    events: place.events === null ? null : { seen: upTo, open: null, fromMs: null },
  };
}
