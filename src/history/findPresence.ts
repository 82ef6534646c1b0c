import { isUnseen, type Worlds } from '../access/credentials.ts';
import type { Device } from '../devices/device.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { Abandoned, ProcessorBudget, type Steps, TooMuchWork, type WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import type { PointRange, TimeWindow } from './packedPoints.sql.ts';
import { selectPlaceSpans } from './placeSpans.sql.ts';
import {
  MANY_RANGES,
  mergedPoints,
  PLACE,
  readInOrder,
  type StoredPoints,
  selectPoints,
} from './points.sql.ts';
import { type Place, PRESENCE_GAP_MS, type Presence, PresenceTally } from './presence.ts';
import type { HistoryReader } from './readHistoryCall.ts';

/** Processor time of one call: a hundred times what the figures of the largest fleets need. */
export const PRESENCE_WORK_MS = 8_000;
/** Points that are read for one answer at most. */
export const PRESENCE_POINTS_MAX = 20_000_000;
/** Devices whose boxes are read at a time: with a box for each of 31 days that takes a few milliseconds. */
const DEVICES_PER_READ = 1_000;
/** The list of found devices is cut when it has grown by this number. */
const KEPT_BEYOND = 1_000;
/** Statements at a time: as many as an account has connections. */
const READS_AT_A_TIME = 2;
/** Before every IMEI. */
const BEFORE_ALL = '0';

export interface PresencePorts {
  readonly reads: (accountId: number) => Sql;
  readonly fleet: Fleet;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

export interface PresentDevice extends Presence {
  readonly device: Device;
}

interface FoundPresence {
  /** By their first point there, then by IMEI: as many as are wanted. */
  readonly devices: readonly PresentDevice[];
  /** How many devices were there. */
  readonly total: number;
}

/** Which devices were at a place during a period, the earliest `limit`. Rejects with OutOfTime or DamagedPoints. */
export async function findPresence(
  { reads, fleet, turns }: PresencePorts,
  { accountId, worldIds }: HistoryReader,
  place: Place,
  window: TimeWindow,
  limit: number,
  isOver: () => boolean,
): Promise<FoundPresence | 'too_many_points' | 'too_much_work' | 'left'> {
  const budget = new ProcessorBudget(PRESENCE_WORK_MS, isOver);
  const sql = reads(accountId);
  const run = <T>(steps: Steps<T>): Promise<T> => turns.run(accountId, budget.spend(steps));
  const search = new PresenceSearch({ sql, worldIds, place, limit, run, isOver });
  try {
    let next = selectSpans(sql, fleet, worldIds, BEFORE_ALL, place, window);
    for (;;) {
      const selected = await next;
      if (selected === null) return { devices: search.earliest(), total: search.total };
      // The next spans are selected while the points of these are read. An error is thrown when they are awaited.
      next = selectSpans(sql, fleet, worldIds, selected.lastImei, place, window);
      next.catch(() => undefined);
      await Promise.all(shared(selected.spans).map((spans) => search.tally(spans, selected.byId)));
      if (search.points > PRESENCE_POINTS_MAX) return 'too_many_points';
      if (isOver()) return 'left';
    }
  } catch (error) {
    if (error instanceof Abandoned) return 'left';
    if (error instanceof TooMuchWork) return 'too_much_work';
    throw error;
  }
}

/** The spans of the next devices, by device, then by time; null after the last device. */
async function selectSpans(
  sql: Sql,
  fleet: Fleet,
  worldIds: Worlds,
  afterImei: string,
  { boxes }: Place,
  window: TimeWindow,
) {
  const devices = fleet.listed(worldIds, afterImei, DEVICES_PER_READ).map(({ device }) => device.taken());
  const last = devices.at(-1);
  if (last === undefined) return null;
  const seen = devices.filter(({ groups }) => !isUnseen(worldIds, groups));
  const byId = new Map(seen.map((device) => [device.id, device]));
  const spans = await selectPlaceSpans(sql, [...byId.keys()], boxes, window, PRESENCE_GAP_MS);
  return { lastImei: last.imei, byId, spans };
}

interface SearchPorts {
  readonly sql: Sql;
  readonly worldIds: readonly number[];
  readonly place: Place;
  readonly limit: number;
  /** Rejects with what ends the budget of the call. */
  readonly run: <T>(steps: Steps<T>) => Promise<T>;
  readonly isOver: () => boolean;
}

/** What one call has found. */
class PresenceSearch {
  readonly #ports: SearchPorts;
  #found: PresentDevice[] = [];
  total = 0;
  points = 0;
  #hasEnded = false;

  constructor(ports: SearchPorts) {
    this.#ports = ports;
  }

  /** Reads and counts the points of these spans, beside other spans of the same search. */
  async tally(spans: readonly PointRange[], byId: ReadonlyMap<number, Device>): Promise<void> {
    const { sql, worldIds, place, run, isOver } = this.#ports;
    const read = (ranges: readonly PointRange[]) => selectPoints(sql, worldIds, ranges, PLACE, MANY_RANGES);
    let tally = new PresenceTally(place);
    let n = 0;
    try {
      for await (const { found } of readInOrder(spans, read)) {
        for (const stored of found) {
          // A device that has left what the caller sees has no more points.
          if (stored === null) continue;
          const span = spans[stored.n] as PointRange;
          const before = spans[n] as PointRange;
          if (span.deviceId !== before.deviceId) {
            this.#keep(byId.get(before.deviceId) as Device, tally);
            tally = new PresenceTally(place);
          } else if (stored.n !== n) tally.interrupt();
          n = stored.n;
          this.points += await run(tallyStored(tally, stored));
        }
        this.#hasEnded ||= this.points > PRESENCE_POINTS_MAX || isOver();
        if (this.#hasEnded) return;
      }
    } catch (error) {
      this.#hasEnded = true;
      throw error;
    }
    const last = spans[n];
    if (last !== undefined) this.#keep(byId.get(last.deviceId) as Device, tally);
  }

  #keep(device: Device, { presence }: PresenceTally): void {
    if (presence === null) return;
    this.total++;
    const kept = this.#found.push({ device, ...presence });
    if (kept > this.#ports.limit + KEPT_BEYOND) this.#found = this.earliest();
  }

  earliest(): PresentDevice[] {
    return this.#found.sort(byFirstPoint).slice(0, this.#ports.limit);
  }
}

/** The spans of every second device, and those of the others. The two are read at the same time. */
function shared(spans: readonly PointRange[]): PointRange[][] {
  const shares = Array.from({ length: READS_AT_A_TIME }, (): PointRange[] => []);
  const byDevice = Map.groupBy(spans, ({ deviceId }) => deviceId);
  for (const [n, own] of [...byDevice.values()].entries()) shares[n % READS_AT_A_TIME]?.push(...own);
  return shares;
}

function byFirstPoint(a: PresentDevice, b: PresentDevice): number {
  return a.firstMs - b.firstMs || (a.device.fields.imei < b.device.fields.imei ? -1 : 1);
}

/** Counts points of a device, and returns how many were read. A step unpacks one row. Throws DamagedPoints. */
function* tallyStored(tally: PresenceTally, stored: StoredPoints): Steps<number> {
  for (const points of mergedPoints(stored, (lats, lngs) => tally.wants(lats, lngs))) {
    if (points.count === 0) tally.interrupt();
    else yield* tally.take(points);
    yield;
  }
  return stored.packed.reduce((sum, { count }) => sum + count, stored.rows.count);
}
