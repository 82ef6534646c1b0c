import type { KeyState } from '../../access/keyState.ts';
import type { LogFollower } from '../../changelog/appliedTransactions.memory.ts';
import type { Snapshot } from '../../changelog/snapshot.ts';
import type { Cursors } from '../cursors.ts';
import type { EventFeed } from '../eventFeed.ts';
import { firstRead, isCurrent, readUpTo } from '../readDevices.ts';
import type { EventsRead } from '../readerCursor.ts';
import type { GroupPorts } from './streamGroup.ts';
import type { StreamPlace } from './streamReader.ts';

export interface StreamRequest {
  readonly cursor: string | null;
  /** Begin with the present state of every device; without a cursor only. */
  readonly withSnapshot: boolean;
  readonly devices: boolean;
  readonly events: boolean;
}

export interface OpeningPorts extends Pick<GroupPorts, 'held' | 'reads'> {
  readonly cursors: Cursors;
  readonly eventFeed: EventFeed;
  readonly follower: LogFollower;
}

/**
 * Where a stream begins: at its cursor, with the present state of every device, or with what comes next. `expired`:
 * something behind the cursor may be missing by now. Rejects when Postgres is needed and cannot be asked.
 */
export async function openingPlace(
  { cursors, eventFeed, follower, held, reads }: OpeningPorts,
  caller: KeyState,
  request: StreamRequest,
): Promise<StreamPlace | 'malformed' | 'expired'> {
  const opened = request.cursor === null ? null : cursors.open(request.cursor, caller);
  if (opened === 'malformed' || opened === 'expired') return opened;
  const fresh = request.withSnapshot || opened !== null ? firstRead(held) : readUpTo(held.followed);
  const devices = request.devices ? (opened?.devices ?? fresh) : null;
  const firstEvents = async (): Promise<EventsRead> =>
    (await eventFeed.firstPlace(reads(caller.accountId), caller.worldIds, null)).read;
  const events = request.events ? (opened?.events ?? (await firstEvents())) : null;
  // An answer is never older than its cursor.
  const isHeld = () => isBefore({ devices, events }, follower.applied.followed);
  if (!isHeld()) await follower.catchUp();
  if (opened !== null && cursors.open(request.cursor ?? '', caller) === 'expired') return 'expired';
  if (!isHeld() && follower.applied.isComplete && opened !== null) return 'expired';
  if (devices !== null && !devices.seen.sees(held.fleet.removalHorizonXid(caller.worldIds))) return 'expired';
  return { devices, events };
}

/** Whether everything that was sent is up to this snapshot. */
export function isBefore({ devices, events }: StreamPlace, followed: Snapshot): boolean {
  const isHeld = devices === null || isCurrent({ followed, own: new Set() }, devices);
  return isHeld && (events === null || followed.contains(events.open?.upTo ?? events.seen));
}
