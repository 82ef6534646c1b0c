import type { Changed } from '../devices/changes/worldChanges.ts';
import type { Handover } from '../http/answer.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { RecordedEvent } from './eventFeed.sql.ts';
import type { HeldBytes, UnreadAnswers } from './unreadAnswers.ts';

/** Where a page ends. */
export interface PageEnd {
  readonly cursor: string;
  readonly hasMore: boolean;
}

/** Writes pages as bytes, in steps of less than a millisecond. */
export interface FeedFormat {
  changes(items: readonly Changed[], end: PageEnd, nowMs: number): Steps<Buffer>;
  events(events: readonly RecordedEvent[], end: PageEnd): Steps<Buffer>;
}

/** A page as it is sent; `handover` is null where it is too small to be counted. */
export interface FeedPage {
  readonly bytes: Buffer;
  readonly handover: Handover | null;
}

/**
 * 'malformed': the cursor is none of this account. 'expired': it cannot be followed any more. 'unread': answers of the
 * account that nobody reads fill its room. 'crowded': so many of its calls wait already that no other may.
 */
export type FeedAnswer = FeedPage | 'malformed' | 'expired' | 'unread' | 'crowded';

/** A page that several calls are answered with. To be released when all have theirs. */
export class SharedPage {
  readonly #bytes: Buffer;
  readonly #held: HeldBytes;

  constructor(unread: UnreadAnswers, accountId: number, bytes: Buffer) {
    this.#bytes = bytes;
    this.#held = unread.hold(accountId, bytes.length);
  }

  take(): FeedPage {
    return { bytes: this.#bytes, handover: this.#held.handover() };
  }

  /** For the only call that it is for, or the last. */
  takeLast(): FeedPage {
    const page = this.take();
    this.release();
    return page;
  }

  release(): void {
    this.#held.release();
  }
}
