import type { FeedCursor } from '../changelog/changes.sql.ts';
import { deletePod } from '../changelog/pods.sql.ts';
import type { LiveServer, ServerStarts } from '../changelog/serverMark.ts';
import type { Snapshot } from '../changelog/snapshot.ts';
import type { Applied } from '../changelog/worldWatch.memory.ts';
import { DeadlineExceeded, withDeadline } from '../lib/deadline.ts';
import { type Unavailability, unavailability } from '../postgres/sqlErrors.ts';
import { FeedReader, type FollowPorts } from './changeLogReader.ts';

/** How often the feed is read without a notification. */
const POLL_MS = 250;
/** A pod is degraded when the writes in memory are older than this. */
const DEGRADED_LAG_MS = 5_000;
/** The same for positions, of which one customer may bring very many at a time. */
const DEGRADED_POSITIONS_LAG_MS = 30_000;
const STOP_DEADLINE_MS = 2_000;

/** A reader of feeds is expected again within this time. */
const READER_MS = 60_000;

/**
 * Keeps memory in step with Postgres by following the change feed. `catchUp` resolves when memory holds every write
 * that was committed before the call; concurrent calls share a read. Notifications and a timer call it, and so does a
 * request that learns of a newer version of its world.
 */
export class Follower {
  readonly #ports: FollowPorts;
  readonly #reader: FeedReader;
  /** The read in progress, and the one that begins after it. */
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isFailing = false;
  /** Why the last read failed. */
  #trouble: Unavailability | null = null;
  #isStopped = false;
  readonly #listeners = new Set<(by: Applied) => void>();
  /** When a reader of feeds last called. */
  #readerAtMs = Number.NEGATIVE_INFINITY;

  constructor(ports: FollowPorts) {
    this.#ports = ports;
    this.#reader = new FeedReader(ports);
  }

  /** Loads everything and begins to follow. */
  async start(): Promise<void> {
    await this.#reader.fill();
    do await this.catchUp();
    while (this.#reader.isPending);
    this.#timer = setInterval(() => this.catchUpSoon(), POLL_MS);
  }

  /**
   * Stops following and leaves the list of pods, so that writers no longer wait for this one. Takes two seconds at
   * most.
   */
  async stop(): Promise<void> {
    const { sql, podId } = this.#ports;
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    const leave = async (): Promise<void> => {
      await this.#running;
      await deletePod(sql, podId);
    };
    await withDeadline(leave(), STOP_DEADLINE_MS, 'leaving the list of pods');
  }

  /** True once memory was filled. Before that nothing may be answered from it. */
  get loaded(): boolean {
    return this.#reader.loaded;
  }

  /** Memory holds every write that was committed up to here. */
  get cursor(): FeedCursor {
    return this.#reader.cursor;
  }

  /** The transactions that memory has followed, shortened so that they fit into a reader's cursor. */
  get followed(): Snapshot {
    return this.#reader.held.followed(this.#reader.positionsCursor);
  }

  /** The server to which `followed` belongs. */
  get server(): LiveServer {
    return this.#reader.held.server(this.#reader.cursor);
  }

  /** See HeldTransactions. */
  get starts(): ServerStarts {
    return this.#reader.held.starts;
  }

  /** False while memory holds position updates that `followed` does not contain. */
  get isComplete(): boolean {
    return !this.#reader.isPending;
  }

  /** True for a transaction of this pod whose position updates memory holds before it is followed. */
  isOwn(xid: number): boolean {
    return this.#reader.held.isOwn(xid);
  }

  /** Must be called when memory holds the position updates of a transaction that this pod has committed. */
  noteOwn(xid: number): void {
    if (this.followed.sees(xid)) return;
    this.#reader.held.addOwn(xid);
    this.#announce('own');
    // Readers get changes of an own transaction again when it is followed, so it is followed at once.
    if (Math.abs(this.#ports.clock() - this.#readerAtMs) < READER_MS) this.catchUpSoon();
  }

  /** Must be called when a reader of feeds calls: then this pod follows its own commits at once. */
  noteReader(): void {
    this.#readerAtMs = this.#ports.clock();
  }

  /** Calls `listener` whenever memory may have changed; it must not throw. Returns the function that stops this. */
  onApplied(listener: (by: Applied) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** How long the last full load took. */
  get loadMs(): number {
    return this.#reader.loadMs;
  }

  /** Milliseconds since memory was last known to equal Postgres; Infinity before the first load. */
  lagMs(): number {
    return this.#reader.lagMs();
  }

  /** The same without positions, which authorize nobody. */
  heldLagMs(): number {
    return this.#reader.heldLagMs();
  }

  /** See FeedReader. */
  writesLagMs(): number {
    return this.#reader.writesLagMs();
  }

  /** Why answers from memory are slower or older than usual. */
  degradations(): string[] {
    const reasons: string[] = [];
    const trouble = this.#trouble ?? this.#reader.reportTrouble;
    if (this.writesLagMs() > DEGRADED_LAG_MS) reasons.push(`database_${trouble ?? 'no_answer'}`);
    if (this.lagMs() > Math.max(DEGRADED_POSITIONS_LAG_MS, this.heldLagMs())) reasons.push('positions_late');
    return reasons;
  }

  /** True after two seconds without a reply of Postgres, until there is one. */
  get isUnresponsive(): boolean {
    return this.#reader.isUnresponsive;
  }

  /** Catches up in the background. An error is logged once and shows in the lag. */
  catchUpSoon(): void {
    if (this.#next !== null) return;
    this.catchUp().catch(this.#noteError);
  }

  /** Resolves when memory holds every write acknowledged before this call. Rejects when Postgres cannot be read. */
  catchUp(): Promise<void> {
    if (this.#running === null) {
      const reading = this.#reader.read();
      this.#running = reading
        .then(() => this.#reader.readPending())
        .then(() => this.#announce('followed'))
        .then(this.#noteSuccess, this.#noteError)
        .then(() => {
          this.#running = null;
          if (this.#reader.isPending && !this.#isFailing && !this.#isStopped) this.catchUpSoon();
        });
      return reading;
    }
    // The read in progress may have begun before the write that this caller must see.
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      if (this.#isStopped) throw new DeadlineExceeded('this pod no longer follows the change feed');
      return this.catchUp();
    });
    return this.#next;
  }

  #announce(by: Applied): void {
    for (const listener of this.#listeners) listener(by);
  }

  readonly #noteSuccess = (): void => {
    if (this.#isFailing) this.#ports.log.info({}, 'following the change feed again');
    this.#isFailing = false;
    this.#trouble = null;
  };

  readonly #noteError = (error: unknown): void => {
    if (!this.#isFailing)
      this.#ports.log.warn({ err: error }, 'the change feed cannot be read; trying again');
    this.#isFailing = true;
    this.#trouble = unavailability(error);
  };
}
