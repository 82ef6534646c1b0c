import { invariant } from '../lib/invariant.ts';
import { type VarintReader, VarintWriter } from '../lib/varints.ts';
import type { Server } from './servers.ts';

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
   * This snapshot in at most so many bytes of `write`: the newest transactions are left out where it takes more. A later
   * snapshot that is cut short contains an earlier one: of the transactions that ran at the earlier time, no more run.
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
