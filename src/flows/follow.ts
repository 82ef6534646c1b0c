import type { Clock } from '../base/clock.ts';
import { DeadlineExceeded, withDeadline } from '../base/deadline.ts';
import { FEED_RETENTION_MINUTES, type FeedCursor, type FeedStand, placeBetween } from '../store/changes.ts';
import { deletePod, LIVE_SECONDS, upsertPod } from '../store/pods.ts';
import type { Sql } from '../store/sql.ts';
import { FRESH_MS } from './admit.ts';
import type { Memory, Turns } from './applyChanges.ts';
import { type FillPorts, fillMemory, refillMemory } from './fillMemory.ts';
import { type Followed, followMoves, followWrites, type MovesLeft } from './followPages.ts';
import { Silence } from './silence.ts';

/** How often the feed is read when no doorbell rings, and how often a pod says that it lives. */
const POLL_MS = 250;
const HEARTBEAT_MS = 1_000;
/** Memory older than this is no longer presented as the present: /readyz turns false. */
export const READY_LAG_MS = 5_000;
const STOP_DEADLINE_MS = 2_000;
/** A minute less than changes are kept, for the clocks; no write is under way for as long as that. */
const AWAY_MS = (FEED_RETENTION_MINUTES - 1) * 60_000;
/**
 * A pod that has said for this long that it lives may be given up by writers (LIVE_SECONDS) while what it reads now is
 * still taken for the present (FRESH_MS).
 */
const LISTED_MS = LIVE_SECONDS * 1_000 - FRESH_MS;

export interface FollowPorts extends Memory {
  readonly sql: Sql;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly podId: string;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/** Moves that are not applied, and when it was asked which they are. */
type MovesWanted = MovesLeft & { readonly askedAtMs: number };

/**
 * Keeps memory in step with Postgres. `catchUp` returns when memory holds every write that was committed before it was
 * called; concurrent calls share a read. Doorbells call it, a timer calls it, and a request that learns of a newer
 * version of its world calls it and waits.
 *
 * Writes go before moves. As a rule one page of the feed has all that is new; when there is more (after an absence, or
 * beside a large import) moves are left for later and applied a page after each read of writes. So two cursors are kept.
 * The one of writes is `stand`: points are judged by writes alone, and the list of pods tells it to writers, who wait
 * for their writes and never for a move. That is sound though moves are missing, since neither depends on the other:
 * a device is read with the position that it has by then, an older move changes nothing, and one of a device that is
 * not known brings the device. The cursor of moves is told to nobody: the age of memory (`lagMs`) says how they stand,
 * and what is pruned before they are applied is loaded anew.
 */
export class Follower {
  readonly #ports: FollowPorts;
  readonly #pages: FillPorts;
  readonly #silence = new Silence();
  #stand: FeedStand = { cursor: '', history: '' };
  /** When `stand` was asked for. */
  #askedAtMs = 0;
  #left: MovesWanted | null = null;
  /** When memory was last known to hold all writes, and all moves as well. */
  #writesAtMs: number | null = null;
  #movesAtMs: number | null = null;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #failing = false;
  #isStopped = false;
  #loadMs = 0;

  constructor(ports: FollowPorts) {
    this.#ports = ports;
    this.#pages = { sql: ports.sql, turns: ports.turns, log: ports.log, ask: this.#silence.ask };
  }

  /** Loads everything and begins to follow. */
  async start(): Promise<void> {
    const { clock } = this.#ports;
    const startedAtMs = clock();
    this.#stand = await fillMemory(this.#pages, this.#ports);
    this.#loadMs = clock() - startedAtMs;
    do await this.catchUp();
    while (this.#left !== null);
    this.#timer = setInterval(() => this.poke(), POLL_MS);
  }

  /** Ends following and says so, so that writers no longer wait for this pod; not later than in two seconds. */
  async stop(): Promise<void> {
    const { sql, podId } = this.#ports;
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    const farewell = async (): Promise<void> => {
      await this.#running;
      await deletePod(sql, podId);
    };
    await withDeadline(farewell(), STOP_DEADLINE_MS, 'leaving the list of pods');
  }

  /** True once memory was filled: before that nothing may be answered from it. */
  get loaded(): boolean {
    return this.#movesAtMs !== null;
  }

  /** Up to where memory holds every write that was committed. */
  get stand(): FeedStand {
    return this.#stand;
  }

  /** How long the last full load took. */
  get loadMs(): number {
    return this.#loadMs;
  }

  /** Milliseconds since memory was last known to equal Postgres; Infinity before the first load. */
  lagMs(): number {
    return this.#age(this.#movesAtMs);
  }

  /** The same but for positions, by which nobody is let in. */
  writesLagMs(): number {
    return this.#age(this.#writesAtMs);
  }

  ready(): boolean {
    return this.lagMs() <= READY_LAG_MS;
  }

  /** True from two seconds without an answer of Postgres until it gives one: waiting longer is in vain. */
  get isSilent(): boolean {
    return this.#silence.isSilent;
  }

  /** Catches up without anybody waiting for it; a failure is logged once and shows in the lag. */
  poke(): void {
    if (this.#next !== null) return;
    this.catchUp().catch(this.#noteFailure);
  }

  /** Resolves when memory holds every write acknowledged before this call; rejects when Postgres cannot be read. */
  catchUp(): Promise<void> {
    if (this.#running === null) {
      const reading = this.#read();
      this.#running = reading
        .then(() => this.#moveOn())
        .then(this.#noteSuccess, this.#noteFailure)
        .then(() => {
          this.#running = null;
          if (this.#left !== null && !this.#failing && !this.#isStopped) this.poke();
        });
      return reading;
    }
    // The read under way may have begun before the write that this caller must see.
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      if (this.#isStopped) throw new DeadlineExceeded('this pod no longer follows the change feed');
      return this.catchUp();
    });
    return this.#next;
  }

  readonly #noteSuccess = (): void => {
    if (this.#failing) this.#ports.log.info({}, 'following the change feed again');
    this.#failing = false;
  };

  readonly #noteFailure = (error: unknown): void => {
    if (!this.#failing) this.#ports.log.warn({ err: error }, 'the change feed cannot be read; trying again');
    this.#failing = true;
  };

  /** Applies what is new, of many moves the first. */
  async #read(): Promise<void> {
    const { clock, log } = this.#ports;
    const startedAtMs = clock();
    // A pod that stood still, or was cut off: what was committed after this read is not waited for before it is listed.
    const isListed = Math.max(this.#age(this.#reportedAtMs), this.writesLagMs()) <= LISTED_MS;
    const { outcome, stand } = await this.#follow();
    if (outcome === 'lost') {
      const isOther = stand.history !== this.#stand.history;
      log.warn(
        {},
        `${isOther ? 'another server' : 'away from the change feed for too long'}; loading everything anew`,
      );
      await this.#loadAnew();
    }
    if (outcome === 'lost' || !isListed) {
      await this.#report();
      // What writers did not wait for while this pod was away.
      if ((await this.#follow()).outcome === 'lost') throw new DeadlineExceeded('the feed was lost again');
    }
    this.#writesAtMs = startedAtMs;
    if (this.#left === null) this.#movesAtMs = startedAtMs;
    const isDue = this.#age(this.#reportedAtMs) >= HEARTBEAT_MS;
    if (outcome !== 'moves' || !isListed || isDue) await this.#report();
  }

  async #follow(): Promise<Followed> {
    const askedAtMs = this.#ports.clock();
    const first = this.#left === null ? 'all' : 'writes';
    // In any case: it fails when Postgres does.
    const followed = await followWrites(this.#pages, this.#ports, this.#stand, first);
    if (followed.outcome === 'lost' || this.#wasAway(askedAtMs)) return { ...followed, outcome: 'lost' };
    this.#stand = followed.stand;
    this.#askedAtMs = askedAtMs;
    if (followed.left !== null) this.#left = { ...followed.left, askedAtMs };
    return followed;
  }

  /** Applies a page of the moves that were left; where it is their last, also one of those committed since. */
  async #moveOn(): Promise<void> {
    for (let left = this.#left; left !== null; left = this.#left) {
      const rest = await followMoves(this.#pages, this.#ports, left, this.#stand.history);
      if (rest === 'lost' || this.#wasAway(this.#ports.clock())) {
        // The next read loads everything anew.
        this.#movesAtMs = Number.NEGATIVE_INFINITY;
        return;
      }
      if (rest !== null) {
        this.#left = { ...rest, askedAtMs: left.askedAtMs };
        return;
      }
      this.#movesAtMs = left.askedAtMs;
      this.#left = this.#movesAfter(left.place.upTo);
    }
  }

  /** The moves between a cursor and that of writes. */
  #movesAfter(from: FeedCursor): MovesWanted | null {
    const { cursor } = this.#stand;
    if (from === cursor) return null;
    return { from, place: placeBetween(from, cursor), askedAtMs: this.#askedAtMs };
  }

  /**
   * For so long that changes may have been pruned of which the horizon does not tell: of a write that was under way in
   * the cursor's snapshot while a later one, which became the horizon, was committed in it.
   */
  #wasAway(nowMs: number): boolean {
    return this.#movesAtMs !== null && nowMs - this.#movesAtMs > AWAY_MS;
  }

  async #loadAnew(): Promise<void> {
    const { clock } = this.#ports;
    const startedAtMs = clock();
    await refillMemory(this.#pages, this.#ports, (stand) => {
      this.#stand = stand;
      this.#left = null;
      this.#movesAtMs = startedAtMs;
    });
    this.#loadMs = clock() - startedAtMs;
  }

  async #report(): Promise<void> {
    const { sql, podId, clock } = this.#ports;
    const atMs = clock();
    await this.#silence.ask(upsertPod(sql, podId, this.#stand));
    this.#reportedAtMs = atMs;
  }

  /** A clock that was set back makes memory look old, never young. */
  #age(atMs: number | null): number {
    return atMs === null ? Number.POSITIVE_INFINITY : Math.abs(this.#ports.clock() - atMs);
  }
}
