import { MOVING_FROM_KMH } from '../../devices/device.ts';
import { RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import type { Steps } from '../../lib/workTurns.ts';
import {
  GAP_MS,
  type Ledger,
  type Motion,
  MotionWalk,
  pointAt,
  type TrackColumns,
  type Way,
} from '../summary/motionWalk.ts';
import { encodeCounts } from './cellCounts.ts';
import { DrawnCells, GRID, GRID_SIDE } from './cells.ts';
import type { DrivenCells } from './tracks.sql.ts';

/** A longer way between two points is not drawn: the road is rarely straight for so long. */
const WAY_MAX_M = 2_000;
/** A faster one is an error of the receiver: 250 km/h. */
const SPEED_MAX_MPS = 70;
const EQUATOR_M = 40_075_017;

/** Points between two steps: some hundred microseconds. */
const POINTS_PER_STEP = 512;

/**
 * The cells that a vehicle has driven through, each counted once. Ways of a parked one are not drawn (see MotionWalk), and
 * neither are gaps and jumps.
 */
export function* drawnTrack(track: TrackColumns): Steps<DrawnCells> {
  const pen = new Pen();
  const walk = new MotionWalk<HeldWays>(pen);
  for (let n = 0; n < track.count; ) {
    const end = Math.min(n + POINTS_PER_STEP, track.count);
    while (n < end) n = takeRun(track, n, end, pen, walk);
    if (n < track.count) yield;
  }
  walk.finish();
  return pen.drawn;
}

/**
 * The cells that a device drives through with all points of a day and not with those that were there before, for the week
 * of that day; null: none.
 */
export function* newlyDriven(
  all: TrackColumns,
  before: TrackColumns,
  week: number,
): Steps<DrivenCells | null> {
  const known = before.count === 0 ? null : yield* drawnTrack(before);
  const drawn = yield* drawnTrack(all);
  const cells = yield* drawn.counted(known);
  if (cells.codes.length === 0) return null;
  return { week, cells: cells.codes.length, tiles: drawn.tiles, bytes: encodeCounts(cells) };
}

/** Takes a run of points that change nothing, or one point. Returns the place behind it. */
function takeRun(track: TrackColumns, n: number, end: number, pen: Pen, walk: MotionWalk<HeldWays>): number {
  const motion = n === 0 ? null : walk.steadyMotion;
  let at = n;
  if (motion !== null) {
    const { recordedAtMs, lats, lngs, speedsKmh } = track;
    const isMoving = motion === 'moving';
    for (; at < end; at++) {
      const ms = recordedAtMs[at]! - recordedAtMs[at - 1]!;
      if (ms > GAP_MS || speedsKmh[at]! >= MOVING_FROM_KMH !== isMoving) break;
      if (isMoving) pen.draw(lats[at - 1]!, lngs[at - 1]!, lats[at]!, lngs[at]!, ms);
    }
  }
  if (at > n) {
    walk.goOnFrom(pointAt(track, at - 1));
    return at;
  }
  walk.step(pointAt(track, n));
  return n + 1;
}

/** Ways of which it is not known yet whether the vehicle was parked. */
type HeldWays = Way[];

/**
 * More are not held: the vehicle stands and reports many times a second. What is fast for a moment within the noise of its
 * receiver is held without end, too.
 */
const HELD_MAX = 4_096;

/** Draws the ways of a moving vehicle. */
class Pen implements Ledger<HeldWays> {
  readonly drawn = new DrawnCells();
  // Where the last way ended: nearly always the next one begins there.
  #lat = Number.NaN;
  #lng = Number.NaN;
  #x = 0;
  #y = 0;

  addPoint(): void {}

  noSums(): HeldWays {
    return [];
  }

  hold(sums: HeldWays, way: Way): void {
    if (sums.length < HELD_MAX) sums.push(way);
  }

  join(sums: HeldWays, later: HeldWays): void {
    for (const way of later) this.hold(sums, way);
  }

  book(sums: HeldWays, motion: Motion): void {
    for (const way of sums) this.bookWay(way, motion);
  }

  bookWay({ from, to, isGap }: Way, motion: Motion): void {
    if (isGap || motion === 'parked') return;
    this.draw(from.lat, from.lng, to.lat, to.lng, to.recordedAtMs - from.recordedAtMs);
  }

  /** Draws a way that took so long. */
  draw(lat0: number, lng0: number, lat1: number, lng1: number, ms: number): void {
    const isNext = lat0 === this.#lat && lng0 === this.#lng;
    const x0 = isNext ? this.#x : GRID.x(lng0);
    const y0 = isNext ? this.#y : GRID.y(lat0);
    const x1 = GRID.x(lng1);
    const y1 = GRID.y(lat1);
    this.#lat = lat1;
    this.#lng = lng1;
    this.#x = x1;
    this.#y = y1;
    // The short way, across 180° where that is it.
    const dx = x1 - x0 - GRID_SIDE * Math.round((x1 - x0) / GRID_SIDE);
    const dy = y1 - y0;
    const limitM = Math.min(WAY_MAX_M, (SPEED_MAX_MPS * ms) / 1_000);
    // Nearly every way is so short that it need not be measured exactly.
    if ((Math.abs(dx) + Math.abs(dy)) * CELL_MAX_M < limitM || lengthM(dx, dy, lat0) <= limitM)
      this.drawn.putLine(x0, y0, x0 + dx, y1);
  }
}

/** No cell is longer. */
const CELL_MAX_M = 1.001 * (EQUATOR_M / GRID_SIDE);

/** The map ends here. Nearer to a pole cells are so short that a way from there would seem short, however far it goes. */
const LAT_MAX = 85.06;

/** Both for a move on the grid that begins at this latitude. */
function lengthM(dx: number, dy: number, lat: number): number {
  const cellM = (EQUATOR_M / GRID_SIDE) * Math.cos(Math.min(Math.abs(lat), LAT_MAX) * RADIANS_PER_DEGREE);
  return Math.hypot(dx, dy) * cellM;
}
