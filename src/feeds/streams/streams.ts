import { setTimeout as sleep } from 'node:timers/promises';
import type { Keyring } from '../../access/keyring.memory.ts';
import type { KeyState } from '../../access/keyState.ts';
import type { LogFollower } from '../../changelog/appliedTransactions.memory.ts';
import { isSameServer, type Server } from '../../changelog/servers.ts';
import type { Snapshot } from '../../changelog/snapshot.ts';
import type { StreamSink } from '../../http/answer.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { StreamCounts, type Touched, type WaitRoom } from '../waitRoom.ts';
import { isBefore, type OpeningPorts, openingPlace, type StreamRequest } from './openingPlace.ts';
import { type GroupPorts, placeAt, type StreamGroup } from './streamGroup.ts';
import { StreamGroups } from './streamGroups.ts';
import { COME_BACK, StreamHeartbeats } from './streamHeartbeats.ts';
import { type StreamPlace, StreamReader } from './streamReader.ts';

/** What comes within this time goes out together. */
const GATHER_MS = 20;
/** How long first pages are made at once: with many groups in one world, the others' are made in turns. */
const AT_ONCE_MS = 1;
/** A group rests for so many times as long as it was served, so that many readers take a fraction of a core. */
const REST_SHARE = 4;
const REST_MAX_MS = 500;
/** Readers that are written to at once, in a fraction of a millisecond. */
const READERS_PER_STEP = 8;
/** After Postgres could not be asked. */
const RETRY_MS = 1_000;

export interface StreamPorts extends Omit<GroupPorts, 'nowMs'>, OpeningPorts {
  readonly room: WaitRoom;
  readonly clock: Clock;
  readonly keyring: Pick<Keyring, 'onDropped'>;
  readonly follower: LogFollower;
  readonly log: { warn(fields: object, message: string): void };
}

/** Opened: `attach` begins to write. */
export type OpenedStream =
  | { readonly attach: (sink: StreamSink) => { close(): void } }
  | 'malformed'
  | 'expired'
  | 'too_many';

/**
 * All open streams of a pod. They hang on what the pod follows anyway: an idle stream costs a heartbeat every ten seconds,
 * for which one timer serves all, and no query.
 */
export class Streams {
  readonly #ports: StreamPorts;
  readonly #groups: StreamGroups;
  readonly #readers = new Map<StreamReader, StreamGroup>();
  readonly #heartbeats: StreamHeartbeats;
  readonly #counts = new StreamCounts();
  /** Groups that have something to send. */
  readonly #due = new Set<StreamGroup>();
  #gathering: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(ports: StreamPorts) {
    this.#ports = ports;
    this.#groups = new StreamGroups({ ...ports, nowMs: ports.clock }, ports.held.fleet.watch);
    this.#heartbeats = new StreamHeartbeats(ports, this.#readers);
    ports.room.onNews((touched, by) => {
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
    const { follower } = this.#ports;
    if (!this.#counts.hasRoom(caller)) return 'too_many';
    follower.noteReader();
    const { server } = follower.applied;
    const place = await openingPlace(this.#ports, caller, request);
    if (typeof place === 'string') return place;
    return { attach: (sink) => this.#attach(caller, { ...place, server }, sink) };
  }

  /** Ends all streams; their readers go on elsewhere. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers.keys()) reader.end(COME_BACK);
  }

  #attach(
    caller: KeyState,
    { server, ...place }: StreamPlace & { server: Server },
    sink: StreamSink,
  ): { close(): void } {
    const { follower, clock } = this.#ports;
    const group = this.#groups.of(caller, place, follower.applied.followed);
    const { id: keyId, accountId, endsAtMs } = caller;
    const reader = new StreamReader({ keyId, accountId, endsAtMs, place }, sink, clock());
    this.#readers.set(reader, group);
    group.readerCount++;
    this.#heartbeats.run();
    // Several were opened at once, or something has changed since the place was looked up.
    const isIn =
      this.#counts.hasRoom(caller) && !this.#isClosed && isSameServer(server, follower.applied.server);
    this.#counts.add(caller);
    if (!isIn) reader.end(COME_BACK);
    void this.#bringUp(reader, group);
    return { close: () => this.#leave(reader, group) };
  }

  #leave(reader: StreamReader, group: StreamGroup): void {
    if (!this.#readers.delete(reader)) return;
    reader.isClosed = true;
    this.#counts.remove(reader);
    group.members.delete(reader);
    group.joiners.delete(reader);
    group.readerCount--;
    if (group.readerCount === 0) this.#groups.drop(group);
    this.#heartbeats.forget(reader);
  }

  /** Sends a reader that is behind what it lacks, no faster than it reads; then it joins the others. */
  async #bringUp(reader: StreamReader, group: StreamGroup): Promise<void> {
    while (!reader.isClosed) {
      try {
        const all = { devices: true, events: true };
        const { followed } = this.#ports.follower.applied;
        for await (const { bytes, place } of group.pieces(reader.place, followed, all)) {
          reader.write(bytes);
          reader.place = place;
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
    for (const group of this.#groups.touchedBy(touched)) this.#due.add(group);
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
    const { room, follower } = this.#ports;
    // Memory may have more than the room was notified of.
    group.note(room.touched);
    const { followed } = follower.applied;
    const joiners = [...group.joiners].filter((reader) => isBefore(reader.place, followed));
    if (group.isOver) return;
    if (!isBefore(group.place, followed)) {
      this.#due.add(group);
      return;
    }
    const wants = { devices: group.hasNewDevices, events: group.hasNewEvents };
    const startMs = performance.now();
    let hasFailed = false;
    group.isFlushing = true;
    group.hasNewDevices = !follower.applied.isComplete;
    group.hasNewEvents = false;
    try {
      for await (const { bytes, place } of group.pieces(group.place, followed, wants, atOnce)) {
        await this.#writeAll(group, bytes, place);
        group.place = place;
      }
      group.place = placeAt(group.place, followed);
      for (const reader of group.members) reader.place = group.place;
      for (const reader of joiners) await this.#join(reader, group, followed);
    } catch (error) {
      // A pod that stops has ended its streams, and its connections to Postgres after them.
      if (!this.#isClosed) this.#ports.log.warn({ err: error }, 'streams cannot go on; trying again');
      group.hasNewDevices ||= wants.devices;
      group.hasNewEvents ||= wants.events;
      hasFailed = true;
    } finally {
      group.isFlushing = false;
      const restMs = Math.min(REST_MAX_MS, REST_SHARE * (performance.now() - startMs));
      this.#rest(group, hasFailed ? RETRY_MS : restMs);
    }
  }

  /** Positions that change meanwhile are sent once, as they are at the end of it. */
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

  #writeAll(group: StreamGroup, bytes: Buffer, place: StreamPlace): Promise<void> {
    return this.#ports.turns.run(group.caller.accountId, this.#writeSteps(group, bytes, place));
  }

  *#writeSteps(group: StreamGroup, bytes: Buffer, place: StreamPlace): Steps<void> {
    let count = 0;
    for (const reader of group.members) {
      if (++count % READERS_PER_STEP === 0) yield;
      if (reader.isFull) {
        // It was sent everything up to its place; the rest is made for it alone.
        group.members.delete(reader);
        void this.#drained(reader).then(() => (reader.isClosed ? undefined : this.#bringUp(reader, group)));
        continue;
      }
      reader.write(bytes);
      reader.place = place;
    }
  }

  async #join(reader: StreamReader, group: StreamGroup, followed: Snapshot): Promise<void> {
    const all = { devices: true, events: true };
    for await (const { bytes, place } of group.pieces(reader.place, followed, all)) {
      reader.write(bytes);
      reader.place = place;
    }
    reader.place = group.place;
    group.joiners.delete(reader);
    if (!reader.isClosed) group.members.add(reader);
  }
}
