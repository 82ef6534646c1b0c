import { createHash } from 'node:crypto';
import { invariant } from '../lib/errors.ts';
import { type VarintReader, VarintWriter } from '../lib/varints.ts';

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

/** The server that a cursor was made on, and how far it was then. */
export interface ServerState {
  /** Names the database, whatever its timeline. */
  readonly lineage: string;
  /** The start of the server (table server_start). */
  readonly start: number;
  /** A position in the write-ahead log up to which everything that the cursor has seen is on disk, in bytes. */
  readonly walBytes: number;
  /** No transaction from here on was seen. */
  readonly xmax: number;
}

/** A server that has just answered. */
export interface Server extends ServerState {
  /** What server_history() says: under the same name a transaction keeps its number. */
  readonly history: string;
}

const LINEAGE_CHARS = 10;

/** `history`: system identifier, timeline, database, and perhaps more, as server_history() writes it. */
export function serverOf(answer: Omit<Server, 'lineage'>): Server {
  const [system = '', , database = ''] = answer.history.split('/');
  const hash = createHash('sha256').update(`${system}/${database}`);
  return { ...answer, lineage: hash.digest('base64url').slice(0, LINEAGE_CHARS) };
}

/** Whether transaction ids of the two mean the same. */
export function isSameServer(a: Server, b: Server): boolean {
  return a.history === b.history;
}

/** A start of the server. */
export interface ServerStart {
  readonly start: number;
  /** It has what earlier starts wrote to the log up to here. */
  readonly walBytes: number;
  /** It gives this transaction id and all above. */
  readonly nextXid: number;
}

/** What later starts of the server still have of earlier ones. */
export class ServerStarts {
  /** By start: the least that the later ones have of it. */
  readonly #kept = new Map<number, { walBytes: number; nextXid: number }>();

  /** `starts`: oldest first. */
  constructor(starts: readonly ServerStart[]) {
    let walBytes = Number.POSITIVE_INFINITY;
    let nextXid = Number.POSITIVE_INFINITY;
    for (const later of starts.toReversed()) {
      this.#kept.set(later.start, { walBytes, nextXid });
      walBytes = Math.min(walBytes, later.walBytes);
      nextXid = Math.min(nextXid, later.nextXid);
    }
  }

  has(start: number): boolean {
    return this.#kept.has(start);
  }

  /**
   * Whether the server `now` has everything that a cursor has seen: it runs since then, or each later start had the log
   * up to there and gave no transaction id again. Nothing is known of a start that is not among these.
   */
  holdAll(now: ServerState, { lineage, start, walBytes, xmax }: ServerState): boolean {
    if (now.lineage !== lineage || !this.has(now.start)) return false;
    if (now.start === start) return true;
    const kept = this.#kept.get(start);
    return kept !== undefined && walBytes <= kept.walBytes && xmax <= kept.nextXid;
  }
}
