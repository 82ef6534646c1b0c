import type { Fleet } from '../../devices/fleet.memory.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/time.ts';
import type { Steps, WorkTurns } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import { type PointColumns, sliceColumns } from '../codec/pointColumns.ts';
import { closedBeforeMs } from '../packHistory.ts';
import { type CellCounts, CellTally } from './cells.ts';
import { drawnTrack } from './drawnTrack.ts';
import { recentRows } from './recentRows.sql.ts';

/** What was read is shown for so long, and for some more time while it is read again. */
const FRESH_MS = MINUTE_MS;
const STALE_MS = 5 * MINUTE_MS;
/** The most that is read at a time, two seconds of a processor, and worlds whose cells are kept: 2 MB each at most. */
const LIMITS = { points: 1_000_000, worlds: 32 };
const READ_MS = 8_000;
/** Points are rows for at most so long, unless packing is behind. */
const SPAN_MAX_MS = 4 * DAY_MS;
const SPAN_MIN_MS = HOUR_MS;
const DEVICES_AT_A_TIME = 128;
/** Before every IMEI. */
const BEFORE_ALL = '0';

interface RecentPorts {
  readonly fleet: Fleet;
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

/** Cells of points that are not packed. */
export interface RecentCells extends CellCounts {
  /** Tells it from what was read at other times. */
  readonly version: number;
}

interface RecentWorld {
  cells: RecentCells | null;
  readAtMs: number;
  /** How far back it looks. */
  spanMs: number;
  reading: Promise<RecentCells> | null;
}

/**
 * Where devices have driven by the points that are not packed: those of the last two or three days. They are read when
 * somebody asks for them, at most once a minute for each world. A world with more points than can be read looks less far
 * back, from all devices alike.
 */
export class RecentTracks {
  readonly #ports: RecentPorts;
  readonly #limits: typeof LIMITS;
  readonly #worlds = new Map<number, RecentWorld>();
  #versions = 0;

  constructor(ports: RecentPorts, limits = LIMITS) {
    this.#ports = ports;
    this.#limits = limits;
  }

  /** Rejects as the reads of the account do. */
  async of(accountId: number, worldId: number, nowMs: number): Promise<RecentCells> {
    const world = this.#worldOf(worldId);
    const ageMs = Math.abs(nowMs - world.readAtMs);
    if (world.cells !== null && ageMs < FRESH_MS) return world.cells;
    world.reading ??= this.#read(accountId, worldId, world, nowMs).finally(() => {
      world.reading = null;
    });
    if (world.cells === null || ageMs >= STALE_MS) return world.reading;
    // If it fails the next call tries again.
    world.reading.catch(() => undefined);
    return world.cells;
  }

  #worldOf(worldId: number): RecentWorld {
    const world = this.#worlds.get(worldId) ?? {
      cells: null,
      readAtMs: Number.NEGATIVE_INFINITY,
      spanMs: SPAN_MAX_MS,
      reading: null,
    };
    // The one that was asked for last stands last.
    this.#worlds.delete(worldId);
    this.#worlds.set(worldId, world);
    const [oldest] = this.#worlds.keys();
    if (this.#worlds.size > this.#limits.worlds && oldest !== undefined) this.#worlds.delete(oldest);
    return world;
  }

  async #read(accountId: number, worldId: number, world: RecentWorld, nowMs: number): Promise<RecentCells> {
    const { fleet, turns } = this.#ports;
    const sql = this.#ports.reads(accountId);
    const untilMs = performance.now() + READ_MS;
    const fromMs = Math.max(closedBeforeMs(nowMs) - DAY_MS, nowMs - world.spanMs);
    const tally = new CellTally();
    let points = 0;
    let isCut = false;
    for (let afterImei: string | null = BEFORE_ALL; afterImei !== null && !isCut; ) {
      const after: string = afterImei;
      const page = await turns.once(accountId, () => devicesSince(fleet, worldId, after, fromMs));
      for await (const track of recentRows(sql, worldId, page.ids, fromMs)) {
        points += track.count;
        await turns.run(accountId, tallyDays(tally, track));
        isCut = points > this.#limits.points || performance.now() > untilMs;
        if (isCut) break;
      }
      afterImei = page.lastImei;
      isCut ||= performance.now() > untilMs;
    }
    if (isCut) world.spanMs = Math.max(SPAN_MIN_MS, (nowMs - fromMs) / 2);
    else if (points < this.#limits.points / 4) world.spanMs = Math.min(SPAN_MAX_MS, 2 * world.spanMs);
    world.cells = { ...(await turns.run(accountId, tally.counted())), version: ++this.#versions };
    world.readAtMs = nowMs;
    return world.cells;
  }
}

/** The next devices of a world that have points since a time; `lastImei`: null after the last one. */
function devicesSince(fleet: Fleet, worldId: number, afterImei: string, fromMs: number) {
  const devices = fleet.listed([worldId], afterImei, DEVICES_AT_A_TIME).map(({ device }) => device.taken());
  const moved = devices.filter(({ position }) => position !== null && position.recordedAtMs >= fromMs);
  const isLast = devices.length < DEVICES_AT_A_TIME;
  return { ids: moved.map(({ id }) => id), lastImei: isLast ? null : (devices.at(-1)?.imei ?? null) };
}

/** Counts the cells of a device once for each day. */
function* tallyDays(tally: CellTally, track: PointColumns): Steps<void> {
  const { recordedAtMs, count } = track;
  for (let from = 0; from < count; ) {
    const day = Math.floor(recordedAtMs[from]! / DAY_MS);
    let to = from;
    while (to < count && recordedAtMs[to]! < (day + 1) * DAY_MS) to++;
    const drawn = yield* drawnTrack(sliceColumns(track, from, to));
    yield* tally.addEach(yield* drawn.counted());
    from = to;
  }
}
