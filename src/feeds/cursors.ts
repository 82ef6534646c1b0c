import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import type { KeyState } from '../access/keyState.ts';
import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import type { ServerState } from '../changelog/servers.ts';
import type { Clock } from '../lib/clock.ts';
import {
  type DevicesRead,
  decodeCursor,
  type EventsRead,
  encodeCursor,
  type ReaderCursor,
} from './readerCursor.ts';

/** Cursors are good for at least a day: longer, so that one of yesterday's call at this time is. Removals outlive them. */
const CURSOR_LIFE_MS = 36 * 3_600_000;
/** A cursor that says the same goes on until it is this old. */
const RENEW_MS = 600_000;

type Caller = Pick<KeyState, 'accountId' | 'worldIds'>;

/** `malformed`: not made by this service for this account. `expired`: it was, and cannot be followed any more. */
export type OpenedCursor = ReaderCursor | 'malformed' | 'expired';

export interface CursorPorts {
  readonly secretsKey: KeyObject;
  readonly clock: Clock;
  readonly follower: Pick<LogFollower, 'applied'>;
}

/** Opens the cursors that callers bring and seals those that they take along. */
export class Cursors {
  readonly #ports: CursorPorts;
  readonly #box: CursorBox;

  constructor(ports: CursorPorts) {
    this.#ports = ports;
    this.#box = new CursorBox(ports.secretsKey);
  }

  open(text: string, { accountId, worldIds }: Caller): OpenedCursor {
    const cursor = this.#box.open(text);
    if (cursor === null || cursor.accountId !== accountId) return 'malformed';
    const isOld = this.#ports.clock() - cursor.issuedAtMs > CURSOR_LIFE_MS;
    const isElsewhere = worldIds.join() !== cursor.worldIds.join();
    return isOld || isElsewhere || !this.isKept(cursor.server) ? 'expired' : cursor;
  }

  /** Whether the server that memory follows holds everything that was seen on the one of the mark. */
  isKept(mark: ServerState): boolean {
    const { follower } = this.#ports;
    return follower.applied.starts.holdAll(follower.applied.server, mark);
  }

  /**
   * A cursor for the caller with these reads. `server`: where they were made, with a position behind all that they have
   * seen; that of memory unless another is given.
   */
  seal(
    { accountId, worldIds }: Caller,
    devices: DevicesRead | null,
    events: EventsRead | null,
    { lineage, start, walBytes, xmax }: ServerState = this.#ports.follower.applied.server,
  ): string {
    const server = { lineage, start, walBytes, xmax };
    return this.#box.seal({ issuedAtMs: this.#ports.clock(), accountId, worldIds, server, devices, events });
  }

  isFresh({ issuedAtMs }: ReaderCursor): boolean {
    return this.#ports.clock() - issuedAtMs < RENEW_MS;
  }
}

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** The longest text that is taken for a cursor, and is given out as one. */
export const CURSOR_MAX_CHARS = 500;
const TEXT = /^[A-Za-z0-9_-]+$/;
/** Cursors that were sealed or opened lately: most come back to the pod that gave them out. */
const KEPT_MAX = 10_000;

/**
 * Seals cursors into text that only this service can read or make (AES-256-GCM under a key derived from SECRETS_KEY).
 * Everything a reader's place consists of is in the text, so nothing is kept for a reader.
 */
export class CursorBox {
  readonly #key: KeyObject;
  readonly #kept = new Map<string, ReaderCursor>();

  constructor(secretsKey: KeyObject) {
    this.#key = createSecretKey(createHmac('sha256', secretsKey).update('feed cursors').digest());
  }

  seal(cursor: ReaderCursor): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, iv, { authTagLength: TAG_BYTES });
    const sealed = Buffer.concat([
      iv,
      cipher.update(encodeCursor(cursor)),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    const text = sealed.toString('base64url');
    this.#keep(text, cursor);
    return text;
  }

  /** What `seal` was given, or null when the text was not sealed by this service. */
  open(text: string): ReaderCursor | null {
    const kept = this.#kept.get(text);
    if (kept !== undefined) return kept;
    if (text.length > CURSOR_MAX_CHARS || !TEXT.test(text)) return null;
    const sealed = Buffer.from(text, 'base64url');
    // Of one cursor there is one spelling.
    if (sealed.length < IV_BYTES + TAG_BYTES || sealed.toString('base64url') !== text) return null;
    const decipher = createDecipheriv(CIPHER, this.#key, sealed.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    const bytes = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES));
    try {
      decipher.final();
    } catch {
      return null; // final throws only when the tag does not fit
    }
    const cursor = decodeCursor(bytes);
    if (cursor !== null) this.#keep(text, cursor);
    return cursor;
  }

  #keep(text: string, cursor: ReaderCursor): void {
    if (this.#kept.size >= KEPT_MAX) {
      const oldest = this.#kept.keys().next().value;
      if (oldest !== undefined) this.#kept.delete(oldest);
    }
    this.#kept.set(text, cursor);
  }
}
