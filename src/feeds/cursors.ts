import type { KeyObject } from 'node:crypto';
import type { KeyState } from '../access/keyState.ts';
import type { ServerMark, ServerStarts } from '../changelog/serverMark.ts';
import type { Clock } from '../lib/clock.ts';
import { CursorBox } from './cursorBox.ts';
import type { DevicesRead, EventsRead, ReaderCursor } from './readerCursor.ts';

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
  readonly follower: {
    readonly server: ServerMark;
    readonly starts: ServerStarts;
    catchUp(): Promise<void>;
  };
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
  isKept(mark: ServerMark): boolean {
    const { follower } = this.#ports;
    return follower.starts.holdAll(follower.server, mark);
  }

  /**
   * A cursor for the caller with these reads. `server`: where they were made, with a position behind all that they have
   * seen; that of memory unless another is given.
   */
  seal(
    { accountId, worldIds }: Caller,
    devices: DevicesRead | null,
    events: EventsRead | null,
    { lineage, start, walBytes, xmax }: ServerMark = this.#ports.follower.server,
  ): string {
    const server = { lineage, start, walBytes, xmax };
    return this.#box.seal({ issuedAtMs: this.#ports.clock(), accountId, worldIds, server, devices, events });
  }

  isFresh({ issuedAtMs }: ReaderCursor): boolean {
    return this.#ports.clock() - issuedAtMs < RENEW_MS;
  }
}
