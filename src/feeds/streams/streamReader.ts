import type { KeyState } from '../../access/credentials.ts';
import type { StreamSink } from '../../http/answer.ts';
import type { DevicesRead, EventsRead } from '../cursors.ts';

/** What a reader has been sent; a part that it does not want is null. */
export interface StreamCursor {
  readonly devices: DevicesRead | null;
  readonly events: EventsRead | null;
}

/** Beyond it a reader is left behind until it has taken what was written. With one piece more this stays under 1 MB. */
const PENDING_MAX_BYTES = 512 * 1024;

/** One open stream. */
export class StreamReader {
  readonly keyId: number;
  readonly accountId: number;
  /** A stream of a session ends with it. */
  readonly #endsAtMs: number;
  readonly #sink: StreamSink;
  cursor: StreamCursor;
  lastBeatMs: number;
  /** Since when it takes nothing; null while it keeps up. */
  stalledSinceMs: number | null = null;
  isClosed = false;
  /** How often it was visited since then. */
  visitsSinceEnd = 0;

  constructor(
    { id, accountId, endsAtMs }: Pick<KeyState, 'id' | 'accountId' | 'endsAtMs'>,
    cursor: StreamCursor,
    sink: StreamSink,
    nowMs: number,
  ) {
    this.#endsAtMs = endsAtMs ?? Number.POSITIVE_INFINITY;
    this.keyId = id;
    this.accountId = accountId;
    this.cursor = cursor;
    this.#sink = sink;
    this.lastBeatMs = nowMs;
  }

  get pendingBytes(): number {
    return this.#sink.pendingBytes;
  }

  get isFull(): boolean {
    return this.#sink.pendingBytes > PENDING_MAX_BYTES;
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.#endsAtMs;
  }

  write(bytes: Buffer): void {
    if (!this.isClosed) this.#sink.write(bytes);
  }

  /** Resolves when the reader has taken what was written, or is gone. */
  drained(): Promise<void> {
    return this.isClosed || this.#sink.pendingBytes === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#sink.onDrained(resolve));
  }

  end(last: string): void {
    if (this.isClosed) return;
    this.isClosed = true;
    if (this.#sink.pendingBytes > 0 && this.stalledSinceMs !== null) this.#sink.destroy();
    else this.#sink.end(last);
  }

  /** Ends it without waiting until what was written is taken. */
  cut(): void {
    this.isClosed = true;
    this.#sink.destroy();
  }
}

/** Of the readers of one account together, so that its slow readers do not take the memory of all. */
const PENDING_OF_ACCOUNT_BYTES = 64 * 1024 * 1024;

/** The readers that must be cut off so that no account has more pending than it may: those with the most. */
export function heaviest(readers: Iterable<StreamReader>): StreamReader[] {
  const slow = Map.groupBy(
    [...readers].filter(({ pendingBytes }) => pendingBytes > 0),
    ({ accountId }) => accountId,
  );
  return [...slow.values()].flatMap((ofAccount) => {
    let bytes = ofAccount.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);
    if (bytes <= PENDING_OF_ACCOUNT_BYTES) return [];
    const cut: StreamReader[] = [];
    for (const reader of ofAccount.sort((a, b) => b.pendingBytes - a.pendingBytes)) {
      if (bytes <= PENDING_OF_ACCOUNT_BYTES) break;
      bytes -= reader.pendingBytes;
      cut.push(reader);
    }
    return cut;
  });
}
