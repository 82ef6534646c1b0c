import { isUnseen } from '../access/credentials.ts';
import type { LogFollower, Snapshot } from '../changelog/appliedTransactions.memory.ts';
import { isSameServer, type Server } from '../changelog/serverStarts.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import type { Take } from '../history/exportFile.ts';
import { feedFormat } from '../history/exportFormats.ts';
import type { DeviceChoice } from '../history/fleet/chosenDevices.ts';
import type { HistoryReader } from '../history/readHistoryCall.ts';
import { CutAnswer } from '../http/answer.ts';
import { type Clock, DeadlineExceeded, HOUR_MS } from '../lib/time.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { Cursors, PointsPlace, PointsRead, PointsSeen } from './cursors.ts';
import { type FoundPoints, selectLatePoints, selectNewestRows, selectServer } from './pointFeed.sql.ts';
import { PointWalk } from './pointWalk.ts';

/** The most points of one call, and the most devices that it reads. The next call continues there. */
export const FEED_POINTS_MAX = 50_000;
const FEED_DEVICES_MAX = 50_000;
/** Rows that it reads: of each device at least one that was seen, and late ones among those in time. */
const FEED_ROWS_MAX = 400_000;
/** Devices whose rows one statement reads, and how many of each: most have stored few since the last call. */
const DEVICES_AT_A_TIME = 256;
const ROWS_OF_EACH = 16;
/** Rows of a device with more, and late points of all. */
const ROWS_AT_A_TIME = 4_096;
/** Points that came earlier were seen by every cursor that is still good. */
const FOLLOWED_MS = 40 * HOUR_MS;

export interface PointFeedPorts {
  readonly fleet: Fleet;
  readonly reads: (accountId: number) => Sql;
  readonly writes: (accountId: number) => Sql;
  readonly turns: WorkTurns<string | number>;
  readonly cursors: Cursors;
  readonly follower: LogFollower;
  readonly clock: Clock;
}

/** What a call reads, and on which server. */
export interface BegunRead {
  readonly seen: PointsSeen;
  readonly upTo: PointsSeen;
  readonly place: PointsPlace;
  /** The read continues an earlier call, so more may follow it. */
  readonly isResumed: boolean;
  /** There is nothing to read. */
  readonly isEmpty: boolean;
  readonly server: Server;
}

/** Before every IMEI. */
export const START: PointsPlace = { imei: '0', beforeMs: null, late: null };

/** Throws when it is another server than that which memory follows. */
export async function checkServer(sql: Sql, seen: Snapshot, followed: Server): Promise<void> {
  const server = await selectServer(sql, seen);
  if (!isSameServer(server, followed) || server.start !== followed.start)
    throw new DeadlineExceeded('another server has answered than the one that memory follows');
}

interface Candidate {
  readonly id: number;
  readonly imei: string;
  /** Whether it may have stored points in time that the reader has not seen. */
  readonly hasMoved: boolean;
}

/** One call of the feed. */
export class FeedCall {
  readonly #ports: PointFeedPorts;
  readonly #sql: Sql;
  readonly #reader: HistoryReader;
  readonly #choice: DeviceChoice;
  readonly #read: BegunRead;
  readonly #format: ReturnType<typeof feedFormat>;
  readonly #isNdjson: boolean;
  readonly #fromMs: number;
  #begin: string;
  #place: PointsPlace;
  #points = 0;
  #devices = 0;
  #rows = 0;
  #isOver: boolean;

  constructor(
    ports: PointFeedPorts,
    reader: HistoryReader,
    choice: DeviceChoice,
    read: BegunRead,
    format: 'ndjson' | 'csv',
  ) {
    this.#ports = ports;
    this.#sql = ports.reads(reader.accountId);
    this.#reader = reader;
    this.#choice = choice;
    this.#read = read;
    this.#format = feedFormat(format);
    this.#isNdjson = format === 'ndjson';
    this.#fromMs = ports.clock() - FOLLOWED_MS;
    this.#begin = this.#format.begin;
    this.#place = read.place;
    this.#isOver = read.isEmpty;
  }

  /** Hands over points of the next devices; false when there are none, or the call has given enough. */
  async next(take: Take): Promise<boolean> {
    const isEnough = this.#points >= FEED_POINTS_MAX || this.#devices >= FEED_DEVICES_MAX;
    if (this.#isOver || isEnough || this.#rows >= FEED_ROWS_MAX) return false;
    const { turns } = this.#ports;
    const candidates = await turns.once(this.#reader.accountId, () => this.#candidates());
    if (candidates === 'end') {
      this.#isOver = true;
      return false;
    }
    await this.#readDevices(candidates, take);
    return true;
  }

  /** Ends the answer. Returns the cursor behind it. */
  async end(take: Take): Promise<string> {
    const { seen, upTo, isResumed, isEmpty, server } = this.#read;
    // All of it is of the server that memory follows, or nothing counts.
    await checkServer(this.#sql, upTo.snapshot, server).catch(() => {
      throw new CutAnswer();
    });
    const read: PointsRead = this.#isOver
      ? { seen: upTo, open: null }
      : { seen, open: { upTo, place: this.#place } };
    const cursor = this.#ports.cursors.sealPoints(this.#reader, read, server);
    const hasMore = !this.#isOver || (isResumed && !isEmpty);
    const last = this.#isNdjson ? `${JSON.stringify({ cursor, has_more: hasMore })}\n` : '';
    take(Buffer.from(this.#begin + last));
    return cursor;
  }

  /** The next devices by IMEI, or the one that an earlier call has read in part. */
  #candidates(): readonly Candidate[] | 'end' {
    const { fleet } = this.#ports;
    const { worldIds } = this.#reader;
    const { imei, beforeMs, late } = this.#place;
    if (beforeMs !== null || late !== null) {
      const device = fleet.device(worldIds, imei);
      if (device !== undefined) return [{ id: device.id, imei, hasMoved: late === null }];
      this.#place = { imei, beforeMs: null, late: null };
    }
    const { groups, imeis } = this.#choice;
    if (imeis !== null) {
      const found = imeis.filter((each) => each > imei).map((each) => fleet.device(worldIds, each));
      const devices = found.filter((device) => device !== undefined);
      if (devices.length === 0) return 'end';
      return devices.map((device) => ({ id: device.id, imei: device.imei, hasMoved: true }));
    }
    const listed = fleet.listed(worldIds, imei, DEVICES_AT_A_TIME);
    const last = listed.at(-1);
    if (last === undefined) return 'end';
    this.#devices += listed.length;
    const { snapshot, isWhole } = this.#read.seen;
    const chosen = listed
      .filter(({ device }) => !isUnseen(worldIds, device.groups))
      .filter(({ device }) => groups === null || device.groups.some((group) => groups.has(group)))
      .map(({ device, movedXid }) => ({
        ...{ id: device.id, imei: device.imei },
        // The transaction that moved it last may be seen where one before it is not: see PointWalk.
        hasMoved: !isWhole || !snapshot.sees(movedXid),
      }));
    if (chosen.length === 0) this.#place = { ...START, imei: last.device.imei };
    return chosen;
  }

  /** Reads on with these devices, and comes as far as a statement of each kind reads. */
  async #readDevices(candidates: readonly Candidate[], take: Take): Promise<void> {
    if (candidates.length === 0) return;
    const { seen, upTo } = this.#read;
    const { worldIds } = this.#reader;
    const { beforeMs, late } = this.#place;
    const walked = candidates.filter(({ hasMoved }) => hasMoved);
    const rowsOfEach = walked.length === 1 ? ROWS_AT_A_TIME : ROWS_OF_EACH;
    const starts = walked.map(({ id }, n) => ({ id, beforeMs: n === 0 ? beforeMs : null }));
    const rows =
      walked.length === 0
        ? NOTHING
        : await selectNewestRows(this.#sql, worldIds, starts, rowsOfEach, this.#xmax());
    this.#rows += rows.devices.length;
    const walks = walkedRows(rows, walked.length, rowsOfEach, () => new PointWalk(seen, upTo, this.#fromMs));
    // Late points of a device follow those in time.
    const cutAt = walks.findIndex(({ cutMs }) => cutMs !== null);
    const cut = cutAt === -1 ? undefined : walked[cutAt];
    const whole = cut === undefined ? candidates : candidates.slice(0, candidates.indexOf(cut));
    const lates =
      whole.length === 0
        ? NOTHING
        : await selectLatePoints(
            this.#sql,
            worldIds,
            whole.map(({ id }) => id),
            seen.snapshot,
            upTo.snapshot,
            late,
            ROWS_AT_A_TIME,
          );
    const steps = this.#lines(candidates, walked, rows, walks, lates, whole.length, take);
    await this.#ports.turns.run(this.#reader.accountId, steps);
  }

  /** Any transaction that the rows may be of is below it. */
  #xmax(): number {
    return this.#ports.follower.applied.followedWhole.xmax + XIDS_AHEAD;
  }

  *#lines(
    candidates: readonly Candidate[],
    walked: readonly Candidate[],
    rows: FoundPoints,
    walks: readonly WalkedRows[],
    lates: FoundPoints,
    whole: number,
    take: Take,
  ): Steps<void> {
    let text = this.#begin;
    this.#begin = '';
    let count = 0;
    const format = this.#format;
    let at = 0;
    let [w, lateFull] = [0, lates.devices.length === ROWS_AT_A_TIME];
    for (let n = 0; n < candidates.length; n++) {
      const { imei } = candidates[n] as Candidate;
      if (walked[w]?.imei === imei) {
        const { wanted, cutMs } = walks[w++] as WalkedRows;
        for (const row of wanted.toReversed()) {
          text += format.point(imei, rows.points, row);
          if (++count % LINES_PER_STEP === 0) {
            take(Buffer.from(text));
            text = '';
            yield;
          }
        }
        if (cutMs !== null) {
          this.#place = { imei, beforeMs: cutMs, late: null };
          break;
        }
      }
      if (n >= whole) break;
      for (; lates.devices[at] === n; at++) {
        text += format.point(imei, lates.points, at);
        if (++count % LINES_PER_STEP === 0) {
          take(Buffer.from(text));
          text = '';
          yield;
        }
      }
      if (lateFull && at === lates.devices.length) {
        const xid = lates.xids[at - 1] as number;
        const recordedAtMs = lates.points.recordedAtMs[at - 1] as number;
        this.#place = { imei, beforeMs: null, late: { xid, recordedAtMs } };
        lateFull = false;
        break;
      }
      this.#place = { imei, beforeMs: null, late: null };
    }
    this.#points += count;
    if (text !== '') take(Buffer.from(text));
  }
}

/** Lines between two looks at the clock. */
const LINES_PER_STEP = 256;
/** Transactions that may have begun since memory followed the log. */
const XIDS_AHEAD = 2 ** 30;
const NOTHING: FoundPoints = { points: undefined as never, devices: [], xids: [] };

interface WalkedRows {
  /** The places of the rows that are wanted, newest first. */
  readonly wanted: readonly number[];
  /** Older rows are left to be read; null: none is wanted. */
  readonly cutMs: number | null;
}

function walkedRows(
  { points, devices, xids }: FoundPoints,
  count: number,
  rowsOfEach: number,
  newWalk: () => PointWalk,
): WalkedRows[] {
  const walks: WalkedRows[] = [];
  let at = 0;
  for (let n = 0; n < count; n++) {
    const walk = newWalk();
    const wanted: number[] = [];
    let isEnded = false;
    const from = at;
    for (; devices[at] === n; at++) {
      if (isEnded) continue;
      const next = walk.next({
        xid: xids[at] as number,
        receivedAtMs: points.receivedAtMs[at] as number,
        late: points.lates[at] as number,
      });
      if (next === 'end') isEnded = true;
      else if (next) wanted.push(at);
    }
    const isCut = !isEnded && at - from === rowsOfEach;
    walks.push({ wanted, cutMs: isCut ? (points.recordedAtMs[at - 1] as number) : null });
  }
  return walks;
}
