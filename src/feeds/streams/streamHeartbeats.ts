import type { LiveChunk } from '../../http/answer.ts';
import type { FeedPorts } from '../longPolls.ts';
import type { StreamGroup } from './streamGroup.ts';
import { heaviest, type StreamReader } from './streamReader.ts';

const TICK_MS = 25;
/** Every reader is visited once in this many ticks, so that a tick costs little with any number of them. */
const TICKS_PER_ROUND = 10;
/** How often readers are told of devices that begin or cease to be shown because time passes. */
const TICKS_PER_AGING = 40;
const HEARTBEAT_MS = 10_000;
/** A reader that takes nothing for this long is cut off; it comes back with its cursor. */
const STALL_LIMIT_MS = 15_000;
/** A reader that has not taken the end of its stream after this many visits is cut off. */
const LINGER_VISITS = 40;
/** While Postgres cannot be read, a key counts as valid for this long. */
const TRUST_MS = 60_000;
/** Sent when a pod stops or another server has taken over: come back at once. */
export const COME_BACK = 'retry: 500\n\n';

/** Visits all readers of streams, a few at a time: sends heartbeats, and ends streams that are over or stalled. */
export class StreamHeartbeats {
  readonly #ports: FeedPorts;
  /** In the order of their last visits. */
  readonly #readers: Map<StreamReader, StreamGroup>;
  readonly #age: () => void;
  /** Those for which memory was held when they were visited. */
  readonly #heavy = new Set<StreamReader>();
  #timer: NodeJS.Timeout | null = null;
  #ticks = 0;

  /** `age` is called every second. */
  constructor(ports: FeedPorts, readers: Map<StreamReader, StreamGroup>, age: () => void) {
    this.#ports = ports;
    this.#readers = readers;
    this.#age = age;
  }

  /** Must be called when there is a reader. The timer ends when there are none. */
  run(): void {
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** Must be called when a reader has gone. */
  forget(reader: StreamReader): void {
    this.#heavy.delete(reader);
    if (this.#readers.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #tick(): void {
    const { clock, follower, polls } = this.#ports;
    const nowMs = clock();
    const isLost = follower.applied.writesLagMs() > TRUST_MS;
    follower.applied.noteReader();
    if (++this.#ticks % TICKS_PER_ROUND === 0) for (const reader of heaviest(this.#heavy)) reader.cut();
    if (this.#ticks % TICKS_PER_AGING === 0) this.#age();
    let visits = Math.ceil(this.#readers.size / TICKS_PER_ROUND);
    // Spreads out the heartbeats of readers that were opened together.
    let beatsLeft = Math.ceil(this.#readers.size / 200) + 5;
    // Made once for all of a group.
    const beats = new Map<StreamGroup, LiveChunk>();
    for (const [reader, group] of this.#readers) {
      if (visits-- === 0) break;
      this.#readers.delete(reader);
      this.#readers.set(reader, group);
      this.#endIfOver(reader, group, nowMs, isLost);
      if (nowMs - reader.lastBeatMs < HEARTBEAT_MS || beatsLeft === 0) continue;
      beatsLeft--;
      reader.lastBeatMs = nowMs;
      if (!group.members.has(reader) || reader.isFull || group.isFlushing || group.isOver) continue;
      let beat = beats.get(group);
      if (beat === undefined) {
        group.note(polls.touched);
        beat = group.heartbeat();
        beats.set(group, beat);
      }
      reader.write(beat);
    }
  }

  #endIfOver(reader: StreamReader, group: StreamGroup, nowMs: number, isLost: boolean): void {
    if (reader.heldBytes > 0) this.#heavy.add(reader);
    else this.#heavy.delete(reader);
    const isStalled = reader.stalledSinceMs !== null && nowMs - reader.stalledSinceMs > STALL_LIMIT_MS;
    if (isStalled || (reader.isClosed && ++reader.visitsSinceEnd > LINGER_VISITS)) reader.cut();
    else if (isLost || group.isOver) reader.end(COME_BACK);
    else if (reader.isOver(nowMs)) reader.end('');
  }
}
