import {
  FEED_RETENTION_MINUTES,
  type FeedCursor,
  type FeedSnapshot,
  pagesBetween,
} from '../changelog/changes.sql.ts';
import { FRESH_MS, LIVE_SECONDS, upsertPod } from '../changelog/pods.sql.ts';
import { Snapshot } from '../changelog/snapshot.ts';
import type { Clock } from '../lib/clock.ts';
import { DeadlineExceeded } from '../lib/deadline.ts';
import { MINUTE_MS } from '../lib/durations.ts';
import type { ServerKnowledge } from '../postgres/serverEntry.ts';
import type { Sql } from '../postgres/sql.ts';
import { errorFields, type Unavailability, unavailability } from '../postgres/sqlErrors.ts';
import {
  type Followed,
  followPositions,
  followWrites,
  type Memory,
  type PendingPositions,
  type Turns,
} from './applyChanges.ts';
import { type FillPorts, fillMemory, refillMemory } from './fillMemory.ts';
import { HeldTransactions } from './heldTransactions.ts';
import { ReplyMonitor } from './postgresHealth.ts';

/** How often a pod reports to the list of pods. */
const HEARTBEAT_MS = 1_000;
/** A minute less than changes are kept, for differences of clocks. No write takes as long as that. */
const AWAY_MS = (FEED_RETENTION_MINUTES - 1) * MINUTE_MS;
/**
 * Writers do not wait for a pod whose last report is older than LIVE_SECONDS, while its reads count as fresh for
 * FRESH_MS. So a pod whose last report is older than this must report and then read once more.
 */
const LISTED_MS = LIVE_SECONDS * 1_000 - FRESH_MS;

export interface FollowPorts extends Memory {
  readonly sql: Sql;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly podId: string;
  /** What the connections of this pod know of the server. */
  readonly server: Pick<ServerKnowledge, 'seen'>;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/** Pending position updates, and when the read began that found them. */
type TimedPositions = PendingPositions & { readonly readAtMs: number };

/**
 * Reads the change feed into memory, one read at a time.
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
export class FeedReader {
  /** What memory holds of transactions, for those who read feeds. */
  readonly held: HeldTransactions;
  readonly #ports: FollowPorts;
  readonly #pages: FillPorts;
  readonly #replies = new ReplyMonitor();
  #cursor: FeedCursor = { snapshot: '', history: '', start: 0, flushedBytes: 0 };
  /** When the read began that led to `cursor`. */
  #readAtMs = 0;
  #pending: TimedPositions | null = null;
  /** When memory was last known to hold all writes. */
  #heldAtMs: number | null = null;
  /** The same, with a report to the list of pods before: from then on writers wait for this pod. */
  #writesAtMs: number | null = null;
  /** When memory was last known to hold all writes and all positions. */
  #positionsAtMs: number | null = null;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #reportTrouble: Unavailability | null = null;
  #loadMs = 0;

  constructor(ports: FollowPorts) {
    this.#ports = ports;
    const { sql, turns, log } = ports;
    const { awaitReply } = this.#replies;
    this.#pages = { sql, turns, log, awaitReply };
    this.held = new HeldTransactions(sql, awaitReply);
  }

  /** Fills the empty memory. */
  async fill(): Promise<void> {
    const { clock } = this.#ports;
    const startedAtMs = clock();
    const cursor = await fillMemory(this.#pages, this.#ports);
    await this.held.readStarts();
    this.#noteCursor(cursor);
    this.#loadMs = clock() - startedAtMs;
  }

  /** True once memory was filled and has followed what came meanwhile. */
  get loaded(): boolean {
    return this.#positionsAtMs !== null;
  }

  /** Memory holds every write that was committed up to here. */
  get cursor(): FeedCursor {
    return this.#cursor;
  }

  /** Memory holds every position update up to here. */
  get positionsCursor(): FeedSnapshot {
    return this.#pending?.from ?? this.#cursor.snapshot;
  }

  /** True while there are position updates that memory does not hold yet. */
  get isPending(): boolean {
    return this.#pending !== null;
  }

  /** How long the last full load took. */
  get loadMs(): number {
    return this.#loadMs;
  }

  /** Milliseconds since memory was last known to equal Postgres; Infinity before the first load. */
  lagMs(): number {
    return this.#age(this.#positionsAtMs);
  }

  /** The same without positions. */
  heldLagMs(): number {
    return this.#age(this.#heldAtMs);
  }

  /**
   * The same, as far as writers knew of this pod: for as long as this is short, no write is acknowledged that memory
   * lacks. Grows while Postgres can be read and not written.
   */
  writesLagMs(): number {
    return this.#age(this.#writesAtMs);
  }

  /** Why the last report to the list of pods failed; null when it did not. */
  get reportTrouble(): Unavailability | null {
    return this.#reportTrouble;
  }

  /** True after two seconds without a reply of Postgres, until there is one. */
  get isUnresponsive(): boolean {
    return this.#replies.isUnresponsive;
  }

  /**
   * Applies all new writes and, unless some are pending, the first page of position updates. Resolves too when the report
   * to the list of pods fails, because memory holds what was committed before the call; for later calls it does not
   * count as current then (`writesLagMs`).
   */
  async read(): Promise<void> {
    const startedAtMs = this.#ports.clock();
    // After a pause of this pod, writers may not wait for it. Then it must report and read once more.
    const isListed = Math.max(this.#age(this.#reportedAtMs), this.writesLagMs()) <= LISTED_MS;
    const { outcome, cursor } = await this.#follow();
    if (outcome === 'lost') await this.#reload(cursor);
    if (outcome === 'lost' || !isListed) {
      if (!(await this.#report())) return this.#noteHeld(startedAtMs);
      // Reads what was committed before the report, since no writer waited for this pod then.
      if ((await this.#follow()).outcome === 'lost') throw new DeadlineExceeded('the feed was lost again');
    }
    this.#noteHeld(startedAtMs);
    this.#writesAtMs = startedAtMs;
    const isReportDue = this.#age(this.#reportedAtMs) >= HEARTBEAT_MS;
    if (outcome !== 'positions' || !isListed || isReportDue) await this.#report();
  }

  /** Memory holds what was committed by then. */
  #noteHeld(atMs: number): void {
    this.#heldAtMs = atMs;
    if (this.#pending === null) this.#positionsAtMs = atMs;
  }

  /** Applies a page of pending position updates. After their last page, also one of those committed since. */
  async readPending(): Promise<void> {
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

  async #follow(): Promise<Followed> {
    const readAtMs = this.#ports.clock();
    const firstPage = this.#pending === null ? 'all' : 'writes';
    // Before the check of the absence, because an unreachable Postgres must be reported as that.
    const followed = await followWrites(this.#pages, this.#ports, this.#cursor, firstPage);
    if (followed.outcome === 'lost' || this.#wasAway(readAtMs)) return { ...followed, outcome: 'lost' };
    // Before: cursors of the start before are compared with how much this one has.
    if (!this.held.starts.has(followed.cursor.start)) await this.held.readStarts();
    this.#noteCursor(followed.cursor);
    this.#readAtMs = readAtMs;
    if (followed.pending !== null) this.#pending = { ...followed.pending, readAtMs };
    return followed;
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
    await this.held.readStarts();
    const startedAtMs = clock();
    await refillMemory(this.#pages, this.#ports, (cursor) => {
      if (cursor.history !== this.#cursor.history) this.held.dropOwn();
      this.#noteCursor(cursor);
      this.#pending = null;
      this.#positionsAtMs = startedAtMs;
    });
    this.#loadMs = clock() - startedAtMs;
  }

  #noteCursor(cursor: FeedCursor): void {
    const { snapshot, start, flushedBytes } = cursor;
    this.#cursor = cursor;
    this.#ports.server.seen = { start, flushedBytes, xmax: Snapshot.parse(snapshot).xmax };
  }

  /** Writes the cursor to the list of pods. False when Postgres can be read and takes no writes. */
  async #report(): Promise<boolean> {
    const { sql, podId, clock, log } = this.#ports;
    const atMs = clock();
    try {
      await this.#replies.awaitReply(upsertPod(sql, podId, this.#cursor));
    } catch (error) {
      const trouble = unavailability(error);
      if (trouble === null) throw error;
      if (this.#reportTrouble === null)
        log.warn(errorFields(error), 'Postgres can be read, but takes no report of this pod; trying again');
      this.#reportTrouble = trouble;
      return false;
    }
    this.#reportedAtMs = atMs;
    this.#reportTrouble = null;
    return true;
  }

  /** A clock that was set back makes memory look old, never young. */
  #age(atMs: number | null): number {
    return atMs === null ? Number.POSITIVE_INFINITY : Math.abs(this.#ports.clock() - atMs);
  }
}
