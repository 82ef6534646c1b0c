import type { FeedCursor } from '../changelog/changes.sql.ts';
import { selectServerStarts } from '../changelog/database.sql.ts';
import { type LiveServer, ServerStarts, serverMark } from '../changelog/serverMark.ts';
import { SNAPSHOT_MAX_BYTES, Snapshot } from '../changelog/snapshot.ts';
import type { Sql } from '../postgres/sql.ts';
import type { ReplyMonitor } from './postgresHealth.ts';

/** Which transactions memory holds, and of which server: what the cursors of readers are compared with. */
export class HeldTransactions {
  readonly #sql: Sql;
  readonly #awaitReply: ReplyMonitor['awaitReply'];
  #followed: { readonly text: string; readonly snapshot: Snapshot } | null = null;
  #server: { readonly of: FeedCursor; readonly mark: LiveServer } | null = null;
  /** Transactions of this pod whose position updates memory holds before they are followed. */
  readonly #own = new Set<number>();
  #starts = new ServerStarts([]);

  constructor(sql: Sql, awaitReply: ReplyMonitor['awaitReply']) {
    this.#sql = sql;
    this.#awaitReply = awaitReply;
  }

  /** A snapshot up to which memory has followed, shortened so that it fits into a reader's cursor. */
  followed(text: string): Snapshot {
    if (this.#followed?.text !== text) {
      const snapshot = Snapshot.parse(text).within(SNAPSHOT_MAX_BYTES);
      this.#followed = { text, snapshot };
      for (const xid of this.#own) if (snapshot.sees(xid)) this.#own.delete(xid);
    }
    return this.#followed.snapshot;
  }

  /** The server to which a cursor belongs. */
  server(cursor: FeedCursor): LiveServer {
    if (this.#server?.of !== cursor)
      this.#server = {
        of: cursor,
        mark: serverMark({ ...cursor, xmax: Snapshot.parse(cursor.snapshot).xmax }),
      };
    return this.#server.mark;
  }

  addOwn(xid: number): void {
    this.#own.add(xid);
  }

  isOwn(xid: number): boolean {
    return this.#own.has(xid);
  }

  /** Transaction ids mean something else on another server. */
  dropOwn(): void {
    this.#own.clear();
  }

  /** The starts of the server, up to that of the last cursor. */
  get starts(): ServerStarts {
    return this.#starts;
  }

  async readStarts(): Promise<void> {
    this.#starts = new ServerStarts(await this.#awaitReply(selectServerStarts(this.#sql)));
  }
}
