import { performance } from 'node:perf_hooks';
import type { KeyState } from '../../access/credentials.ts';
import type { Snapshot } from '../../changelog/appliedTransactions.memory.ts';
import { isSameServer, type Server } from '../../changelog/serverStarts.ts';
import type { Changed } from '../../devices/worldChanges.memory.ts';
import type { LiveChunk } from '../../http/answer.ts';
import { liveChunk } from '../../http/longBody.ts';
import { formatIso } from '../../lib/time.ts';
import { inTurns, type Steps } from '../../lib/workTurns.ts';
import type { DevicesRead, EventsRead } from '../cursors.ts';
import type { RecordedEvent } from '../eventFeed.sql.ts';
import type { FeedPorts, Touched } from '../longPolls.ts';
import {
  type DevicesPage,
  type FleetView,
  isCurrent,
  isFirstRead,
  readDevices,
  readUpTo,
} from '../readDevices.ts';
import { DeviceMessages, message } from './deviceMessages.ts';
import type { StreamCursor, StreamReader } from './streamReader.ts';

/** Items of one write: what is made at once for a reader is some hundred kilobytes at most. */
const DEVICES_PER_WRITE = 250;
const EVENTS_PER_WRITE = 250;
/** Some five hundred microseconds of work. */
const EVENTS_PER_STEP = 16;
/** The longest list of devices that a view begins with. A longer one is not kept: pages of all devices are read instead. */
const LISTED_IDS_MAX = 50_000;

/** A piece of the stream, with the cursor behind it. */
export interface StreamPiece {
  /** What a reader is to be sent of it; null: nothing. */
  chunkFor(reader: StreamReader): LiveChunk | null;
  readonly cursor: StreamCursor;
}

/** Which parts of the stream may have something new. */
interface Wants {
  readonly devices: boolean;
  readonly events: boolean;
  /** Something may have changed because time has passed. */
  readonly aged: boolean;
}
export const ALL_PARTS: Wants = { devices: true, events: true, aged: true };

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
  /** Whether its readers have views: each is sent other devices. */
  readonly #isOfViews: boolean;
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
  hasAged = false;
  isFlushing = false;
  /** It was served just now, and others come first. */
  isResting = false;
  /** What the pod had done by then: since, it was busy with other things. */
  restedFrom = performance.eventLoopUtilization();
  /** The share of its time that it was of late, 0 to 1. */
  busy = 0;

  constructor(
    ports: FeedPorts,
    name: string,
    { accountId, worldIds }: Pick<KeyState, 'accountId' | 'worldIds'>,
    cursor: StreamCursor,
    isOfViews = false,
  ) {
    this.#ports = ports;
    this.name = name;
    this.#isOfViews = isOfViews;
    this.#server = ports.follower.applied.server;
    this.caller = { accountId, worldIds };
    this.cursor = cursor;
  }

  get worldIds(): readonly number[] {
    return this.caller.worldIds;
  }

  get isIdle(): boolean {
    const { hasNewDevices, hasNewEvents, hasAged, isFlushing, joiners } = this;
    return !hasNewDevices && !hasNewEvents && !hasAged && !isFlushing && joiners.size === 0;
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
  heartbeat(): LiveChunk {
    const { follower, clock } = this.#ports;
    const { followed } = follower.applied;
    const seen = this.cursor.devices?.seen ?? this.cursor.events?.seen;
    if (this.isIdle && seen !== undefined && followed.contains(seen))
      this.cursor = cursorUpTo(this.cursor, followed);
    return liveChunk(message('heartbeat', this.#seal(this.cursor), `{"at":"${formatIso(clock())}"}`));
  }

  #checkServer(): void {
    if (this.isOver) throw new Error('another server has taken over');
  }

  /** The ages of points at which time alone may change something for its members. */
  get ageLimitsMs(): readonly number[] {
    if (!this.#isOfViews) return [];
    return [...new Set([...this.members].flatMap(({ viewer }) => viewer?.ageLimitsMs ?? []))];
  }

  /** The devices of a view are all sent when it is opened again, so its cursors say nothing of them. */
  #seal({ devices: read, events }: StreamCursor): string {
    const { cursors, follower } = this.#ports;
    const devices = this.#isOfViews ? null : read;
    this.#checkServer();
    return cursors.seal(this.caller, devices, events, follower.applied.server);
  }

  /**
   * What is new between a cursor and a snapshot, in pieces; positions in between are left out, events never.
   * `atOnce`: the first page of devices is made at once. `reader`: the pieces are for this one only.
   */
  async *pieces(
    from: StreamCursor,
    upTo: Snapshot,
    wants: Wants,
    { atOnce = true, reader = null }: { atOnce?: boolean; reader?: StreamReader | null } = {},
  ): AsyncGenerator<StreamPiece, void, void> {
    let cursor = from;
    const { events } = from;
    if (reader?.viewer && from.devices !== null && isFirstRead(from.devices)) {
      for await (const piece of this.#firstPieces(from, reader)) {
        cursor = piece.cursor;
        yield piece;
      }
    }
    const { devices } = cursor;
    if (devices !== null && (wants.devices || devices.listedTo !== null || devices.open !== null)) {
      for await (const piece of this.#devicePieces(cursor, devices, upTo, atOnce)) {
        cursor = piece.cursor;
        if (piece.chunkFor !== null) yield { chunkFor: piece.chunkFor, cursor };
      }
    }
    if (cursor.devices !== null && isCurrent(this.#viewUpTo(upTo), cursor.devices))
      cursor = { ...cursor, devices: readUpTo(upTo) };
    const limitsMs = reader === null ? this.ageLimitsMs : (reader.viewer?.ageLimitsMs ?? []);
    if (devices !== null && wants.aged && limitsMs.length > 0) {
      const agedToMs = Math.max(this.#ports.clock(), cursor.agedToMs);
      yield* this.#agedPieces(cursor, agedToMs, limitsMs);
      cursor = { ...cursor, agedToMs };
      yield { chunkFor: nothing, cursor };
    }
    if (events !== null && (wants.events || events.open !== null))
      yield* this.#eventPieces(cursor, events, upTo);
  }

  /** The devices that a view begins with, unless they are too many for a list; then nothing. */
  async *#firstPieces(from: StreamCursor, { viewer }: StreamReader): AsyncGenerator<StreamPiece, void, void> {
    const { turns, follower, fleet, clock } = this.#ports;
    const { accountId, worldIds } = this.caller;
    if (viewer === null) return;
    // What changes from here on is sent after the list.
    const devices = readUpTo(follower.applied.followed);
    const search = fleet.living.ids(worldIds, viewer.region, viewer.filter, clock(), LISTED_IDS_MAX);
    const ids = await inTurns(turns, accountId, search);
    if (ids === null) return;
    viewer.waiting = ids;
    yield* this.#piecesOf(ids, from);
    viewer.waiting = [];
    yield { chunkFor: nothing, cursor: { ...from, devices } };
  }

  /** Devices that are shown, or shown no longer, because their newest points have come to be older than one of these ages. */
  async *#agedPieces(
    from: StreamCursor,
    toMs: number,
    limitsMs: readonly number[],
  ): AsyncGenerator<StreamPiece, void, void> {
    const { turns, fleet } = this.#ports;
    const { accountId, worldIds } = this.caller;
    const ids: number[] = [];
    const search = fleet.living.aged(worldIds, limitsMs, from.agedToMs, toMs, (id) => ids.push(id));
    await inTurns(turns, accountId, search);
    yield* this.#piecesOf(ids, from);
  }

  /** Devices as they are now, for those readers who are to be told of them and were not yet. */
  async *#piecesOf(ids: readonly number[], cursor: StreamCursor): AsyncGenerator<StreamPiece, void, void> {
    const { turns, fleet, texts, clock } = this.#ports;
    const { accountId, worldIds } = this.caller;
    for (let at = 0; at < ids.length; at += DEVICES_PER_WRITE) {
      const messages = await turns.once(accountId, () => {
        const items = fleet.living.shown(worldIds, ids.slice(at, at + DEVICES_PER_WRITE));
        const sent = { items, id: this.#seal(cursor), nowMs: clock(), areRepeated: true };
        return new DeviceMessages({ ...sent, isEdited: () => false }, texts);
      });
      yield { chunkFor: ({ viewer }) => viewer?.messagesOf(messages) ?? null, cursor };
    }
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
  ): AsyncGenerator<{ chunkFor: StreamPiece['chunkFor'] | null; cursor: StreamCursor }, void, void> {
    const { turns, follower } = this.#ports;
    const { accountId, worldIds } = this.caller;
    for (let devices = first, hasMore = true, isFirst = true; hasMore; isFirst = false) {
      // The list is of the present; what has changed since comes after it.
      const view = this.#viewUpTo(devices.listedTo === null ? upTo : follower.applied.followed);
      const read = () => {
        this.#checkServer();
        const page = readDevices(view, worldIds, devices, DEVICES_PER_WRITE);
        const cursor = { ...from, devices: page.read };
        const chunkFor = page.items.length === 0 ? null : this.#deviceChunk(page, from, cursor);
        return { page, chunkFor, cursor };
      };
      // What changes at a time is one page; more is read in turns with everybody else's work.
      const { page, chunkFor, cursor } = isFirst && atOnce ? read() : await turns.once(accountId, read);
      devices = page.read;
      hasMore = page.hasMore;
      yield { chunkFor, cursor };
      if (page.isCut) await follower.catchUp();
    }
  }

  /** The last item has the cursor behind all of them; the others have `begun`: only the page knows their order. */
  #deviceChunk(
    { items, begun }: DevicesPage,
    from: StreamCursor,
    behind: StreamCursor,
  ): StreamPiece['chunkFor'] {
    const { texts, clock } = this.#ports;
    const nowMs = clock();
    const within = this.#seal({ ...from, devices: begun });
    if (this.#isOfViews) {
      const isEdited = ({ editedXid }: Changed) => !begun.seen.sees(editedXid);
      const sent = { items, id: within, nowMs, areRepeated: false, isEdited };
      const messages = new DeviceMessages(sent, texts);
      return ({ viewer }) => viewer?.messagesOf(messages) ?? null;
    }
    const last = this.#seal(behind);
    let text = '';
    items.forEach((item, n) => {
      text += message('device', n === items.length - 1 ? last : within, texts.device(item, nowMs));
    });
    const chunk = liveChunk(text);
    return () => chunk;
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
      if (text !== '') {
        const chunk = liveChunk(text);
        yield { chunkFor: () => chunk, cursor };
      }
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

const nothing = (): null => null;

/** A cursor with everything sent up to a snapshot. */
export function cursorUpTo({ devices, events, agedToMs }: StreamCursor, upTo: Snapshot): StreamCursor {
  return {
    agedToMs,
    devices: devices === null ? null : readUpTo(upTo),
    events: events === null ? null : { seen: upTo, open: null, fromMs: null },
  };
}
