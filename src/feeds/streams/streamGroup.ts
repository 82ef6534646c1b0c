import type { KeyState } from '../../access/credentials.ts';
import type { Snapshot } from '../../changelog/appliedTransactions.memory.ts';
import { isSameServer, type Server } from '../../changelog/serverStarts.ts';
import type { Changed } from '../../devices/world.memory.ts';
import { formatIso } from '../../lib/time.ts';
import { inTurns, type Steps } from '../../lib/workTurns.ts';
import type { DevicesRead, EventsRead } from '../cursors.ts';
import type { RecordedEvent } from '../eventFeed.sql.ts';
import type { FeedPorts, Touched } from '../longPolls.ts';
import { type FleetView, isCurrent, readDevices, readUpTo } from '../readDevices.ts';
import type { StreamCursor, StreamReader } from './streamReader.ts';

/** Items of one write: what is made at once for a reader is some hundred kilobytes at most. */
const DEVICES_PER_WRITE = 250;
const EVENTS_PER_WRITE = 250;
/** Some five hundred microseconds of work. */
const EVENTS_PER_STEP = 16;

/** A piece of the stream, with the cursor behind it. */
export interface StreamPiece {
  readonly bytes: Buffer;
  readonly cursor: StreamCursor;
}

const NO_FILTERS = { type: null, direction: null, imei: null } as const;
const NO_TRANSACTIONS: ReadonlySet<number> = new Set();

/**
 * Readers of one account that want the same. What is new is made into bytes once for all of them, from one cursor to the
 * next; a reader that comes, or could not keep up, is first brought to the cursor of the others.
 */
export class StreamGroup {
  readonly #ports: FeedPorts;
  /** Cursors are meaningful there only. */
  readonly #server: Server;
  readonly name: string;
  readonly caller: Pick<KeyState, 'accountId' | 'worldIds'>;
  /** Those that have been sent everything up to the cursor of the group. */
  readonly members = new Set<StreamReader>();
  /** Those that become members with the next flush. */
  readonly joiners = new Set<StreamReader>();
  cursor: StreamCursor;
  /** How many have it open: members, joiners, and those that are behind. */
  readerCount = 0;
  hasNewDevices = false;
  hasNewEvents = false;
  isFlushing = false;
  /** It was served just now, and others come first. */
  isResting = false;

  constructor(
    ports: FeedPorts,
    name: string,
    { accountId, worldIds }: Pick<KeyState, 'accountId' | 'worldIds'>,
    cursor: StreamCursor,
  ) {
    this.#ports = ports;
    this.name = name;
    this.#server = ports.follower.applied.server;
    this.caller = { accountId, worldIds };
    this.cursor = cursor;
  }

  get worldIds(): readonly number[] {
    return this.caller.worldIds;
  }

  get isIdle(): boolean {
    return !this.hasNewDevices && !this.hasNewEvents && !this.isFlushing && this.joiners.size === 0;
  }

  /** Another server has taken over: readers must connect again, so that what they have seen is checked. */
  get isOver(): boolean {
    return !isSameServer(this.#server, this.#ports.follower.applied.server);
  }

  /** Remembers what is new in its worlds. */
  note(touched: Touched): void {
    for (const worldId of this.worldIds) {
      if (touched.devices.has(worldId)) this.hasNewDevices = true;
      if (touched.events.has(worldId)) this.hasNewEvents = true;
    }
  }

  /** A heartbeat for all members. An idle group first moves on without looking, so that cursors do not grow old. */
  heartbeat(): Buffer {
    const { follower, clock } = this.#ports;
    const { followed } = follower.applied;
    const seen = this.cursor.devices?.seen ?? this.cursor.events?.seen;
    if (this.isIdle && seen !== undefined && followed.contains(seen))
      this.cursor = cursorUpTo(this.cursor, followed);
    return Buffer.from(message('heartbeat', this.#seal(this.cursor), `{"at":"${formatIso(clock())}"}`));
  }

  #checkServer(): void {
    if (this.isOver) throw new Error('another server has taken over');
  }

  #seal({ devices, events }: StreamCursor): string {
    const { cursors, follower } = this.#ports;
    this.#checkServer();
    return cursors.seal(this.caller, devices, events, follower.applied.server);
  }

  /**
   * What is new between a cursor and a snapshot, in pieces; positions in between are left out, events never.
   * `wants`: which parts may have something new. `atOnce`: the first page of devices is made at once.
   */
  async *pieces(
    from: StreamCursor,
    upTo: Snapshot,
    wants: { readonly devices: boolean; readonly events: boolean },
    atOnce = true,
  ): AsyncGenerator<StreamPiece, void, void> {
    let cursor = from;
    const { devices, events } = from;
    if (devices !== null && (wants.devices || devices.listedTo !== null || devices.open !== null)) {
      for await (const piece of this.#devicePieces(from, devices, upTo, atOnce)) {
        cursor = piece.cursor;
        if (piece.bytes !== null) yield { bytes: piece.bytes, cursor };
      }
    }
    if (cursor.devices !== null && isCurrent(this.#viewUpTo(upTo), cursor.devices))
      cursor = { ...cursor, devices: readUpTo(upTo) };
    if (events !== null && (wants.events || events.open !== null))
      yield* this.#eventPieces(cursor, events, upTo);
  }

  /** What this pod has committed counts when it is followed, so that all of a group are sent the same. */
  #viewUpTo(followed: Snapshot): FleetView {
    return { fleet: this.#ports.fleet, followed, own: NO_TRANSACTIONS };
  }

  async *#devicePieces(
    from: StreamCursor,
    first: DevicesRead,
    upTo: Snapshot,
    atOnce: boolean,
  ): AsyncGenerator<{ bytes: Buffer | null; cursor: StreamCursor }, void, void> {
    const { turns, follower } = this.#ports;
    const { accountId, worldIds } = this.caller;
    for (let devices = first, hasMore = true, isFirst = true; hasMore; isFirst = false) {
      // The list is of the present; what has changed since comes after it.
      const view = this.#viewUpTo(devices.listedTo === null ? upTo : follower.applied.followed);
      const read = () => {
        this.#checkServer();
        const page = readDevices(view, worldIds, devices, DEVICES_PER_WRITE);
        const cursor = { ...from, devices: page.read };
        const bytes =
          page.items.length === 0
            ? null
            : this.#deviceBytes(page.items, { ...from, devices: page.begun }, cursor);
        return { page, bytes, cursor };
      };
      // What changes at a time is one page; more is read in turns with everybody else's work.
      const { page, bytes, cursor } = isFirst && atOnce ? read() : await turns.once(accountId, read);
      devices = page.read;
      hasMore = page.hasMore;
      yield { bytes, cursor };
      if (page.isCut) await follower.catchUp();
    }
  }

  /** The last item has the cursor behind all of them; the others have `begun`: only the page knows their order. */
  #deviceBytes(items: readonly Changed[], begun: StreamCursor, behind: StreamCursor): Buffer {
    const { texts, clock } = this.#ports;
    const nowMs = clock();
    const within = this.#seal(begun);
    const last = this.#seal(behind);
    let text = '';
    items.forEach((item, n) => {
      text += message('device', n === items.length - 1 ? last : within, texts.device(item, nowMs));
    });
    return Buffer.from(text);
  }

  async *#eventPieces(
    from: StreamCursor,
    first: EventsRead,
    upTo: Snapshot,
  ): AsyncGenerator<StreamPiece, void, void> {
    const { reader, turns } = this.#ports;
    // Between equal snapshots is nothing: many streams that are opened at once need not ask.
    if (first.open === null && first.seen.equals(upTo)) return;
    let cursor = from;
    for (let read = first; ; ) {
      const at = { read, server: this.#server };
      const page = await reader.next(this.caller, at, NO_FILTERS, EVENTS_PER_WRITE, upTo);
      if (typeof page === 'string') throw new Error('another server has taken over');
      const steps = this.#eventText(page.events, cursor, read, upTo);
      const text = await inTurns(turns, this.caller.accountId, steps);
      cursor = { ...cursor, events: page.read };
      if (text !== '') yield { bytes: Buffer.from(text), cursor };
      if (!page.hasMore && (page.read.seen.equals(upTo) || page.read === read)) return;
      read = page.read;
    }
  }

  /** Each event has a cursor of its own, which is encrypted: a step makes a few. */
  *#eventText(
    events: readonly RecordedEvent[],
    cursor: StreamCursor,
    { seen, open, fromMs }: EventsRead,
    upTo: Snapshot,
  ): Steps<string> {
    let text = '';
    for (const [n, event] of events.entries()) {
      if (n > 0 && n % EVENTS_PER_STEP === 0) yield;
      const read: EventsRead = { seen, open: { upTo: open?.upTo ?? upTo, after: event }, fromMs };
      const id = this.#seal({ ...cursor, events: read });
      text += message('fleet_event', id, this.#ports.texts.event(event));
    }
    return text;
  }
}

/** A server-sent event (HTML standard, section 9.2.5): a type, a cursor and one line of JSON. */
function message(type: 'device' | 'fleet_event' | 'heartbeat', id: string, data: string): string {
  return `event: ${type}\nid: ${id}\ndata: ${data}\n\n`;
}

/** A cursor with everything sent up to a snapshot. */
export function cursorUpTo({ devices, events }: StreamCursor, upTo: Snapshot): StreamCursor {
  return {
    devices: devices === null ? null : readUpTo(upTo),
    events: events === null ? null : { seen: upTo, open: null, fromMs: null },
  };
}
