import type { KeyState } from '../../access/credentials.ts';
import type { LiveChunk, StreamSink } from '../../http/answer.ts';
import type { DevicesRead, EventsRead } from '../cursors.ts';
import type { Viewer } from './viewer.ts';

/** What a reader has been sent; a part that it does not want is null. */
export interface StreamCursor {
  readonly devices: DevicesRead | null;
  readonly events: EventsRead | null;
  /** Where views are sent: what time alone has changed until then was sent; epoch ms. */
  readonly agedToMs: number;
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
  /** Null: it is sent every device. */
  readonly viewer: Viewer | null;
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
    viewer: Viewer | null = null,
  ) {
    this.#endsAtMs = endsAtMs ?? Number.POSITIVE_INFINITY;
    this.keyId = id;
    this.accountId = accountId;
    this.cursor = cursor;
    this.#sink = sink;
    this.viewer = viewer;
    this.lastBeatMs = nowMs;
  }

  get pendingBytes(): number {
    return this.#sink.pendingBytes;
  }

  /** Memory that is held for it. */
  get heldBytes(): number {
    return this.#sink.pendingBytes + (this.viewer?.bytes ?? 0);
  }

  get isFull(): boolean {
    return this.#sink.pendingBytes > PENDING_MAX_BYTES;
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.#endsAtMs;
  }

  write(chunk: LiveChunk): void {
    if (!this.isClosed) this.#sink.write(chunk);
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

/** Of the readers of one account together, so that they do not take the memory of all. */
const HELD_OF_ACCOUNT_BYTES = 64 * 1024 * 1024;

/** The readers that must be cut off so that no more is held for an account than may be: those with the most. */
export function heaviest(readers: Iterable<StreamReader>): StreamReader[] {
  const heavy = Map.groupBy(
    [...readers].filter(({ heldBytes }) => heldBytes > 0),
    ({ accountId }) => accountId,
  );
  return [...heavy.values()].flatMap((ofAccount) => {
    let bytes = ofAccount.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
    if (bytes <= HELD_OF_ACCOUNT_BYTES) return [];
    const cut: StreamReader[] = [];
    for (const reader of ofAccount.sort((a, b) => b.heldBytes - a.heldBytes)) {
      if (bytes <= HELD_OF_ACCOUNT_BYTES) break;
      bytes -= reader.heldBytes;
      cut.push(reader);
    }
    return cut;
  });
}
