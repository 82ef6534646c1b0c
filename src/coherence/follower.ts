import { TRUST_MEMORY_MS, VERIFY_DEADLINE_MS } from '../access/authorizer.ts';
import type { LogCursor, LogEnd, LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { AppliedTransactions } from '../changelog/appliedTransactions.memory.ts';
import { RETENTION_MINUTES } from '../changelog/changes.sql.ts';
import { selectServerStarts } from '../changelog/database.sql.ts';
import { deletePod, FRESH_MS, LIVE_SECONDS, upsertPod } from '../changelog/pods.sql.ts';
import { isSameServer } from '../changelog/serverStarts.ts';
import { type Clock, DeadlineExceeded, MINUTE_MS, withDeadline } from '../lib/time.ts';
import type { ServerKnowledge } from '../postgres/serverEntry.ts';
import type { Sql } from '../postgres/sql.ts';
import { errorFields, type Unavailability, unavailability } from '../postgres/sqlErrors.ts';
import { type Followed, followPositions, followWrites, type Memory } from './applyChanges.ts';
import { type FillPorts, fillMemory } from './fillMemory.ts';
import { ReplyMonitor } from './postgresHealth.ts';
import { reloadMemory } from './reloadMemory.ts';

/** How often the change log is read without a notification. */
const POLL_MS = 250;
/** A pod is degraded when the writes in memory are older than this. */
const DEGRADED_LAG_MS = 5_000;
/** The same for positions, of which one customer may send very many at a time. */
const DEGRADED_POSITIONS_LAG_MS = 30_000;
const STOP_DEADLINE_MS = 2_000;

export interface FollowPorts {
  readonly sql: Sql;
  readonly memory: Memory;
  readonly turns: FillPorts['turns'];
  readonly clock: Clock;
  readonly podId: string;
  /** What the connections of this pod know of the server. */
  readonly server: Pick<ServerKnowledge, 'seen'>;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/**
 * Keeps memory in step with Postgres by following the change log. Concurrent calls of `catchUp` share a read.
 * Notifications and a timer call it, and so does a request that learns of a newer version of its world.
 */
export class Follower implements LogFollower {
  readonly applied: AppliedTransactions;
  readonly #ports: FollowPorts;
  readonly #reader: ChangeLogReader;
  /** The read in progress, and the one that begins after it. */
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isFailing = false;
  /** Why the last read failed. */
  #trouble: Unavailability | null = null;
  #isStopped = false;

  constructor(ports: FollowPorts) {
    this.#ports = ports;
    this.applied = new AppliedTransactions(ports.clock);
    this.#reader = new ChangeLogReader(ports, this.applied);
    // Readers get changes of an own transaction again when it is followed, so it is followed at once.
    this.applied.onApplied((by) => {
      if (by === 'own commit' && this.applied.hasReaders) this.catchUpSoon();
    });
  }

  /** Loads everything and begins to follow. */
  async start(): Promise<void> {
    await this.#reader.fill();
    do await this.catchUp();
    while (this.#reader.isPending);
    this.#timer = setInterval(() => this.catchUpSoon(), POLL_MS);
  }

  /** Stops following and leaves the list of pods, so that writers no longer wait for this one. Takes 2 s at most. */
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

  get loadMs(): number {
    return this.#reader.loadMs;
  }

  /** Nobody should wait for `catchUp` now. */
  get isUnresponsive(): boolean {
    return this.#reader.isUnresponsive;
  }

  /** Why answers from memory are slower or older than usual. */
  degradations(): string[] {
    const { applied } = this;
    const reasons: string[] = [];
    const trouble = this.#trouble ?? this.#reader.reportTrouble;
    if (applied.writesLagMs() > DEGRADED_LAG_MS) reasons.push(`database_${trouble ?? 'no_answer'}`);
    if (applied.lagMs() > Math.max(DEGRADED_POSITIONS_LAG_MS, applied.heldLagMs()))
      reasons.push('positions_late');
    return reasons;
  }

  /** Catches up in the background. An error is logged once and shows in the lag. */
  catchUpSoon(): void {
    if (this.#next !== null) return;
    this.catchUp().catch(this.#noteError);
  }

  catchUp(): Promise<void> {
    if (this.#running === null) {
      const reading = this.#reader.read();
      this.#running = reading
        .then(() => this.#reader.readPending())
        .then(() => this.applied.announce('log'))
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
      if (this.#isStopped) throw new DeadlineExceeded('this pod no longer follows the change log');
      return this.catchUp();
    });
    return this.#next;
  }

  readonly #noteSuccess = (): void => {
    if (this.#isFailing) this.#ports.log.info({}, 'following the change log again');
    this.#isFailing = false;
    this.#trouble = null;
  };

  readonly #noteError = (error: unknown): void => {
    // Stopping the pod rejects a read that waits for another one. That is not a failure.
    if (!this.#isFailing && !this.#isStopped)
      this.#ports.log.warn({ err: error }, 'the change log cannot be read; trying again');
    this.#isFailing = true;
    this.#trouble = unavailability(error);
  };
}

/** How often a pod reports to the list of pods. */
const HEARTBEAT_MS = 1_000;
/** A minute less than changes are kept, for differences of clocks. No write takes as long as that. */
const AWAY_MS = (RETENTION_MINUTES - 1) * MINUTE_MS;
/**
 * Writers do not wait for a pod whose last report is older than LIVE_SECONDS, while its reads count as fresh for
 * FRESH_MS. So a pod whose last report is older than this must report and then read once more.
 */
const LISTED_MS = LIVE_SECONDS * 1_000 - FRESH_MS;

/** Where the position updates begin that are not applied, and when the read began that found them. */
interface Pending {
  readonly cursor: LogCursor;
  readonly readAtMs: number;
}

/**
 * Reads the change log into memory, one read at a time.
 *
 * Writes take precedence over position updates. Usually one page of the log contains all that is new. When there is
 * more, after an absence or during a large import, position updates become pending: one page of them is applied after
 * each read of writes. So there are two cursors:
 * - The one of writes (`AppliedTransactions.writes`). Points are evaluated against what writes change, and writers wait
 *   for this cursor in the list of pods.
 * - The one of position updates. When they are pruned before they are applied, everything is reloaded.
 *
 * Their order does not matter. A device is loaded with its newest position, an older position changes nothing, and a
 * position of an unknown device makes that device load.
 */
class ChangeLogReader {
  readonly #ports: FollowPorts;
  readonly #applied: AppliedTransactions;
  readonly #pages: FillPorts;
  readonly #replies = new ReplyMonitor();
  /** When the read began that led to the present cursor of writes. */
  #readAtMs = 0;
  #pending: Pending | null = null;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #reportTrouble: Unavailability | null = null;
  #loadMs = 0;
  /** By performance.now(); null when nothing is reloaded. */
  #reloadSinceMs: number | null = null;

  constructor(ports: FollowPorts, applied: AppliedTransactions) {
    this.#ports = ports;
    this.#applied = applied;
    const { sql, turns, log } = ports;
    this.#pages = { sql, turns, log, awaitReply: this.#replies.awaitReply };
  }

  /** Fills the empty memory. */
  async fill(): Promise<void> {
    const fromMs = performance.now();
    const end = await fillMemory(this.#pages, this.#ports.memory);
    await this.#readStarts();
    this.#advance(end, null);
    this.#loadMs = performance.now() - fromMs;
  }

  /** True while there are position updates that memory does not hold yet. */
  get isPending(): boolean {
    return this.#pending !== null;
  }

  /** How long the last full load took. */
  get loadMs(): number {
    return this.#loadMs;
  }

  /** Why the last report to the list of pods failed; null when it did not. */
  get reportTrouble(): Unavailability | null {
    return this.#reportTrouble;
  }

  /**
   * True after two seconds without a reply of Postgres, until there is one. Also during a long reload, while memory may
   * answer without it: then nobody should wait for this pod to catch up.
   */
  get isUnresponsive(): boolean {
    return (
      this.#replies.isUnresponsive || (this.#isReloadLong && this.#applied.heldLagMs() <= TRUST_MEMORY_MS)
    );
  }

  /** Takes longer than a call waits, or will: it reads about as much as the load before. */
  get #isReloadLong(): boolean {
    const sinceMs = this.#reloadSinceMs;
    return sinceMs !== null && Math.max(performance.now() - sinceMs, this.#loadMs) > VERIFY_DEADLINE_MS;
  }

  /**
   * Applies all new writes and, unless some are pending, the first page of position updates. Resolves too when the report
   * to the list of pods fails, because memory holds what was committed before the call; for later calls it does not
   * count as current then (AppliedTransactions.writesLagMs).
   */
  async read(): Promise<void> {
    const startedAtMs = this.#ports.clock();
    // After a pause of this pod, writers may not wait for it. Then it must report and read once more.
    const isListed =
      Math.max(this.#applied.age(this.#reportedAtMs), this.#applied.writesLagMs()) <= LISTED_MS;
    const { outcome, end } = await this.#follow();
    if (outcome === 'lost') await this.#reload(end);
    if (outcome === 'lost' || !isListed) {
      if (!(await this.#report())) return this.#noteHeld(startedAtMs);
      // Reads what was committed before the report, since no writer waited for this pod then.
      if ((await this.#follow()).outcome === 'lost')
        throw new DeadlineExceeded('the change log was lost again');
    }
    this.#noteHeld(startedAtMs);
    this.#applied.writesAtMs = startedAtMs;
    const isReportDue = this.#applied.age(this.#reportedAtMs) >= HEARTBEAT_MS;
    if (outcome !== 'positions' || !isListed || isReportDue) await this.#report();
  }

  /** Memory holds what was committed by then. */
  #noteHeld(atMs: number): void {
    this.#applied.heldAtMs = atMs;
    if (this.#pending === null) this.#applied.positionsAtMs = atMs;
  }

  /** Applies a page of pending position updates. After their last page, also one of those committed since. */
  async readPending(): Promise<void> {
    for (let pending = this.#pending; pending !== null; pending = this.#pending) {
      const { cursor, readAtMs } = pending;
      const { writes, own } = this.#applied;
      const rest = await followPositions(this.#pages, this.#ports.memory, cursor, writes.server, own);
      if (rest === 'lost' || this.#wasAway(this.#ports.clock())) {
        // The next read reloads everything.
        this.#applied.positionsAtMs = Number.NEGATIVE_INFINITY;
        return;
      }
      if (rest !== null) {
        this.#pending = { cursor: rest, readAtMs };
        return;
      }
      this.#applied.positionsAtMs = readAtMs;
      const from = cursor.open?.upTo ?? cursor.seen;
      const isAll = from.equals(writes.seen);
      const open = { upTo: writes.seen, after: { xid: from.xmin, id: 0 } };
      this.#advance(writes, isAll ? null : { cursor: { seen: from, open }, readAtMs: this.#readAtMs });
    }
  }

  async #follow(): Promise<Followed> {
    const readAtMs = this.#ports.clock();
    const firstPage = this.#pending === null ? 'all' : 'writes';
    // Before the check of the absence, because an unreachable Postgres must be reported as that.
    const { writes, own } = this.#applied;
    const followed = await followWrites(this.#pages, this.#ports.memory, writes, firstPage, own);
    const { outcome, end, pending } = followed;
    const isLost = outcome === 'lost' || this.#applied.isMixed || this.#wasAway(readAtMs);
    if (isLost) return { ...followed, outcome: 'lost' };
    // Before the cursor moves: cursors of earlier starts are compared with how much this one has.
    if (!this.#applied.starts.has(end.server.start)) await this.#readStarts();
    this.#readAtMs = readAtMs;
    this.#advance(end, pending === null ? this.#pending : { cursor: pending, readAtMs });
    return followed;
  }

  /**
   * True after an absence for which the horizon of pruning cannot be trusted. It may miss a write that was still
   * running in the cursor's snapshot while a later write, which became the horizon, was already committed in it.
   */
  #wasAway(nowMs: number): boolean {
    const { positionsAtMs } = this.#applied;
    return positionsAtMs !== null && nowMs - positionsAtMs > AWAY_MS;
  }

  /** Reloads everything. `found` is what the log showed when it was found to be lost. */
  async #reload(found: LogEnd): Promise<void> {
    const { clock, log, memory } = this.#ports;
    const applied = this.#applied;
    const isOtherServer = applied.isMixed || !isSameServer(found.server, applied.server);
    await this.#readStarts();
    const reason = isOtherServer ? 'another server' : 'away from the change log for too long';
    log.warn(isOtherServer ? this.#lossOn(found) : {}, `${reason}; reloading everything`);
    const startedAtMs = clock();
    const fromMs = performance.now();
    this.#reloadSinceMs = fromMs;
    try {
      applied.isMixed = isOtherServer;
      this.#advance(await reloadMemory(this.#pages, memory, isOtherServer), null);
      applied.positionsAtMs = startedAtMs;
    } finally {
      this.#reloadSinceMs = null;
    }
    this.#loadMs = performance.now() - fromMs;
    log.info({ ms: Math.round(this.#loadMs) }, 'everything is reloaded');
  }

  /** For the log: how many bytes of the write-ahead log this pod has seen that the other server lacks; null: it is unknown. */
  #lossOn({ server }: LogEnd): object {
    const { starts, server: seen } = this.#applied;
    return { lost_wal_bytes: starts.lacking(server, seen)?.walBytes ?? null };
  }

  async #readStarts(): Promise<void> {
    this.#applied.starts = await this.#replies.awaitReply(selectServerStarts(this.#ports.sql));
  }

  #advance(writes: LogEnd, pending: Pending | null): void {
    this.#pending = pending;
    this.#applied.advance(writes, pending?.cursor.seen);
    const { start, walBytes, xmax } = writes.server;
    this.#ports.server.seen = { start, flushedBytes: walBytes, xmax };
  }

  /** Writes the cursor to the list of pods. False when Postgres can be read and takes no writes. */
  async #report(): Promise<boolean> {
    const { sql, podId, clock, log } = this.#ports;
    const atMs = clock();
    try {
      await this.#replies.awaitReply(upsertPod(sql, podId, this.#applied.writes));
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
}
