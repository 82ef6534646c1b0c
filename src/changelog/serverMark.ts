import { createHash } from 'node:crypto';

/** Names the database whose transaction ids a cursor is made of, and how far that was. */
export interface ServerMark {
  /** Of the database, whatever its timeline. */
  readonly lineage: string;
  /** The start of the server (table server_start). */
  readonly start: number;
  /** A position in the write-ahead log up to which everything that the cursor has seen is on disk, in bytes. */
  readonly walBytes: number;
  /** No transaction from here on was seen. */
  readonly xmax: number;
}

/** A server that has just answered. */
export interface LiveServer extends ServerMark {
  /** What server_history() says: under the same name a transaction keeps its number. */
  readonly history: string;
}

/** A start of the server. */
export interface ServerStart {
  readonly start: number;
  /** It has what earlier starts wrote to the log up to here. */
  readonly walBytes: number;
  /** It gives this transaction id and all above. */
  readonly nextXid: number;
}

/** What an answer of Postgres says of its server. */
export interface ServerAnswer {
  /** What server_history() says: system identifier, timeline, database, and perhaps more. */
  readonly history: string;
  readonly start?: number;
  readonly flushedBytes?: number;
  readonly xmax?: number;
}

const LINEAGE_CHARS = 10;

/** The mark of the server that has answered this. */
export function serverMark({ history, start = 0, flushedBytes = 0, xmax = 0 }: ServerAnswer): LiveServer {
  const [system = '', , database = ''] = history.split('/');
  const hash = createHash('sha256').update(`${system}/${database}`);
  const lineage = hash.digest('base64url').slice(0, LINEAGE_CHARS);
  return { history, lineage, start, walBytes: flushedBytes, xmax };
}

/** Whether transaction ids of the two mean the same. */
export function isSameServer(a: LiveServer, b: LiveServer): boolean {
  return a.history === b.history;
}

/** What of earlier starts is still there. */
export class ServerStarts {
  /** By start: what the later ones have of it at least. */
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
   * Whether a server has everything that a cursor has seen: it runs since then, or each later start had the log up to there
   * and gave no transaction id again. `now`: the start that is followed; nothing is known of one that is not among these.
   */
  holdAll(now: ServerMark, { lineage, start, walBytes, xmax }: ServerMark): boolean {
    if (now.lineage !== lineage || !this.has(now.start)) return false;
    if (now.start === start) return true;
    const kept = this.#kept.get(start);
    return kept !== undefined && walBytes <= kept.walBytes && xmax <= kept.nextXid;
  }
}
