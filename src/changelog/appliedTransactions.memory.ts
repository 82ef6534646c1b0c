import { type Server, ServerStarts } from './servers.ts';
import { type LogEnd, SNAPSHOT_MAX_BYTES, Snapshot } from './snapshot.ts';

/** How a change came into memory: through the change log, or with a commit of this pod. */
export type AppliedBy = 'log' | 'own commit';

const NONE = new Snapshot(0, 0, []);

/** Which transactions the memory of this pod holds, and of which server. Cursors of customers are compared with it. */
export class AppliedTransactions {
  #writes: LogEnd = { seen: NONE, server: { history: '', lineage: '', start: 0, walBytes: 0, xmax: 0 } };
  #positions = NONE;
  #followed = NONE;
  readonly #own = new Set<number>();
  #starts = new ServerStarts([]);
  readonly #listeners = new Set<(by: AppliedBy) => void>();

  /** Memory holds every write that was committed up to here. */
  get writes(): LogEnd {
    return this.#writes;
  }

  /** The server to which all transactions here belong. */
  get server(): Server {
    return this.#writes.server;
  }

  /** The starts of the server, up to this one. */
  get starts(): ServerStarts {
    return this.#starts;
  }

  /** Memory holds everything of these transactions. Shortened so that it fits into a cursor. */
  get followed(): Snapshot {
    return this.#followed;
  }

  /** False while memory holds position updates that `followed` does not contain. */
  get isComplete(): boolean {
    return this.#positions === this.#writes.seen;
  }

  /** Transactions of this pod whose position updates memory holds before they are followed. */
  get own(): ReadonlySet<number> {
    return this.#own;
  }

  /** The change log was applied up to here; of position updates up to `positions`. */
  advance(writes: LogEnd, positions: Snapshot = writes.seen): void {
    // Transaction ids mean something else on another server.
    if (writes.server.history !== this.server.history) this.#own.clear();
    this.#writes = writes;
    if (positions === this.#positions) return;
    this.#positions = positions;
    this.#followed = positions.within(SNAPSHOT_MAX_BYTES);
    for (const xid of this.#own) if (this.#followed.sees(xid)) this.#own.delete(xid);
  }

  noteStarts(starts: ServerStarts): void {
    this.#starts = starts;
  }

  /** Memory holds the position updates of a transaction that this pod has committed. False if it was followed before. */
  addOwn(xid: number): boolean {
    if (this.#followed.sees(xid)) return false;
    this.#own.add(xid);
    this.announce('own commit');
    return true;
  }

  /** Calls `listener` whenever memory may have changed; it must not throw. */
  onApplied(listener: (by: AppliedBy) => void): void {
    this.#listeners.add(listener);
  }

  announce(by: AppliedBy): void {
    for (const listener of this.#listeners) listener(by);
  }
}

/** What keeps memory in step with the change log (coherence/follower.ts), for those who answer from memory. */
export interface LogFollower {
  readonly applied: AppliedTransactions;
  /** Resolves when memory holds every write acknowledged before this call. Rejects when Postgres cannot be read. */
  catchUp(): Promise<void>;
  /** Must be called when a reader of feeds calls: then this pod follows its own commits at once. */
  noteReader(): void;
  /** Milliseconds for which this pod may lack an acknowledged write. */
  writesLagMs(): number;
}
