import { AppliedTransactions, type LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { deletePod } from '../changelog/pods.sql.ts';
import { DeadlineExceeded, withDeadline } from '../lib/time.ts';
import { type Unavailability, unavailability } from '../postgres/sqlErrors.ts';
import { ChangeLogReader, type FollowPorts } from './changeLogReader.ts';

/** How often the change log is read without a notification. */
const POLL_MS = 250;
/** A pod is degraded when the writes in memory are older than this. */
const DEGRADED_LAG_MS = 5_000;
/** The same for positions, of which one customer may send very many at a time. */
const DEGRADED_POSITIONS_LAG_MS = 30_000;
const STOP_DEADLINE_MS = 2_000;

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
    if (!this.#isFailing) this.#ports.log.warn({ err: error }, 'the change log cannot be read; trying again');
    this.#isFailing = true;
    this.#trouble = unavailability(error);
  };
}
