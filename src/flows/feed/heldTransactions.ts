import { SNAPSHOT_MAX_BYTES } from '../../feeds/readerCursor.ts';
import { type ServerMark, serverMark } from '../../feeds/serverMark.ts';
import { Snapshot } from '../../feeds/snapshot.ts';
import type { FeedCursor } from '../../store/feed/changes.ts';
import { insertPromotion, selectPromotions } from '../../store/feed/promotions.ts';
import type { Sql } from '../../store/sql/sql.ts';
import type { ReplyMonitor } from './replyMonitor.ts';

/** Which transactions memory holds, and of which server: what the cursors of readers are compared with. */
export class HeldTransactions {
  readonly #sql: Sql;
  readonly #awaitReply: ReplyMonitor['awaitReply'];
  #followed: { readonly text: string; readonly snapshot: Snapshot } | null = null;
  #server: { readonly of: FeedCursor; readonly mark: ServerMark } | null = null;
  /** Transactions of this pod whose position updates memory holds before they are followed. */
  readonly #own = new Set<number>();
  #promotions: ReadonlyMap<number, number> = new Map();

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
  server(cursor: FeedCursor): ServerMark {
    if (this.#server?.of !== cursor) this.#server = { of: cursor, mark: serverMark(cursor) };
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

  /** The promotions of replicas of this database, with how far each had followed the server before it. */
  get promotions(): ReadonlyMap<number, number> {
    return this.#promotions;
  }

  async readPromotions(): Promise<void> {
    this.#promotions = await this.#awaitReply(selectPromotions(this.#sql));
  }

  /** Records how far the new server had followed the one before it, which only a pod that knew both servers knows. */
  async notePromotion(from: FeedCursor, history: string): Promise<void> {
    const before = serverMark(from);
    const now = serverMark({ history });
    const isPromoted = before.lineage === now.lineage && before.timeline < now.timeline;
    if (isPromoted) await this.#awaitReply(insertPromotion(this.#sql));
    await this.readPromotions();
  }
}
