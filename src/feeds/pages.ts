import { changedDeviceJson, removedDeviceJson } from '../devices/device.ts';
import { DeviceTexts } from '../devices/deviceTexts.memory.ts';
import type { Changed } from '../devices/worldChanges.memory.ts';
import type { Handover } from '../http/answer.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import type { RecordedEvent } from './eventFeed.sql.ts';

/** A page as it is sent; `handover` is null where it is too small to be counted. */
export interface FeedPage {
  readonly bytes: Buffer;
  readonly handover: Handover | null;
}

/**
 * 'malformed': the cursor is not one of this account. 'other_filters': it was made with other filters. 'expired': it
 * can no longer be followed. 'unread': the account has too many answers that it does not read. 'crowded': too many of
 * its calls wait already.
 */
export type FeedAnswer = FeedPage | 'malformed' | 'other_filters' | 'expired' | 'unread' | 'crowded';

/** Where a page ends. */
export interface PageEnd {
  readonly cursor: string;
  readonly hasMore: boolean;
}

/** Some hundred microseconds of work. */
const ITEMS_PER_STEP = 64;
const OPENING = '{"data":[';
const COMMA = 0x2c;

/** A page as `{ data, meta }`, in steps. Texts are written straight into the bytes, and are not joined before. */
export function* pageBytes<T>(
  items: readonly T[],
  textOf: (item: T) => string,
  { cursor, hasMore }: PageEnd,
): Steps<Buffer> {
  const closing = `],"meta":{"cursor":"${cursor}","has_more":${hasMore}}}`;
  const texts: string[] = [];
  let length = OPENING.length + closing.length;
  for (const item of items) {
    if (texts.length % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    const text = textOf(item);
    length += Buffer.byteLength(text) + 1;
    texts.push(text);
  }
  const bytes = Buffer.allocUnsafe(length);
  let at = bytes.write(OPENING);
  for (const [n, text] of texts.entries()) {
    if (n % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    if (n > 0) bytes[at++] = COMMA;
    at += bytes.write(text, at);
  }
  return bytes.subarray(0, at + bytes.write(closing, at));
}

/** With every one in use about 20 MB. */
const TEXT_SLOTS = 2 ** 15;

/** Items of the feeds as JSON text. A device that has changed is sent to every reader of its world, and is made once. */
export class ItemTexts {
  readonly #devices = new DeviceTexts(changedDeviceJson, TEXT_SLOTS);

  device(item: Changed, nowMs: number): string {
    return item.device === null
      ? removedDeviceJson(item.imei)
      : this.#devices.text(item.device, nowMs, item.headingDeg, item.ignition);
  }

  event(event: RecordedEvent): string {
    return JSON.stringify(recordedEventView(event));
  }
}

export function recordedEventView({ xid: _, ...event }: RecordedEvent) {
  return event;
}

/** Bytes of answers that an account has not read, beyond which no further page is made for it. */
export const UNREAD_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Counts the bytes of answers that connections have not taken, by account. A caller that asks for large pages and does not
 * read them would otherwise fill the memory of all.
 */
export class UnreadAnswers {
  readonly #turns: Pick<WorkTurns<string>, 'once'>;
  readonly #maxBytes: number;
  readonly #bytes = new Map<number, number>();
  readonly #listeners = new Set<(accountId: number) => void>();

  constructor(turns: Pick<WorkTurns<string>, 'once'>, maxBytes = UNREAD_MAX_BYTES) {
    this.#turns = turns;
    this.#maxBytes = maxBytes;
  }

  bytesOf(accountId: number): number {
    return this.#bytes.get(accountId) ?? 0;
  }

  /** Whether another page may be made for the account: it may go beyond the limit by that one. */
  hasRoom(accountId: number): boolean {
    return this.bytesOf(accountId) < this.#maxBytes;
  }

  /** Calls `listener` with an account that has room again. */
  onRoom(listener: (accountId: number) => void): void {
    this.#listeners.add(listener);
  }

  /** A page for one call. */
  page(accountId: number, bytes: Buffer): FeedPage {
    const page = this.share(accountId, bytes);
    const taken = page.take();
    page.release();
    return taken;
  }

  /** A page for several calls. Its bytes are counted once, until it is released and every call has taken its answer. */
  share(accountId: number, bytes: Buffer): SharedPage {
    this.#bytes.set(accountId, this.bytesOf(accountId) + bytes.length);
    let holders = 0;
    const hold = (): (() => void) => {
      let isHeld = true;
      holders++;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        if (--holders === 0) this.#free(accountId, bytes.length);
      };
    };
    const inTurn = (write: () => void): void => void this.#turns.once(`answers of ${accountId}`, write);
    return { take: () => ({ bytes, handover: { inTurn, done: hold() } }), release: hold() };
  }

  #free(accountId: number, bytes: number): void {
    const hadRoom = this.hasRoom(accountId);
    const left = this.bytesOf(accountId) - bytes;
    if (left > 0) this.#bytes.set(accountId, left);
    else this.#bytes.delete(accountId);
    if (hadRoom || !this.hasRoom(accountId)) return;
    for (const listener of this.#listeners) listener(accountId);
  }
}

/** A page that several calls are answered with. It must be released when all have it. */
export interface SharedPage {
  take(): FeedPage;
  release(): void;
}
