import type { KeyObject } from 'node:crypto';
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, randomBytes } from 'node:crypto';
import type { KeyState } from '../access/credentials.ts';
import type { AppliedTransactions, LogCursor, LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { Snapshot } from '../changelog/appliedTransactions.memory.ts';
import type { ServerState } from '../changelog/serverStarts.ts';
import { type Clock, withDeadline } from '../lib/time.ts';
import { VarintReader, VarintWriter } from '../lib/varints.ts';

/** How far a reader of devices has come. */
export interface DevicesRead extends LogCursor {
  /** In the first listing: the last IMEI that was sent. Devices after it were not sent yet, whatever `seen` says. */
  readonly listedTo: string | null;
  /**
   * Later transactions of which something was sent, ALSO_MAX at most, ascending: a pod that has not applied them would
   * answer with something older.
   */
  readonly also: readonly number[];
  /** Only of readers with filters. */
  readonly filtered?: FilteredRead;
}

/** What a reader of devices that pass filters was told beside changes. */
export interface FilteredRead {
  /** Of its filters: see filterHash. */
  readonly hash: number;
  /** What time alone had changed before was told, and at that millisecond of devices with ids up to `agedToId`. */
  readonly agedToMs: number;
  readonly agedToId: number;
}

/** How far a reader of events has come. */
export interface EventsRead extends LogCursor {
  /** Events produced earlier are left out. */
  readonly fromMs: number | null;
}

/** Transactions of which a reader has all points. */
export interface PointsSeen {
  readonly snapshot: Snapshot;
  /** False when the snapshot was shortened to fit and lacks the newest transactions of that moment. */
  readonly isWhole: boolean;
  /** When the snapshot was made, in whole seconds. */
  readonly atMs: number;
}

/** Where a read of points continues, in the order of IMEIs: after a device, or within one. */
export interface PointsPlace {
  readonly imei: string;
  /** Within the points that came in time, newest first: only those before are left. */
  readonly beforeMs: number | null;
  /** Within the late ones, by transaction and time: only those behind are left. */
  readonly late: { readonly xid: number; readonly recordedAtMs: number } | null;
}

/** How far a reader of points has come. */
export interface PointsRead {
  readonly seen: PointsSeen;
  /** A read of all that `upTo` sees and `seen` does not. */
  readonly open: { readonly upTo: PointsSeen; readonly place: PointsPlace } | null;
}

/** What a cursor says, once it is opened. A cursor of the stream has both reads. */
export interface FeedCursor {
  readonly issuedAtMs: number;
  readonly accountId: number;
  /** The worlds that the key saw. Another list means that the account has changed its organization. */
  readonly worldIds: readonly number[];
  readonly server: ServerState;
  readonly devices: DevicesRead | null;
  readonly events: EventsRead | null;
  /** Cursors of points have no other read. */
  readonly points?: PointsRead;
}

export const ALSO_MAX = 8;
/** The longest text that is taken for a cursor, and is given out as one. */
export const CURSOR_MAX_CHARS = 500;
/** Cursors are good for more than a day, so that a call at the same time on the next day can use one. */
export const CURSOR_LIFE_MS = 36 * 3_600_000;
/** A cursor that would say the same is given out again until it is this old. */
const RENEW_MS = 600_000;

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const TEXT = /^[A-Za-z0-9_-]+$/;
/** How long memory may take to hold what a cursor of another pod has seen. */
export const CATCH_UP_LIMIT_MS = 2_000;
/** Cursors that were sealed or opened lately: most come back to the pod that gave them out. */
const KEPT_MAX = 10_000;

type Caller = Pick<KeyState, 'accountId' | 'worldIds'>;

/**
 * Opens the cursors that callers send, and seals those that they are given into text that only this service can read or
 * make (AES-256-GCM under a key derived from SECRETS_KEY). The text says all that is known of a reader, so nothing is
 * stored for one.
 */
export class Cursors {
  readonly #key: KeyObject;
  readonly #applied: AppliedTransactions;
  readonly #clock: Clock;
  readonly #kept = new Map<string, FeedCursor>();

  constructor(secretsKey: KeyObject, applied: AppliedTransactions, clock: Clock) {
    this.#key = createSecretKey(createHmac('sha256', secretsKey).update('feed cursors').digest());
    this.#applied = applied;
    this.#clock = clock;
  }

  /**
   * `malformed`: not made by this service for this account. `expired`: it was, but can no longer be followed. `unmet`: it
   * was made under a start of the server that this pod has not met. Another pod may have met it first: see `openMet`.
   */
  open(text: string, { accountId, worldIds }: Caller): FeedCursor | 'malformed' | 'expired' | 'unmet' {
    const cursor = this.opened(text);
    if (cursor === null || cursor.accountId !== accountId) return 'malformed';
    const isOld = this.#clock() - cursor.issuedAtMs > CURSOR_LIFE_MS;
    const isElsewhere = worldIds.join() !== cursor.worldIds.join();
    const { server, starts } = this.#applied;
    if (isOld || isElsewhere || cursor.server.lineage !== server.lineage) return 'expired';
    if (!starts.has(cursor.server.start)) return 'unmet';
    return this.isKept(cursor.server) ? cursor : 'expired';
  }

  /** As `open`, and where that is needed, after a look at the server. Rejects when Postgres cannot be asked then. */
  async openMet(
    text: string,
    caller: Caller,
    follower: LogFollower,
  ): Promise<FeedCursor | 'malformed' | 'expired'> {
    const opened = this.open(text, caller);
    if (opened !== 'unmet') return opened;
    await withDeadline(follower.catchUp(), CATCH_UP_LIMIT_MS, 'reading the change log');
    const again = this.open(text, caller);
    return again === 'unmet' ? 'expired' : again;
  }

  /** Whether the server that memory follows holds everything that was seen on another. */
  isKept(seenOn: ServerState): boolean {
    return this.#applied.starts.holdAll(this.#applied.server, seenOn);
  }

  /** A cursor for the caller. `server`: where the reads were made, with a position behind all that they have seen. */
  seal(
    { accountId, worldIds }: Caller,
    devices: DevicesRead | null,
    events: EventsRead | null,
    { lineage, start, walBytes, xmax }: ServerState = this.#applied.server,
  ): string {
    const server = { lineage, start, walBytes, xmax };
    return this.sealed({ issuedAtMs: this.#clock(), accountId, worldIds, server, devices, events });
  }

  /** A cursor of points. `server`: where the snapshots are from. */
  sealPoints({ accountId, worldIds }: Caller, points: PointsRead, from: ServerState): string {
    const { lineage, start, walBytes, xmax } = from;
    const server = { lineage, start, walBytes, xmax };
    const read = { devices: null, events: null, points };
    return this.sealed({ issuedAtMs: this.#clock(), accountId, worldIds, server, ...read });
  }

  isFresh({ issuedAtMs }: FeedCursor): boolean {
    return this.#clock() - issuedAtMs < RENEW_MS;
  }

  sealed(cursor: FeedCursor): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, iv, { authTagLength: TAG_BYTES });
    const sealed = [iv, cipher.update(encodeCursor(cursor)), cipher.final(), cipher.getAuthTag()];
    const text = Buffer.concat(sealed).toString('base64url');
    this.#keep(text, cursor);
    return text;
  }

  /** What was sealed, or null when the text was not sealed by this service. */
  opened(text: string): FeedCursor | null {
    const kept = this.#kept.get(text);
    if (kept !== undefined) return kept;
    if (text.length > CURSOR_MAX_CHARS || !TEXT.test(text)) return null;
    const sealed = Buffer.from(text, 'base64url');
    // A cursor has one spelling.
    if (sealed.length < IV_BYTES + TAG_BYTES || sealed.toString('base64url') !== text) return null;
    const iv = sealed.subarray(0, IV_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#key, iv, { authTagLength: TAG_BYTES });
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

  #keep(text: string, cursor: FeedCursor): void {
    if (this.#kept.size >= KEPT_MAX) {
      const oldest = this.#kept.keys().next().value;
      if (oldest !== undefined) this.#kept.delete(oldest);
    }
    this.#kept.set(text, cursor);
  }
}

const VERSION = 3;
const HAS_DEVICES = 1;
const HAS_EVENTS = 2;
const HAS_POINTS = 4;
const HAS_FILTERS = 8;

/** A cursor as bytes. Its snapshots must be `within` SNAPSHOT_MAX_BYTES. */
export function encodeCursor(cursor: FeedCursor): Buffer {
  const { devices, events, points, server } = cursor;
  const to = new VarintWriter();
  to.number(VERSION);
  to.number(
    (devices === null ? 0 : HAS_DEVICES) +
      (events === null ? 0 : HAS_EVENTS) +
      (points === undefined ? 0 : HAS_POINTS) +
      (devices?.filtered === undefined ? 0 : HAS_FILTERS),
  );
  to.number(Math.floor(cursor.issuedAtMs / 1000));
  to.number(cursor.accountId);
  to.number(cursor.worldIds.length);
  for (const id of cursor.worldIds) to.number(id);
  to.text(server.lineage);
  to.number(server.start);
  to.number(server.walBytes);
  to.number(server.xmax);
  // A snapshot that several reads name is written once.
  const snapshots: Snapshot[] = [];
  const numberOf = (wanted: Snapshot): number => snapshots.findIndex((snapshot) => snapshot.equals(wanted));
  for (const read of [devices, events]) {
    for (const snapshot of [read?.seen, read?.open?.upTo])
      if (snapshot !== undefined && numberOf(snapshot) === -1) snapshots.push(snapshot);
  }
  for (const snapshot of [points?.seen.snapshot, points?.open?.upTo.snapshot])
    if (snapshot !== undefined && numberOf(snapshot) === -1) snapshots.push(snapshot);
  to.number(snapshots.length);
  for (const snapshot of snapshots) snapshot.write(to);
  const put = ({ seen, open }: LogCursor): void => {
    to.number(numberOf(seen));
    to.number(open === null ? 0 : 1 + numberOf(open.upTo));
    if (open === null) return;
    to.number(open.after.xid);
    to.number(open.after.id);
  };
  if (devices !== null) {
    put(devices);
    to.text(devices.listedTo ?? '');
    to.number(devices.also.length);
    for (const xid of devices.also) to.number(xid - devices.seen.xmin);
    if (devices.filtered !== undefined) {
      to.number(devices.filtered.hash);
      to.number(devices.filtered.agedToMs);
      to.number(devices.filtered.agedToId);
    }
  }
  if (events !== null) {
    put(events);
    to.number(events.fromMs === null ? 0 : Math.max(0, events.fromMs) + 1);
  }
  if (points !== undefined) {
    const putSeen = ({ snapshot, isWhole, atMs }: PointsSeen): void => {
      to.number(numberOf(snapshot));
      to.number(Number(isWhole));
      to.number(Math.floor(atMs / 1_000));
    };
    putSeen(points.seen);
    to.number(Number(points.open !== null));
    if (points.open !== null) {
      const { imei, beforeMs, late } = points.open.place;
      putSeen(points.open.upTo);
      to.text(imei);
      to.number(beforeMs === null ? 0 : beforeMs + 1);
      to.number(late === null ? 0 : late.xid);
      if (late !== null) to.number(late.recordedAtMs);
    }
  }
  return to.bytes();
}

/** The inverse of `encodeCursor`; null when the bytes are not a cursor of this version. */
export function decodeCursor(bytes: Uint8Array): FeedCursor | null {
  try {
    return readCursor(new VarintReader(bytes));
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function readCursor(from: VarintReader): FeedCursor | null {
  if (from.number() !== VERSION) return null;
  const parts = from.number();
  const issuedAtMs = from.number() * 1000;
  const accountId = from.number();
  const worldIds = times(from.number(), () => from.number());
  const server = { lineage: from.text(), start: from.number(), walBytes: from.number(), xmax: from.number() };
  const snapshots = times(from.number(), () => Snapshot.read(from));
  const snapshotAt = (n: number): Snapshot => {
    const snapshot = snapshots[n];
    if (snapshot === undefined) throw new RangeError('a cursor names a snapshot that it lacks');
    return snapshot;
  };
  const take = (): LogCursor => {
    const seen = snapshotAt(from.number());
    const opened = from.number();
    if (opened === 0) return { seen, open: null };
    return { seen, open: { upTo: snapshotAt(opened - 1), after: { xid: from.number(), id: from.number() } } };
  };
  let devices: DevicesRead | null = null;
  if ((parts & HAS_DEVICES) !== 0) {
    const { seen, open } = take();
    const listedTo = from.text() || null;
    devices = { seen, open, listedTo, also: times(from.number(), () => seen.xmin + from.number()) };
    if ((parts & HAS_FILTERS) !== 0) {
      const [hash, agedToMs, agedToId] = [from.number(), from.number(), from.number()];
      devices = { ...devices, filtered: { hash, agedToMs, agedToId } };
    }
  }
  let events: EventsRead | null = null;
  if ((parts & HAS_EVENTS) !== 0) {
    const read = take();
    const fromMsPlus1 = from.number();
    events = { ...read, fromMs: fromMsPlus1 === 0 ? null : fromMsPlus1 - 1 };
  }
  const whole = { issuedAtMs, accountId, worldIds, server, devices, events };
  if ((parts & HAS_POINTS) === 0) return from.isAtEnd ? whole : null;
  const takeSeen = (): PointsSeen => {
    const [snapshot, isWhole] = [snapshotAt(from.number()), from.number() === 1];
    return { snapshot, isWhole, atMs: from.number() * 1_000 };
  };
  const seen = takeSeen();
  let open: PointsRead['open'] = null;
  if (from.number() === 1) {
    const upTo = takeSeen();
    const imei = from.text();
    const [before, xid] = [from.number(), from.number()];
    const late = xid === 0 ? null : { xid, recordedAtMs: from.number() };
    open = { upTo, place: { imei, beforeMs: before === 0 ? null : before - 1, late } };
  }
  return from.isAtEnd ? { ...whole, points: { seen, open } } : null;
}

/** Lists in cursors are short. A longer one was not written by this service. */
const LIST_MAX = 16;

function times<T>(count: number, make: () => T): T[] {
  if (count > LIST_MAX) throw new RangeError('a cursor lists too much');
  return Array.from({ length: count }, make);
}
