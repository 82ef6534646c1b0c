import { invariant } from '../lib/errors.ts';
import type { Clock } from '../lib/time.ts';
import { type VarintReader, VarintWriter } from '../lib/varints.ts';
import { type Server, ServerStarts } from './serverStarts.ts';

/** A position in the log of changes, which is ordered by transaction, then by id. */
export interface LogPosition {
  readonly xid: number;
  readonly id: number;
}

/** A read of all that `upTo` sees and its reader does not. It has come as far as `after`. */
export interface OpenRead {
  readonly upTo: Snapshot;
  readonly after: LogPosition;
}

/** How far a reader has come in the log of changes: a pod in the change log, or a customer in a feed. */
export interface LogCursor {
  /** The reader has everything of these transactions. */
  readonly seen: Snapshot;
  readonly open: OpenRead | null;
}

/** All that one server has committed so far. */
export interface LogEnd {
  readonly seen: Snapshot;
  readonly server: Server;
}

/** The longest snapshot in a customer's cursor: at most three different ones fit into 500 characters. */
export const SNAPSHOT_MAX_BYTES = 60;

/** A snapshot that ends further behind another than this counts as lacking something. */
const GAP_MAX = 256;

/**
 * Which transactions a reader has seen: a snapshot of Postgres (pg_snapshot). Transactions commit out of order, so a
 * single number cannot say it. Transaction ids are xid8, which never wrap; they are exact as numbers up to 2^53.
 */
export class Snapshot {
  /** Every transaction below is seen. */
  readonly xmin: number;
  /** This transaction and all above are not seen. */
  readonly xmax: number;
  /** Those in between that are not seen, ascending. */
  readonly running: readonly number[];

  constructor(xmin: number, xmax: number, running: readonly number[]) {
    this.xmin = xmin;
    this.xmax = xmax;
    this.running = running;
  }

  /** The text of a pg_snapshot, "xmin:xmax:a,b". */
  static parse(text: string): Snapshot {
    const [xmin, xmax, running] = text.split(':');
    invariant(xmin && xmax && running !== undefined, 'a snapshot has three parts');
    return new Snapshot(Number(xmin), Number(xmax), running === '' ? [] : running.split(',').map(Number));
  }

  /** As Postgres writes it. */
  toString(): string {
    return `${this.xmin}:${this.xmax}:${this.running.join(',')}`;
  }

  sees(xid: number): boolean {
    if (xid < this.xmin) return true;
    return xid < this.xmax && !this.running.includes(xid);
  }

  /** Whether every transaction that `other` sees is seen here. */
  contains(other: Snapshot): boolean {
    // Beyond our end `other` may still see nothing.
    for (let xid = this.xmax; xid < other.xmax; xid++) {
      if (other.sees(xid) || xid - this.xmax > GAP_MAX) return false;
    }
    return this.running.every((xid) => !other.sees(xid));
  }

  equals(other: Snapshot): boolean {
    return (
      this.xmin === other.xmin &&
      this.xmax === other.xmax &&
      this.running.length === other.running.length &&
      this.running.every((xid, n) => xid === other.running[n])
    );
  }

  /**
   * This snapshot in at most `maxBytes` of `write`, without the newest transactions if they take more. A later snapshot
   * that is cut short contains an earlier one: no transaction that had ended by the earlier time runs again.
   */
  within(maxBytes: number): Snapshot {
    if (this.running.length * 9 + 20 <= maxBytes) return this;
    let cut: Snapshot = this;
    while (cut.bytes > maxBytes) {
      const last = cut.running.at(-1);
      invariant(last !== undefined, 'a snapshot without running transactions is short');
      const running = cut.running.slice(0, -1);
      cut = new Snapshot(running[0] ?? last, last, running);
    }
    return cut;
  }

  get bytes(): number {
    const writer = new VarintWriter();
    this.write(writer);
    return writer.length;
  }

  write(to: VarintWriter): void {
    to.number(this.xmin);
    to.number(this.xmax - this.xmin);
    to.number(this.running.length);
    let before = this.xmin;
    for (const xid of this.running) {
      to.number(xid - before);
      before = xid;
    }
  }

  static read(from: VarintReader): Snapshot {
    const xmin = from.number();
    const xmax = xmin + from.number();
    const running: number[] = [];
    let before = xmin;
    for (let left = from.number(); left > 0; left--) {
      before += from.number();
      running.push(before);
    }
    return new Snapshot(xmin, xmax, running);
  }
}

/** Worlds by transaction. */
export type OwnTransactions = ReadonlyMap<number, ReadonlySet<number>>;

/** How a change came into memory: through the change log, or with a commit of this pod. */
export type AppliedBy = 'log' | 'own commit';

/** Own transactions that are known before they are followed; a second of them at full load is a few hundred. */
export const OWN_MAX = 10_000;
/** A reader of feeds is expected again within this time. */
const READER_MS = 60_000;
const NOTHING = new Snapshot(0, 0, []);

/**
 * Which transactions the memory of this pod holds, of which server, and when that was last known to be all. Cursors of
 * customers are compared with it, and so is the age up to which callers are answered from memory.
 */
export class AppliedTransactions {
  readonly #clock: Clock;
  #writes: LogEnd = { seen: NOTHING, server: { history: '', lineage: '', start: 0, walBytes: 0, xmax: 0 } };
  #positions = NOTHING;
  #followed = NOTHING;
  readonly #own = new Map<number, ReadonlySet<number>>();
  readonly #listeners = new Set<(by: AppliedBy) => void>();
  #readerAtMs = Number.NEGATIVE_INFINITY;
  /** The starts of the server, up to this one. */
  starts = new ServerStarts([]);
  /** While everything is reloaded from another server, until memory has all of it: some is of the one, some of the other. */
  isMixed = false;
  /** When memory was last known to hold all writes; null before it is filled. */
  heldAtMs: number | null = null;
  /** The same, with a report to the list of pods before: from then on writers wait for this pod. */
  writesAtMs: number | null = null;
  /** When memory was last known to hold all writes and all positions. */
  positionsAtMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True once memory was filled. Before that nothing may be answered from it. */
  get isLoaded(): boolean {
    return this.positionsAtMs !== null;
  }

  /** Memory holds every write that was committed up to here. */
  get writes(): LogEnd {
    return this.#writes;
  }

  /** The server to which all transactions here belong. */
  get server(): Server {
    return this.#writes.server;
  }

  /** Memory holds everything of these transactions. Shortened so that it fits into a cursor. */
  get followed(): Snapshot {
    return this.#followed;
  }

  /** The same, not shortened. */
  get followedWhole(): Snapshot {
    return this.#positions;
  }

  /** False while memory holds position updates that `followed` does not contain. */
  get isComplete(): boolean {
    return this.#positions === this.#writes.seen;
  }

  /** Transactions of this pod whose position updates memory holds before they are followed, with the worlds of the devices. */
  get own(): OwnTransactions {
    return this.#own;
  }

  /** The change log was applied up to here; of position updates up to `positions`. */
  advance(writes: LogEnd, positions: Snapshot = writes.seen): void {
    // Transaction ids mean something else on another server.
    if (writes.server.history !== this.server.history) this.#own.clear();
    this.#writes = writes;
    this.isMixed = false;
    if (positions === this.#positions) return;
    this.#positions = positions;
    this.#followed = positions.within(SNAPSHOT_MAX_BYTES);
    for (const xid of this.#own.keys()) if (this.#followed.sees(xid)) this.#own.delete(xid);
  }

  /**
   * Must be called when memory holds all position updates, of devices of these worlds, of a transaction of this pod. While
   * the log cannot be read they pile up: readers get those beyond `OWN_MAX` when they are followed, as on other pods.
   */
  addOwn(xid: number, worldIds: ReadonlySet<number>): void {
    if (this.#followed.sees(xid)) return;
    if (this.#own.size < OWN_MAX) this.#own.set(xid, worldIds);
    this.announce('own commit');
  }

  /** Calls `listener` whenever memory may have changed; it must not throw. */
  onApplied(listener: (by: AppliedBy) => void): void {
    this.#listeners.add(listener);
  }

  announce(by: AppliedBy): void {
    for (const listener of this.#listeners) listener(by);
  }

  /** Must be called when a reader of feeds calls: then this pod follows its own commits at once. */
  noteReader(): void {
    this.#readerAtMs = this.#clock();
  }

  get hasReaders(): boolean {
    return this.age(this.#readerAtMs) < READER_MS;
  }

  /** Milliseconds since memory was last known to equal Postgres; Infinity before the first load. */
  lagMs(): number {
    return this.age(this.positionsAtMs);
  }

  /** The same without positions, which authorize nobody. */
  heldLagMs(): number {
    return this.age(this.heldAtMs);
  }

  /**
   * The same, as far as writers knew of this pod: for as long as this is short, no write is acknowledged that memory
   * lacks. Grows while Postgres can be read and not written.
   */
  writesLagMs(): number {
    return this.age(this.writesAtMs);
  }

  /** A clock that was set back makes memory look old, never young. */
  age(atMs: number | null): number {
    return atMs === null ? Number.POSITIVE_INFINITY : Math.abs(this.#clock() - atMs);
  }
}

/** What keeps memory in step with the change log (coherence/follower.ts), for those who answer from memory. */
export interface LogFollower {
  readonly applied: AppliedTransactions;
  /** Resolves when memory holds every write acknowledged before this call. Rejects when Postgres cannot be read. */
  catchUp(): Promise<void>;
}

/** What may be new in a world. */
export type Novelty = 'devices' | 'events';

/**
 * Notes in which of the followed worlds something is new. When nobody follows a world, that costs a look at the size of a
 * map.
 */
export class WorldWatch {
  /** How many follow a world. */
  readonly #followers = new Map<number, number>();
  readonly #touched: Readonly<Record<Novelty, Set<number>>> = { devices: new Set(), events: new Set() };

  /** From now on something new in this world is noted; to be ended by `unfollow`. */
  follow(worldId: number): void {
    this.#followers.set(worldId, (this.#followers.get(worldId) ?? 0) + 1);
  }

  unfollow(worldId: number): void {
    const count = this.#followers.get(worldId) ?? 0;
    if (count > 1) this.#followers.set(worldId, count - 1);
    else this.#followers.delete(worldId);
  }

  touch(novelty: Novelty, worldId: number): void {
    if (this.#followers.size > 0 && this.#followers.has(worldId)) this.#touched[novelty].add(worldId);
  }

  /** Everything may be new. */
  touchAll(): void {
    for (const worldId of this.#followers.keys()) {
      this.#touched.devices.add(worldId);
      this.#touched.events.add(worldId);
    }
  }

  /** What was noted since `clear`. */
  touched(novelty: Novelty): ReadonlySet<number> {
    return this.#touched[novelty];
  }

  clear(): void {
    this.#touched.devices.clear();
    this.#touched.events.clear();
  }
}
