import type { ServerState } from '../changelog/servers.ts';
import { type LogCursor, Snapshot } from '../changelog/snapshot.ts';
import { VarintReader, VarintWriter } from '../lib/varints.ts';

/** How far a reader of devices has come. */
export interface DevicesRead extends LogCursor {
  /** In the first listing: the last IMEI that was sent. Devices behind it were not sent yet, whatever `seen` says. */
  readonly listedTo: string | null;
  /**
   * Later transactions of which something was sent, ALSO_MAX at most, ascending: a pod that has not applied them would
   * answer with something older.
   */
  readonly also: readonly number[];
}

/** How far a reader of events has come. */
export interface EventsRead extends LogCursor {
  /** Events produced earlier are left out. */
  readonly fromMs: number | null;
}

/** What a cursor says, once it is unsealed. A cursor of the stream has both reads. */
export interface ReaderCursor {
  readonly issuedAtMs: number;
  readonly accountId: number;
  /** What the key looked into: another list means that the account has changed its organization. */
  readonly worldIds: readonly number[];
  readonly server: ServerState;
  readonly devices: DevicesRead | null;
  readonly events: EventsRead | null;
}
export const ALSO_MAX = 8;

const VERSION = 3;
const HAS_DEVICES = 1;
const HAS_EVENTS = 2;

/** A cursor as bytes. Its snapshots must be `within` SNAPSHOT_MAX_BYTES. */
export function encodeCursor(cursor: ReaderCursor): Buffer {
  const { devices, events, server } = cursor;
  const to = new VarintWriter();
  to.number(VERSION);
  to.number((devices === null ? 0 : HAS_DEVICES) + (events === null ? 0 : HAS_EVENTS));
  to.number(Math.floor(cursor.issuedAtMs / 1000));
  to.number(cursor.accountId);
  to.number(cursor.worldIds.length);
  for (const id of cursor.worldIds) to.number(id);
  to.text(server.lineage);
  to.number(server.start);
  to.number(server.walBytes);
  to.number(server.xmax);
  const reads = [devices, events].filter((read) => read !== null);
  const snapshots = distinct(reads.flatMap(({ seen, open }) => (open === null ? [seen] : [seen, open.upTo])));
  to.number(snapshots.length);
  for (const snapshot of snapshots) snapshot.write(to);
  const put = ({ seen, open }: LogCursor) => {
    to.number(numberOf(snapshots, seen));
    to.number(open === null ? 0 : 1 + numberOf(snapshots, open.upTo));
    if (open === null) return;
    to.number(open.after.xid);
    to.number(open.after.id);
  };
  if (devices !== null) {
    put(devices);
    to.text(devices.listedTo ?? '');
    to.number(devices.also.length);
    for (const xid of devices.also) to.number(xid - devices.seen.xmin);
  }
  if (events !== null) {
    put(events);
    to.number(events.fromMs === null ? 0 : Math.max(0, events.fromMs) + 1);
  }
  return to.bytes();
}

/** The inverse of `encodeCursor`; null when the bytes are not a cursor of this version. */
export function decodeCursor(bytes: Uint8Array): ReaderCursor | null {
  try {
    return read(new VarintReader(bytes));
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function read(from: VarintReader): ReaderCursor | null {
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
  const take = () => {
    const seen = snapshotAt(from.number());
    const opened = from.number();
    if (opened === 0) return { seen, open: null };
    return { seen, open: { upTo: snapshotAt(opened - 1), after: { xid: from.number(), id: from.number() } } };
  };
  const takeDevices = (): DevicesRead => {
    const { seen, open } = take();
    const listedTo = from.text() || null;
    return { seen, open, listedTo, also: times(from.number(), () => seen.xmin + from.number()) };
  };
  const devices = (parts & HAS_DEVICES) === 0 ? null : takeDevices();
  const events =
    (parts & HAS_EVENTS) === 0
      ? null
      : { ...take(), fromMs: ((from: number) => (from === 0 ? null : from - 1))(from.number()) };
  return from.isAtEnd ? { issuedAtMs, accountId, worldIds, server, devices, events } : null;
}

/** Cursors hold a handful of anything: more are none of ours. */
const LIST_MAX = 16;

function times<T>(count: number, make: () => T): T[] {
  if (count > LIST_MAX) throw new RangeError('a cursor lists too much');
  return Array.from({ length: count }, make);
}

function distinct(snapshots: readonly Snapshot[]): Snapshot[] {
  return snapshots.filter((snapshot, n) => numberOf(snapshots, snapshot) === n);
}

function numberOf(snapshots: readonly Snapshot[], wanted: Snapshot): number {
  return snapshots.findIndex((snapshot) => snapshot.equals(wanted));
}
