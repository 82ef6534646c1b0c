import type { Clock } from '../../base/clock.ts';
import { DeadlineExceeded, withDeadline } from '../../base/deadline.ts';
import { MINUTE_MS } from '../../base/durations.ts';
import type { ServerMark } from '../../feeds/serverMark.ts';
import type { Snapshot } from '../../feeds/snapshot.ts';
import {
  FEED_RETENTION_MINUTES,
  type FeedCursor,
  type FeedSnapshot,
  pagesBetween,
} from '../../store/feed/changes.ts';
import { deletePod, LIVE_SECONDS, upsertPod } from '../../store/feed/pods.ts';
import type { Sql } from '../../store/sql/sql.ts';
import { FRESH_MS } from '../access/authorizer.ts';
import type { Memory, Turns } from './applyChanges.ts';
import { type FillPorts, fillMemory, refillMemory } from './fillMemory.ts';
import { type Followed, followPositions, followWrites, type PendingPositions } from './followPages.ts';
import { HeldTransactions } from './heldTransactions.ts';
import { ReplyMonitor } from './replyMonitor.ts';

/** How often the feed is read without a notification. */
const POLL_MS = 250;
/** How often a pod reports to the list of pods. */
const HEARTBEAT_MS = 1_000;
/** /readyz turns false when the writes in memory are older than this. */
export const READY_LAG_MS = 5_000;
/**
 * The same for positions. All pods receive a burst of position updates of one customer at the same time, and must not
 * leave the load balancer together while they work it off. A pod that was stopped has older ones.
 */
export const READY_POSITIONS_LAG_MS = 30_000;
const STOP_DEADLINE_MS = 2_000;
/** A minute less than changes are kept, for differences of clocks. No write takes as long as that. */
const AWAY_MS = (FEED_RETENTION_MINUTES - 1) * MINUTE_MS;
/**
 * Writers do not wait for a pod whose last report is older than LIVE_SECONDS, while its reads count as fresh for
 * FRESH_MS. So a pod whose last report is older than this must report and then read once more.
 */
const LISTED_MS = LIVE_SECONDS * 1_000 - FRESH_MS;

/** A reader of feeds is expected again within this time. */
const READER_MS = 60_000;

/** How a change came into memory: through the feed, or with a commit of this pod. */
export type Applied = 'followed' | 'own';

export interface FollowPorts extends Memory {
  readonly sql: Sql;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly podId: string;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/** Pending position updates, and when the read began that found them. */
type TimedPositions = PendingPositions & { readonly readAtMs: number };

/**
 * Keeps memory in step with Postgres by following the change feed. `catchUp` resolves when memory holds every write
 * that was committed before the call; concurrent calls share a read. Notifications and a timer call it, and so does a
 * request that learns of a newer version of its world.
 *
 * Writes take precedence over position updates. Usually one page of the feed contains all that is new. When there is
 * more, after an absence or during a large import, position updates become pending: one page of them is applied after
 * each read of writes. So there are two cursors:
 * - `cursor`, of writes. Points are evaluated against what writes change, and writers wait for this cursor in the list
 *   of pods.
 * - The one of position updates stays inside. `lagMs` shows how old they are. When they are pruned before they are
 *   applied, everything is reloaded.
 *
 * Their order does not matter. A device is loaded with its newest position, an older position changes nothing, and a
 * position of an unknown device makes that device load.
 */
export class Follower {
  readonly #ports: FollowPorts;
  readonly #pages: FillPorts;
  readonly #replies = new ReplyMonitor();
  #cursor: FeedCursor = { snapshot: '', history: '' };
  /** When the read began that led to `cursor`. */
  #readAtMs = 0;
  #pending: TimedPositions | null = null;
  /** When memory was last known to hold all writes. */
  #writesAtMs: number | null = null;
  /** When memory was last known to hold all writes and all positions. */
  #positionsAtMs: number | null = null;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  /** The read in progress, and the one that begins after it. */
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isFailing = false;
  #isStopped = false;
  #loadMs = 0;
  readonly #held: HeldTransactions;
  readonly #listeners = new Set<(by: Applied) => void>();
  /** When a reader of feeds last called. */
  #readerAtMs = Number.NEGATIVE_INFINITY;

  constructor(ports: FollowPorts) {
    this.#ports = ports;
    const { sql, turns, log } = ports;
    const { awaitReply } = this.#replies;
    this.#pages = { sql, turns, log, awaitReply };
    this.#held = new HeldTransactions(sql, awaitReply);
  }

  /** Loads everything and begins to follow. */
  async start(): Promise<void> {
    const { clock } = this.#ports;
    const startedAtMs = clock();
    this.#cursor = await fillMemory(this.#pages, this.#ports);
    await this.#held.readPromotions();
    this.#loadMs = clock() - startedAtMs;
    do await this.catchUp();
    while (this.#pending !== null);
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
    return this.#positionsAtMs !== null;
  }

  /** Memory holds every write that was committed up to here. */
  get cursor(): FeedCursor {
    return this.#cursor;
  }

  /** The transactions that memory has followed, shortened so that they fit into a reader's cursor. */
  get followed(): Snapshot {
    return this.#held.followed(this.#pending?.from ?? this.#cursor.snapshot);
  }

  /** The server to which `followed` belongs. */
  get server(): ServerMark {
    return this.#held.server(this.#cursor);
  }

  /** See HeldTransactions. */
  get promotions(): ReadonlyMap<number, number> {
    return this.#held.promotions;
  }

  /** False while memory holds position updates that `followed` does not contain. */
  get isComplete(): boolean {
    return this.#pending === null;
  }

  /** True for a transaction of this pod whose position updates memory holds before it is followed. */
  isOwn(xid: number): boolean {
    return this.#held.isOwn(xid);
  }

  /** Must be called when memory holds the position updates of a transaction that this pod has committed. */
  noteOwn(xid: number): void {
    if (this.followed.sees(xid)) return;
    this.#held.addOwn(xid);
    this.#announce('own');
    // Readers get changes of an own transaction again when it is followed, so it is followed at once.
    if (this.#age(this.#readerAtMs) < READER_MS) this.catchUpSoon();
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
    return this.#loadMs;
  }

  /** Milliseconds since memory was last known to equal Postgres; Infinity before the first load. */
  lagMs(): number {
    return this.#age(this.#positionsAtMs);
  }

  /** The same without positions, which authorize nobody. */
  writesLagMs(): number {
    return this.#age(this.#writesAtMs);
  }

  ready(): boolean {
    return this.writesLagMs() <= READY_LAG_MS && this.lagMs() <= READY_POSITIONS_LAG_MS;
  }

  /** True after two seconds without a reply of Postgres, until there is one. */
  get isUnresponsive(): boolean {
    return this.#replies.isUnresponsive;
  }

  /** Catches up in the background. An error is logged once and shows in the lag. */
  catchUpSoon(): void {
    if (this.#next !== null) return;
    this.catchUp().catch(this.#noteError);
  }

  /** Resolves when memory holds every write acknowledged before this call. Rejects when Postgres cannot be read. */
  catchUp(): Promise<void> {
    if (this.#running === null) {
      const reading = this.#read();
      this.#running = reading
        .then(() => this.#readPending())
        .then(() => this.#announce('followed'))
        .then(this.#noteSuccess, this.#noteError)
        .then(() => {
          this.#running = null;
          if (this.#pending !== null && !this.#isFailing && !this.#isStopped) this.catchUpSoon();
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
  };

  readonly #noteError = (error: unknown): void => {
    if (!this.#isFailing)
      this.#ports.log.warn({ err: error }, 'the change feed cannot be read; trying again');
    this.#isFailing = true;
  };

  /** Applies all new writes and, unless some are pending, the first page of position updates. */
  async #read(): Promise<void> {
    const startedAtMs = this.#ports.clock();
    // After a pause of this pod, writers may not wait for it. Then it must report and read once more.
    const isListed = Math.max(this.#age(this.#reportedAtMs), this.writesLagMs()) <= LISTED_MS;
    const { outcome, cursor } = await this.#follow();
    if (outcome === 'lost') await this.#reload(cursor);
    if (outcome === 'lost' || !isListed) {
      await this.#report();
      // Reads what was committed before the report, since no writer waited for this pod then.
      if ((await this.#follow()).outcome === 'lost') throw new DeadlineExceeded('the feed was lost again');
    }
    this.#writesAtMs = startedAtMs;
    if (this.#pending === null) this.#positionsAtMs = startedAtMs;
    const isReportDue = this.#age(this.#reportedAtMs) >= HEARTBEAT_MS;
    if (outcome !== 'positions' || !isListed || isReportDue) await this.#report();
  }

  async #follow(): Promise<Followed> {
    const readAtMs = this.#ports.clock();
    const firstPage = this.#pending === null ? 'all' : 'writes';
    // Before the check of the absence, because an unreachable Postgres must be reported as that.
    const followed = await followWrites(this.#pages, this.#ports, this.#cursor, firstPage);
    if (followed.outcome === 'lost' || this.#wasAway(readAtMs)) return { ...followed, outcome: 'lost' };
    this.#cursor = followed.cursor;
    this.#readAtMs = readAtMs;
    if (followed.pending !== null) this.#pending = { ...followed.pending, readAtMs };
    return followed;
  }

  /** Applies a page of pending position updates. After their last page, also one of those committed since. */
  async #readPending(): Promise<void> {
    for (let pending = this.#pending; pending !== null; pending = this.#pending) {
      const rest = await followPositions(this.#pages, this.#ports, pending, this.#cursor.history);
      if (rest === 'lost' || this.#wasAway(this.#ports.clock())) {
        // The next read reloads everything.
        this.#positionsAtMs = Number.NEGATIVE_INFINITY;
        return;
      }
      if (rest !== null) {
        this.#pending = { ...rest, readAtMs: pending.readAtMs };
        return;
      }
      this.#positionsAtMs = pending.readAtMs;
      this.#pending = this.#pendingAfter(pending.page.upTo);
    }
  }

  /** The position updates between a snapshot and the cursor of writes. */
  #pendingAfter(from: FeedSnapshot): TimedPositions | null {
    const { snapshot } = this.#cursor;
    if (from === snapshot) return null;
    return { from, page: pagesBetween(from, snapshot), readAtMs: this.#readAtMs };
  }

  /**
   * True after an absence for which the horizon of pruning cannot be trusted. It may miss a write that was still
   * running in the cursor's snapshot while a later write, which became the horizon, was already committed in it.
   */
  #wasAway(nowMs: number): boolean {
    return this.#positionsAtMs !== null && nowMs - this.#positionsAtMs > AWAY_MS;
  }

  /** Reloads everything. `found` is the cursor at which the feed was found to be lost. */
  async #reload(found: FeedCursor): Promise<void> {
    const { clock, log } = this.#ports;
    const isOtherServer = found.history !== this.#cursor.history;
    const reason = isOtherServer ? 'another server' : 'away from the change feed for too long';
    log.warn({}, `${reason}; reloading everything`);
    if (isOtherServer) await this.#held.notePromotion(this.#cursor, found.history);
    const startedAtMs = clock();
    await refillMemory(this.#pages, this.#ports, (cursor) => {
      if (cursor.history !== this.#cursor.history) this.#held.dropOwn();
      this.#cursor = cursor;
      this.#pending = null;
      this.#positionsAtMs = startedAtMs;
    });
    this.#loadMs = clock() - startedAtMs;
  }

  /** Writes the cursor to the list of pods. */
  async #report(): Promise<void> {
    const { sql, podId, clock } = this.#ports;
    const atMs = clock();
    await this.#replies.awaitReply(upsertPod(sql, podId, this.#cursor));
    this.#reportedAtMs = atMs;
  }

  /** A clock that was set back makes memory look old, never young. */
  #age(atMs: number | null): number {
    return atMs === null ? Number.POSITIVE_INFINITY : Math.abs(this.#ports.clock() - atMs);
  }
}
