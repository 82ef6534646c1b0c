import { createHash } from 'node:crypto';

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
  holdAll(now: ServerState, seen: ServerState): boolean {
    const { lineage, start } = seen;
    if (now.lineage === lineage && this.has(now.start) && now.start === start) return true;
    const lacking = this.lacking(now, seen);
    return lacking !== null && lacking.walBytes === 0 && lacking.transactions === 0;
  }

  /**
   * How much of what `seen` has the server `now` lacks, at most: bytes of the write-ahead log, and transaction ids that are
   * given again. Zeros where it has everything, and null where that start is not known.
   */
  lacking(
    now: ServerState,
    { lineage, start, walBytes, xmax }: ServerState,
  ): { walBytes: number; transactions: number } | null {
    const kept = this.#kept.get(start);
    if (now.lineage !== lineage || !this.has(now.start) || kept === undefined) return null;
    return {
      walBytes: Math.max(0, walBytes - kept.walBytes),
      transactions: Math.max(0, xmax - kept.nextXid),
    };
  }
}
