import type { ExportParts } from '../history/exportFile.ts';
import type { DeviceChoice } from '../history/fleet/chosenDevices.ts';
import {
  NEXT_CURSOR,
  POINTS_CURSOR_MESSAGE,
  type PointFeedSource,
} from '../history/fleet/fleetExport.routes.ts';
import type { HistoryReader } from '../history/readHistoryCall.ts';
import { errorAnswer, NotBegun } from '../http/answer.ts';
import { DeadlineExceeded, withDeadline } from '../lib/time.ts';
import { CATCH_UP_LIMIT_MS, CURSOR_LIFE_MS, type PointsRead, type PointsSeen } from './cursors.ts';
import { followWorlds } from './pointFeed.sql.ts';
import { type BegunRead, checkServer, FeedCall, type PointFeedPorts, START } from './pointFeedCall.ts';

/** All points in the order of their devices, each once along the cursors, whether it came in time or late. */
export class PointFeed implements PointFeedSource {
  readonly #ports: PointFeedPorts;

  constructor(ports: PointFeedPorts) {
    this.#ports = ports;
  }

  parts(reader: HistoryReader, choice: DeviceChoice, cursor: string, format: 'ndjson' | 'csv'): ExportParts {
    const ports = this.#ports;
    let call: FeedCall | null = null;
    let next = '';
    return {
      begin: async () => {
        const read = await beginRead(ports, reader, cursor);
        call = new FeedCall(ports, reader, choice, read, format);
      },
      next: async (take) => {
        if (call === null) return false;
        if (await call.next(take)) return true;
        next = await call.end(take);
        return false;
      },
      trailers: () => ({ [NEXT_CURSOR]: next }),
    };
  }
}

async function beginRead(ports: PointFeedPorts, reader: HistoryReader, text: string): Promise<BegunRead> {
  const { cursors, follower, reads, writes, clock } = ports;
  const { accountId, worldIds } = reader;
  const { applied } = follower;
  applied.noteReader();
  const untilMs = performance.now() + CATCH_UP_LIMIT_MS;
  let points: PointsRead | null = null;
  const catchUp = () => withDeadline(follower.catchUp(), CATCH_UP_LIMIT_MS, 'reading the change log');
  const open = async (): Promise<PointsRead> => {
    const cursor = await cursors.openMet(text, reader, follower);
    if (cursor === 'expired') throw new NotBegun(errorAnswer('CURSOR_EXPIRED'));
    if (cursor === 'malformed' || cursor.points === undefined)
      throw new NotBegun(errorAnswer('BAD_REQUEST', POINTS_CURSOR_MESSAGE));
    // A cursor within a long read is newer than what it has seen, and rows are kept for a time only.
    if (clock() - cursor.points.seen.atMs > CURSOR_LIFE_MS) throw new NotBegun(errorAnswer('CURSOR_EXPIRED'));
    return cursor.points;
  };
  if (text !== '') points = await open();
  // Before the snapshot is taken, behind which this cursor or the next reads rows.
  await followWorlds(reads(accountId), writes(accountId), worldIds);
  const wanted = points?.open?.upTo.snapshot ?? points?.seen.snapshot;
  do await catchUp();
  while (wanted !== undefined && !applied.followedWhole.contains(wanted) && performance.now() < untilMs);
  // Another server may have taken over, or another database was put in its place.
  if (text !== '') points = await open();
  // Not later than the snapshot.
  const atMs = applied.positionsAtMs ?? Number.NEGATIVE_INFINITY;
  if (!Number.isFinite(atMs))
    throw new DeadlineExceeded('memory is not known to hold all that Postgres does');
  const [followed, followedWhole, server] = [applied.followed, applied.followedWhole, applied.server];
  if (wanted !== undefined && !followedWhole.contains(wanted)) {
    if (applied.isComplete) throw new NotBegun(errorAnswer('CURSOR_EXPIRED'));
    throw new DeadlineExceeded('memory does not hold yet what the cursor has seen');
  }
  await checkServer(reads(accountId), followedWhole, server);
  const present: PointsSeen = { snapshot: followed, isWhole: followed.equals(followedWhole), atMs };
  const begun = { place: START, isResumed: false, isEmpty: false, server };
  if (points === null) return { ...begun, seen: present, upTo: present, isEmpty: true };
  const { seen, open: resumed } = points;
  if (resumed !== null) return { ...begun, seen, ...resumed, isResumed: true };
  // One that was cut short may lack something of another.
  if (!followed.contains(seen.snapshot)) return { ...begun, seen, upTo: seen, isEmpty: true };
  return { ...begun, seen, upTo: present };
}
