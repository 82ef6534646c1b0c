import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Keyring } from '../../access/authorizer.ts';
import { type KeyState, worldsKey } from '../../access/credentials.ts';
import type { Snapshot } from '../../changelog/appliedTransactions.memory.ts';
import { isSameServer, type Server } from '../../changelog/serverStarts.ts';
import type { StreamSink } from '../../http/answer.ts';
import { invariant } from '../../lib/errors.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import { type FeedPorts, GroupsByWorld, OpenCounts, type Touched } from '../longPolls.ts';
import { firstRead, isCurrent, readUpTo } from '../readDevices.ts';
import { ALL_PARTS, cursorUpTo, StreamGroup, type StreamPiece } from './streamGroup.ts';
import { COME_BACK, StreamHeartbeats } from './streamHeartbeats.ts';
import { type StreamCursor, StreamReader } from './streamReader.ts';
import { type DeviceView, Viewer } from './viewer.ts';

/** Open streams of one key on one pod, and of all keys of an account. */
export const STREAMS_PER_KEY = 10;
export const STREAMS_PER_ACCOUNT = 5_000;
/** What comes within this time is sent together. */
const GATHER_MS = 20;
/** How long first pages are made at once: with many groups in one world, the others' are made in turns. */
const AT_ONCE_MS = 1;
/**
 * How long a group rests, by the time that it took to serve it: the one where the event loop was busy for at most such a
 * share of the time, the other where it was for more than the higher one.
 */
const REST_SHARES = { idle: 0.25, busy: 11 };
const BUSY = { from: 0.2, to: 0.7 };
/** One rest is short and may have been a busy moment. */
const BUSY_HALF_LIFE_MS = 250;
const REST_MAX_MS = 600;
/** After Postgres could not be asked. */
const RETRY_MS = 1_000;

interface StreamPorts extends FeedPorts {
  readonly keyring: Pick<Keyring, 'onDropped'>;
  readonly log: { warn(fields: object, message: string): void };
}

export interface StreamRequest {
  readonly cursor: string | null;
  /** Begin with the present state of every device; without a cursor and a view only. */
  readonly withSnapshot: boolean;
  /** Which devices are shown, null: every one. A stream with a view begins with all of them, also at a cursor. */
  readonly view: DeviceView | null;
  readonly devices: boolean;
  readonly events: boolean;
}

/** Opened: `attach` begins to write. */
export type OpenedStream =
  | { readonly attach: (sink: StreamSink) => { close(): void } }
  | 'malformed'
  | 'expired'
  | 'too_many';

/**
 * All open streams of a pod. They are sent what the pod follows anyway: an idle stream costs a heartbeat every ten seconds,
 * for which one timer serves all, and no query.
 */
export class Streams {
  readonly #ports: StreamPorts;
  /** By what their readers want and may see. */
  readonly #groups = new Map<string, StreamGroup>();
  readonly #groupsByWorld: GroupsByWorld<StreamGroup>;
  readonly #readers = new Map<StreamReader, StreamGroup>();
  readonly #heartbeats: StreamHeartbeats;
  readonly #counts = new OpenCounts(STREAMS_PER_KEY, STREAMS_PER_ACCOUNT);
  /** Groups that have something to send. */
  readonly #due = new Set<StreamGroup>();
  #gathering: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(ports: StreamPorts) {
    this.#ports = ports;
    this.#groupsByWorld = new GroupsByWorld(ports.fleet.watch);
    this.#heartbeats = new StreamHeartbeats(ports, this.#readers, () => this.#age());
    ports.polls.onNews((touched, by) => {
      // What this pod has committed is sent when it is followed, in the order of all pods.
      if (by === 'log' && this.#readers.size > 0) this.#note(touched);
    });
    ports.keyring.onDropped((isDropped) => {
      for (const reader of this.#readers.keys())
        if (isDropped(reader.keyId, reader.accountId)) reader.end('');
    });
  }

  get size(): number {
    return this.#readers.size;
  }

  /** Rejects when Postgres is needed and cannot be asked. */
  async open(caller: KeyState, request: StreamRequest): Promise<OpenedStream> {
    const { applied } = this.#ports.follower;
    if (this.#counts.full(caller.id, caller.accountId) !== null) return 'too_many';
    applied.noteReader();
    const { server } = applied;
    const cursor = await this.#begin(caller, request);
    if (typeof cursor === 'string') return cursor;
    const view = cursor.devices === null ? null : request.view;
    const isLimited = caller.worldIds.groups !== undefined && cursor.devices !== null;
    invariant(!isLimited || view?.filter?.seen === caller.worldIds.groups?.names, 'its view is limited');
    return { attach: (sink) => this.#attach(caller, cursor, view, server, sink) };
  }

  /** Ends all streams; their readers go on elsewhere. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers.keys()) reader.end(COME_BACK);
  }

  /**
   * Where a stream begins: at its cursor, with the present state of every device, or with what comes next. `expired`:
   * something behind the cursor may be missing by now.
   */
  async #begin(
    caller: KeyState,
    { cursor, withSnapshot, view, ...wanted }: StreamRequest,
  ): Promise<StreamCursor | 'malformed' | 'expired'> {
    const { cursors, clock, fleet, follower, reader } = this.#ports;
    const { applied } = follower;
    const opened = cursor === null ? null : await cursors.openMet(cursor, caller, follower);
    if (opened === 'malformed' || opened === 'expired') return opened;
    const hasSnapshot = withSnapshot || opened !== null || view !== null;
    const fresh = hasSnapshot ? firstRead(applied.followed) : readUpTo(applied.followed);
    // Behind a cursor of some of the devices, a reader lacks the others.
    const isOfAll = view === null && opened?.devices?.filtered === undefined;
    const known = isOfAll ? opened?.devices : null;
    const devices = wanted.devices ? (known ?? fresh) : null;
    const events = wanted.events ? (opened?.events ?? (await reader.begin(caller, null)).read) : null;
    // An answer is never older than its cursor.
    const begun = { devices, events, agedToMs: clock() };
    const isCaughtUp = () => isWithin(begun, applied.followed);
    if (!isCaughtUp()) await follower.catchUp();
    if (cursor !== null && typeof cursors.open(cursor, caller) === 'string') return 'expired';
    if (!isCaughtUp() && applied.isComplete && opened !== null) return 'expired';
    if (devices !== null && !devices.seen.sees(fleet.removalHorizonXid(caller.worldIds))) return 'expired';
    return begun;
  }

  #attach(
    caller: KeyState,
    cursor: StreamCursor,
    view: DeviceView | null,
    server: Server,
    sink: StreamSink,
  ): { close(): void } {
    const { follower, clock } = this.#ports;
    const group = this.#groupOf(caller, cursor, view !== null);
    const viewer = view === null ? null : new Viewer(view);
    const reader = new StreamReader(caller, cursor, sink, clock(), viewer);
    const { keyId, accountId } = reader;
    this.#readers.set(reader, group);
    group.readerCount++;
    this.#heartbeats.run();
    // Several were opened at once, or something has changed since the stream was opened.
    const isFull = this.#counts.full(keyId, accountId) !== null;
    const isIn = !isFull && !this.#isClosed && isSameServer(server, follower.applied.server);
    this.#counts.change(keyId, accountId, 1);
    if (!isIn) reader.end(COME_BACK);
    void this.#bringUp(reader, group);
    return { close: () => this.#leave(reader, group) };
  }

  /** A new group begins with everything sent up to what memory holds. */
  #groupOf(caller: KeyState, cursor: StreamCursor, isOfViews: boolean): StreamGroup {
    const { accountId, worldIds } = caller;
    const { devices, events } = cursor;
    const name = [accountId, worldsKey(worldIds), devices !== null, events !== null, isOfViews].join(' ');
    const present = this.#groups.get(name);
    if (present !== undefined && !present.isOver) return present;
    const { followed } = this.#ports.follower.applied;
    const group = new StreamGroup(this.#ports, name, caller, cursorUpTo(cursor, followed), isOfViews);
    this.#groups.set(name, group);
    this.#groupsByWorld.add(group);
    return group;
  }

  #leave(reader: StreamReader, group: StreamGroup): void {
    if (!this.#readers.delete(reader)) return;
    reader.isClosed = true;
    this.#counts.change(reader.keyId, reader.accountId, -1);
    group.members.delete(reader);
    group.joiners.delete(reader);
    this.#heartbeats.forget(reader);
    if (--group.readerCount > 0) return;
    if (this.#groups.get(group.name) === group) this.#groups.delete(group.name);
    this.#groupsByWorld.remove(group);
  }

  /** Sends a reader that is behind what it lacks, no faster than it reads; then it joins the others. */
  async #bringUp(reader: StreamReader, group: StreamGroup): Promise<void> {
    while (!reader.isClosed) {
      try {
        const { followed } = this.#ports.follower.applied;
        for await (const piece of group.pieces(reader.cursor, followed, ALL_PARTS, { reader })) {
          send(piece, reader);
          if (reader.isFull) await this.#drained(reader);
          if (reader.isClosed) return;
        }
        group.joiners.add(reader);
        this.#due.add(group);
        this.#gather();
        return;
      } catch (error) {
        if (this.#isClosed) return;
        this.#ports.log.warn({ err: error }, 'a stream cannot go on; trying again');
        await sleep(RETRY_MS);
      }
    }
  }

  async #drained(reader: StreamReader): Promise<void> {
    reader.stalledSinceMs = this.#ports.clock();
    await reader.drained();
    reader.stalledSinceMs = null;
  }

  #note(touched: Touched): void {
    for (const worldId of [...touched.devices, ...touched.events]) {
      for (const group of this.#groupsByWorld.of(worldId)) {
        group.note(touched);
        this.#due.add(group);
      }
    }
    if (this.#due.size > 0) this.#gather();
  }

  /** What readers with filters are shown changes while nothing happens. */
  #age(): void {
    for (const group of this.#groups.values()) {
      if (group.ageLimitsMs.length === 0) continue;
      group.hasAged = true;
      this.#due.add(group);
    }
    if (this.#due.size > 0) this.#gather();
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = null;
      const due = [...this.#due];
      this.#due.clear();
      const endMs = performance.now() + AT_ONCE_MS;
      for (const group of due) {
        if (group.readerCount === 0 || group.isIdle || group.isFlushing || group.isResting) continue;
        void this.#flush(group, performance.now() < endMs);
      }
    }, GATHER_MS);
  }

  /** Sends a group what is new up to what memory has now; `atOnce`: the first page is not made in turns. */
  async #flush(group: StreamGroup, atOnce: boolean): Promise<void> {
    const { polls, follower } = this.#ports;
    // Memory may have more than the groups were told of.
    group.note(polls.touched);
    const { followed } = follower.applied;
    const joiners = [...group.joiners].filter((reader) => isWithin(reader.cursor, followed));
    if (group.isOver) return;
    if (!isWithin(group.cursor, followed)) {
      this.#due.add(group);
      return;
    }
    group.busy = busyOfLate(group.busy, performance.eventLoopUtilization(group.restedFrom));
    const wants = { devices: group.hasNewDevices, events: group.hasNewEvents, aged: group.hasAged };
    const atMs = this.#ports.clock();
    const startMs = performance.now();
    let hasFailed = false;
    group.isFlushing = true;
    group.hasNewDevices = !follower.applied.isComplete;
    group.hasNewEvents = false;
    group.hasAged = false;
    try {
      for await (const piece of group.pieces(group.cursor, followed, wants, { atOnce })) {
        await this.#ports.turns.run(group.caller.accountId, this.#writeSteps(group, piece));
        group.cursor = piece.cursor;
      }
      const agedToMs = group.ageLimitsMs.length > 0 ? group.cursor.agedToMs : atMs;
      group.cursor = { ...cursorUpTo(group.cursor, followed), agedToMs };
      for (const reader of group.members) reader.cursor = group.cursor;
      for (const reader of joiners) await this.#join(reader, group, followed);
    } catch (error) {
      // A pod that stops has ended its streams, and its connections to Postgres after them.
      if (!this.#isClosed) this.#ports.log.warn({ err: error }, 'streams cannot go on; trying again');
      group.hasNewDevices ||= wants.devices;
      group.hasNewEvents ||= wants.events;
      group.hasAged ||= wants.aged;
      hasFailed = true;
    } finally {
      group.isFlushing = false;
      const forMs = restMs(performance.now() - startMs, group.busy);
      group.restedFrom = performance.eventLoopUtilization();
      this.#rest(group, hasFailed ? RETRY_MS : forMs);
    }
  }

  /** Positions that change during the rest are sent once, as they are at its end. */
  #rest(group: StreamGroup, forMs: number): void {
    const resume = (): void => {
      group.isResting = false;
      if (group.readerCount === 0 || group.isIdle) return;
      this.#due.add(group);
      this.#gather();
    };
    if (forMs > GATHER_MS) {
      group.isResting = true;
      setTimeout(resume, forMs).unref();
    } else {
      resume();
    }
  }

  *#writeSteps(group: StreamGroup, piece: StreamPiece): Steps<void> {
    const pace = new Pace();
    for (const reader of group.members) {
      if (pace.isDue()) yield* pace.pause();
      if (reader.isFull) {
        // It was sent everything up to its cursor; the rest is made for it alone.
        group.members.delete(reader);
        void this.#drained(reader).then(() => (reader.isClosed ? undefined : this.#bringUp(reader, group)));
        continue;
      }
      send(piece, reader);
    }
  }

  async #join(reader: StreamReader, group: StreamGroup, followed: Snapshot): Promise<void> {
    for await (const piece of group.pieces(reader.cursor, followed, ALL_PARTS, { reader }))
      send(piece, reader);
    reader.cursor = group.cursor;
    group.joiners.delete(reader);
    if (!reader.isClosed) group.members.add(reader);
  }
}

/**
 * How long a group rests that was served for so long: a quarter of it where the pod has little else to do, so that readers
 * are told soon, and eleven times as long where it is busy, so that many readers take a twelfth of a core. `busy`: 0 to 1.
 */
export function restMs(servedMs: number, busy: number): number {
  const weight = Math.min(1, Math.max(0, (busy - BUSY.from) / (BUSY.to - BUSY.from)));
  const share = REST_SHARES.idle + weight * (REST_SHARES.busy - REST_SHARES.idle);
  return Math.min(REST_MAX_MS, share * servedMs);
}

/**
 * The share of the time that the event loop was busy for, with that since `restedFrom`: of two rests the longer counts
 * more.
 */
export function busyOfLate(
  before: number,
  { active, idle }: Pick<EventLoopUtilization, 'active' | 'idle'>,
): number {
  const kept = 2 ** (-(active + idle) / BUSY_HALF_LIFE_MS);
  return active === 0 ? kept * before : kept * before + (1 - kept) * (active / (active + idle));
}

function send({ chunkFor, cursor }: StreamPiece, reader: StreamReader): void {
  const chunk = chunkFor(reader);
  if (chunk !== null) reader.write(chunk);
  reader.cursor = cursor;
}

/** Whether everything that was sent is within this snapshot. */
function isWithin({ devices, events }: Omit<StreamCursor, 'agedToMs'>, followed: Snapshot): boolean {
  const areDevices = devices === null || isCurrent({ followed, own: new Set() }, devices);
  return areDevices && (events === null || followed.contains(events.open?.upTo ?? events.seen));
}
