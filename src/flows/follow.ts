import type { Clock } from '../base/clock.ts';
import { DeadlineExceeded, withDeadline } from '../base/deadline.ts';
import { AreaCatalog } from '../memory/areaCatalog.ts';
import { Fleet } from '../memory/fleet.ts';
import { Subscriptions } from '../memory/subscriptions.ts';
import { Tenancy } from '../memory/tenancy.ts';
import {
  adoptFeed,
  type ChangePage,
  FEED_RETENTION_MINUTES,
  type FeedStand,
  type PagePlace,
  selectChanges,
} from '../store/changes.ts';
import { deletePod, upsertPod } from '../store/pods.ts';
import type { Sql } from '../store/sql.ts';
import { type Ask, applyChanges, type Memory, type Turns } from './applyChanges.ts';
import { LOAD_DEADLINE_MS, loadFleet } from './loadFleet.ts';

/** How often the feed is read when no doorbell rings, and how often a pod says that it lives. */
const POLL_MS = 250;
const HEARTBEAT_MS = 1_000;
/** Memory older than this is no longer presented as the present: /readyz turns false. */
export const READY_LAG_MS = 5_000;
/** How long Postgres is silent is counted in ticks of this process, so that time in which the process itself stood still
 * (stopped, or busy with something else) is one tick and no silence of Postgres. */
const TICK_MS = 250;
const SILENT_TICKS = 8;
/** A Postgres that accepts and then says nothing for this long is asked anew, through another connection. */
const GIVE_UP_TICKS = 40;
const STOP_DEADLINE_MS = 2_000;
/** A minute less than changes are kept, for the clocks; no write is under way for as long as that. */
const AWAY_MS = (FEED_RETENTION_MINUTES - 1) * 60_000;

export interface FollowPorts extends Memory {
  readonly sql: Sql;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly podId: string;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/**
 * Keeps memory in step with Postgres. `catchUp` returns when memory holds everything that was committed before it
 * was called; concurrent calls share a read. Doorbells call it, a timer calls it, and a request that learns of a
 * newer version of its world calls it and waits.
 */
export class Follower {
  readonly #ports: FollowPorts;
  #stand: FeedStand = { cursor: '', history: '' };
  #contactAtMs: number | null = null;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #failing = false;
  #isStopped = false;
  #loadMs = 0;
  /** By performance.now(), which the setting of the clock does not touch. */
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #isSilent = false;

  constructor(ports: FollowPorts) {
    this.#ports = ports;
  }

  /** Loads everything and begins to follow. */
  async start(): Promise<void> {
    this.#stand = await this.#load(this.#ports);
    // Writers wait for this pod from here on. What they did not wait for before is read before anybody is answered.
    await this.#report();
    await this.catchUp();
    this.#timer = setInterval(() => this.poke(), POLL_MS);
  }

  /** Ends following and says so, so that writers no longer wait for this pod; not later than in two seconds. */
  async stop(): Promise<void> {
    const { sql, podId } = this.#ports;
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    const farewell = async (): Promise<void> => {
      await Promise.allSettled([this.#running]);
      await deletePod(sql, podId);
    };
    await withDeadline(farewell(), STOP_DEADLINE_MS, 'leaving the list of pods');
  }

  /** True once memory was filled: before that nothing may be answered from it. */
  get loaded(): boolean {
    return this.#contactAtMs !== null;
  }

  /** Up to where memory holds what was committed. */
  get stand(): FeedStand {
    return this.#stand;
  }

  /** How long the last full load took. */
  get loadMs(): number {
    return this.#loadMs;
  }

  /** Milliseconds since memory was last known to equal Postgres; Infinity before the first load. */
  lagMs(): number {
    if (this.#contactAtMs === null) return Number.POSITIVE_INFINITY;
    // A clock that was set back makes memory look old, never young.
    return Math.abs(this.#ports.clock() - this.#contactAtMs);
  }

  ready(): boolean {
    return this.lagMs() <= READY_LAG_MS;
  }

  /** True from two seconds without an answer of Postgres until it gives one: waiting longer is in vain. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Catches up without anybody waiting for it; a failure is logged once and shows in the lag. */
  poke(): void {
    if (this.#next !== null) return;
    this.catchUp().catch((error: unknown) => {
      if (!this.#failing)
        this.#ports.log.warn({ err: error }, 'the change feed cannot be read; trying again');
      this.#failing = true;
    });
  }

  /** Resolves when memory holds every write acknowledged before this call; rejects when Postgres cannot be read. */
  catchUp(): Promise<void> {
    if (this.#running === null) {
      this.#running = this.#read().finally(() => {
        this.#running = null;
      });
      return this.#running;
    }
    // The read under way may have begun before the write that this caller must see.
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        if (this.#isStopped) throw new DeadlineExceeded('this pod no longer follows the change feed');
        return this.catchUp();
      });
    return this.#next;
  }

  async #read(): Promise<void> {
    const { clock, log } = this.#ports;
    const startedAtMs = clock();
    const followed = await this.#follow(this.#ports, this.#stand); // in any case: it fails when Postgres does
    let { outcome } = followed;
    if (outcome !== 'lost' && this.#wasAway(startedAtMs)) outcome = 'lost';
    if (outcome === 'lost') {
      const isOther = followed.stand.history !== this.#stand.history;
      log.warn(
        {},
        `${isOther ? 'another server' : 'away from the change feed for too long'}; loading everything anew`,
      );
      await this.#loadAnew();
      await this.#report();
      // What writers did not wait for while this pod was away.
      const rest = await this.#follow(this.#ports, this.#stand);
      if (rest.outcome === 'lost') throw new DeadlineExceeded('the feed was lost again');
      this.#stand = rest.stand;
    } else {
      this.#stand = followed.stand;
    }
    this.#contactAtMs = startedAtMs;
    if (this.#failing) log.info({}, 'following the change feed again');
    this.#failing = false;
    const isReportDue = performance.now() - this.#reportedAtMs >= HEARTBEAT_MS;
    if (outcome !== 'moves' || isReportDue) await this.#report();
  }

  /**
   * For so long that changes may have been pruned of which the horizon does not tell: of a write that was under way in
   * the cursor's snapshot while a later one, which became the horizon, was committed in it.
   */
  #wasAway(nowMs: number): boolean {
    return this.#contactAtMs !== null && nowMs - this.#contactAtMs > AWAY_MS;
  }

  /**
   * Applies everything that was committed after `from`, page by page. 'lost': that cannot be told, because it was pruned
   * or because this is another server, which may lack transactions that memory knows and gives their numbers again.
   */
  async #follow(
    memory: Memory,
    from: FeedStand,
  ): Promise<{ outcome: 'moves' | 'writes' | 'lost'; stand: FeedStand }> {
    const { sql, turns } = this.#ports;
    const versions = new Map<number, number>();
    let place: PagePlace | null = null;
    let stand = from;
    do {
      const page: ChangePage = await this.#ask(selectChanges(sql, from.cursor, place));
      stand = { cursor: page.upTo, history: page.history };
      if (page.pruned || page.history !== from.history) return { outcome: 'lost', stand };
      await applyChanges({ sql, turns, ask: this.#ask }, memory, page.changes);
      for (const { worldId, worldVersion } of page.changes) {
        if (worldId === null || worldVersion === null) continue;
        versions.set(worldId, Math.max(worldVersion, versions.get(worldId) ?? 0));
      }
      place = page.next;
    } while (place !== null);
    // Only now: one write may reach over several pages.
    for (const [worldId, version] of versions) memory.fleet.raiseVersion(worldId, version);
    return { outcome: versions.size > 0 ? 'writes' : 'moves', stand };
  }

  /** Fills an empty memory. */
  async #load(memory: Memory): Promise<FeedStand> {
    const { sql, turns, keyring, clock, log } = this.#ports;
    const startedAtMs = clock();
    await adoptFeed(sql);
    keyring.clear();
    const tell = (loaded: number, total: number) => log.info({ loaded, total }, 'loading devices');
    const loading = loadFleet(sql, turns, memory, tell);
    const stand = await withDeadline(loading, LOAD_DEADLINE_MS, 'loading memory');
    // A key that was read since may have changed before the snapshot; the feed will not tell of that.
    keyring.clear();
    this.#loadMs = clock() - startedAtMs;
    return stand;
  }

  /**
   * Fills a memory beside the present one, which goes on answering and taking points, and puts it in its place from one
   * moment to the next: what is gone from Postgres is then gone, and what is there was never missing.
   */
  async #loadAnew(): Promise<void> {
    const { fleet, areas, tenancy, subscriptions, keyring } = this.#ports;
    const loaded = {
      fleet: new Fleet(),
      areas: new AreaCatalog(),
      tenancy: new Tenancy(),
      subscriptions: new Subscriptions(),
    };
    try {
      const from = await this.#load({ ...loaded, keyring });
      // What this pod commits from here on is in neither the load nor the read that follows.
      fleet.prepareFor(loaded.fleet);
      const { outcome, stand } = await this.#follow({ ...loaded, keyring }, from);
      if (outcome === 'lost') throw new DeadlineExceeded('the feed was lost while memory was loaded');
      fleet.adopt(loaded.fleet);
      areas.adopt(loaded.areas);
      tenancy.adopt(loaded.tenancy);
      subscriptions.adopt(loaded.subscriptions);
      this.#stand = stand;
    } finally {
      fleet.prepareFor(null);
    }
  }

  async #report(): Promise<void> {
    const { sql, podId } = this.#ports;
    this.#reportedAtMs = performance.now();
    await this.#ask(upsertPod(sql, podId, this.#stand));
  }

  /** Waits for an answer of Postgres, and not for ever. */
  readonly #ask: Ask = (answer) =>
    new Promise((resolve, reject) => {
      let ticks = 0;
      const ticking = setInterval(() => {
        ticks++;
        // The answer may wait in a socket: they are read once before this tick counts.
        setImmediate(judge);
      }, TICK_MS);
      let isOver = false;
      const end = (): void => {
        clearInterval(ticking);
        isOver = true;
      };
      const judge = (): void => {
        if (isOver || ticks < SILENT_TICKS) return;
        this.#isSilent = true;
        if (ticks < GIVE_UP_TICKS) return;
        end();
        reject(new DeadlineExceeded('Postgres did not answer'));
      };
      const settle = (): void => {
        // What comes after it was given up says nothing of the question that is asked now.
        if (!isOver) this.#isSilent = false;
        end();
      };
      answer.finally(settle).then(resolve, reject);
    });
}
