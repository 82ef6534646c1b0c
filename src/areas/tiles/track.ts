import { corridorBounds, extentOf } from '../../geo/measure.ts';
import { type Path, unwrapLine } from '../../geo/path.ts';
import type { TilePlane } from '../../geo/vectorTile.ts';
import { meridianRadiusM, parallelRadiusM, RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import type { Pace, Steps } from '../../lib/workTurns.ts';
import { type Polyline, toLatLngs } from '../area.ts';
import { pathSlices } from '../overlap/polylineOverlap.ts';
import { edgesOnPlane, turnsInto } from './boundary.ts';
import { keptPoints, type PlaneBox, type PlanePath, widened, withoutFar } from './tilePaths.ts';

/** A track that is narrower somewhere in the tile, in units, is drawn as its line: a pixel where a tile has 512. */
export const NARROW_UNITS = 8;
/** Between two rows in which a track is measured. */
const ROW_UNITS = 2;
/** A gap that is narrower is none. */
const GAP_UNITS = 2;
/** Points of rows that are kept at a time: some 6 MB. A track with more has its line drawn. */
const ROW_POINTS_MAX = 200_000;
/** See TileWork. */
const WORK = { linePoint: 3, point: 10, edgeOfRow: 6 };

/** What the drawing of a tile has cost so far: in steps that take about a tenth of a microsecond. */
export interface TileWork {
  readonly pace: Pace;
  done: number;
}

/** A track as everything within its buffer, or as lines where that is too narrow to have an inside. */
export type TrackOnPlane =
  | { readonly kind: 'rings'; readonly rings: readonly TracedRing[]; readonly meets: boolean }
  | { readonly kind: 'lines'; readonly lines: readonly PlanePath[]; readonly bufferUnits: number };

/** The part of a track near the box. `inner`: the box that `meets` is about. `work`: what it has cost is added. */
export function* trackOnPlane(
  track: Polyline,
  plane: TilePlane,
  box: PlaneBox,
  inner: PlaneBox,
  work: TileWork,
): Steps<TrackOnPlane> {
  const path = unwrapLine(toLatLngs(track.points));
  work.done += WORK.linePoint * path.lngs.length;
  const { narrow, wide } = bufferUnits(path, track.bufferM, plane, box);
  if (2 * narrow >= NARROW_UNITS) {
    const rings = yield* traced({ path, bufferM: track.bufferM }, wide, plane, box, inner, work);
    if (rings !== null) return rings;
  }
  const { west, east } = extentOf(path);
  const near = { left: box.left - wide, right: box.right + wide };
  const lines = turnsInto(plane.x(west), plane.x(east), plane, near).map((turns) =>
    edgesOnPlane(path, turns, plane, box),
  );
  return { kind: 'lines', lines, bufferUnits: wide };
}

/** The buffer where it is narrowest and where it is widest on the plane, in what the track has of the box. */
function bufferUnits(path: Path, bufferM: number, plane: TilePlane, box: PlaneBox) {
  const { south, north } = extentOf(path);
  const from = Math.max(plane.lat(box.bottom), Math.min(south, plane.lat(box.top)));
  const to = Math.min(plane.lat(box.top), Math.max(north, from));
  const unitsAt = (lat: number) => {
    const perDegreeM = parallelRadiusM(lat) * RADIANS_PER_DEGREE;
    return ((bufferM / perDegreeM) * plane.turn) / 360;
  };
  const nearEquator = from <= 0 && to >= 0 ? 0 : Math.min(Math.abs(from), Math.abs(to));
  return { narrow: unitsAt(nearEquator), wide: unitsAt(Math.max(Math.abs(from), Math.abs(to))) };
}

/** Null where there are too many points. */
function* traced(
  { path, bufferM }: { readonly path: Path; readonly bufferM: number },
  bufferUnits: number,
  plane: TilePlane,
  box: PlaneBox,
  inner: PlaneBox,
  work: TileWork,
): Steps<TrackOnPlane | null> {
  const { west, east } = extentOf(path);
  const reach = buffersDegrees(path, bufferM);
  const turns = turnsInto(plane.x(west - reach), plane.x(east + reach), plane, box);
  const near = turns.map((turn) => nearPath(path, turn, plane, widened(box, bufferUnits)));
  const slices = near.map((part) => pathSlices(part, bufferM));
  const rings = new RowRings();
  let meets = false;
  const bottom = Math.min(box.bottom, plane.y(Math.min(...slices.map(({ south }) => south))));
  const top = Math.max(box.top, plane.y(Math.max(...slices.map(({ north }) => north))));
  for (const part of near) {
    work.done += WORK.point * part.lngs.length + WORK.edgeOfRow * rowWork(part, bufferM, plane, box);
  }
  for (let y = ROW_UNITS * Math.floor(bottom / ROW_UNITS); y >= top; y -= ROW_UNITS) {
    const lat = plane.lat(y);
    const spans = spansOf(
      slices.map((each) => each.at(lat)),
      turns,
      plane,
      box,
    );
    rings.add({ y, spans });
    if (y >= inner.top && y <= inner.bottom) meets ||= hasSpanIn(spans, inner);
    if (rings.size > ROW_POINTS_MAX) return null;
    if (work.pace.isDue()) yield* work.pace.pause();
  }
  return { kind: 'rings', rings: rings.finish(), meets };
}

/**
 * The path near the box, without vertices that change nothing there. Compared on a map where its edges are straight, that
 * of longitude and latitude, in units that are nowhere in the box longer than the tile's.
 */
function nearPath({ lngs, lats }: Path, turns: number, plane: TilePlane, box: PlaneBox): Path {
  const [north, south] = [plane.lat(box.top), plane.lat(box.bottom)];
  const widest = Math.cos(Math.max(Math.abs(north), Math.abs(south)) * RADIANS_PER_DEGREE);
  const perDegree = plane.turn / 360 / widest;
  const flat: number[] = [];
  for (let n = 0; n < lngs.length; n++) flat.push(plane.x(lngs[n]! + 360 * turns), -lats[n]! * perDegree);
  const flatBox = { ...box, top: -north * perDegree, bottom: -south * perDegree };
  const near = withoutFar(flat, flatBox);
  const kept = keptPoints(near.flatMap((n) => [flat[2 * n]!, flat[2 * n + 1]!])).map((n) => near[n]!);
  return { lngs: kept.map((n) => lngs[n]!), lats: kept.map((n) => lats[n]!), points: [] };
}

/** How many degrees of longitude the buffer reaches on both sides together. */
function buffersDegrees(path: Path, bufferM: number): number {
  const { west, east } = extentOf(path);
  const bounds = corridorBounds(path, bufferM);
  if (bounds.east - bounds.west >= 360) return 360;
  const width = bounds.east < bounds.west ? bounds.east - bounds.west + 360 : bounds.east - bounds.west;
  return Math.max(0, width - (east - west));
}

/** The intervals of a parallel, in degrees, those of each copy of the world, as spans of the box: ascending and apart. */
function spansOf(
  intervalsOf: readonly (readonly number[])[],
  turns: readonly number[],
  plane: TilePlane,
  { left, right }: PlaneBox,
): number[] {
  const found: [from: number, to: number][] = [];
  for (const [each, turn] of turns.entries()) {
    const intervals = intervalsOf[each]!;
    for (let n = 0; n < intervals.length; n += 2) {
      const from = Math.max(left, plane.x(intervals[n]! + 360 * turn));
      const to = Math.min(right, plane.x(intervals[n + 1]! + 360 * turn));
      if (from <= to) found.push([from, to]);
    }
  }
  // A track around the world may lie beside itself a turn further.
  if (turns.length > 1) found.sort(([a], [b]) => a - b);
  const spans: number[] = [];
  for (const [from, to] of found) {
    const end = spans.length - 1;
    if (end > 0 && from <= spans[end]! + GAP_UNITS) spans[end] = Math.max(spans[end]!, to);
    else spans.push(from, to);
  }
  return spans;
}

function hasSpanIn(spans: readonly number[], { left, right }: PlaneBox): boolean {
  for (let n = 0; n < spans.length; n += 2) if (spans[n]! <= right && spans[n + 1]! >= left) return true;
  return false;
}

/** Rows of a path in a box times the edges that each meets. */
function rowWork({ lats }: Path, bufferM: number, plane: TilePlane, box: PlaneBox): number {
  const south = plane.lat(box.bottom);
  const north = plane.lat(box.top);
  const rows = (box.bottom - box.top) / ROW_UNITS;
  let share = 0;
  for (let n = 1; n < lats.length; n++) {
    const [a, b] = [lats[n - 1]!, lats[n]!];
    const reach = bufferM / (meridianRadiusM(b) * RADIANS_PER_DEGREE);
    const from = Math.max(south, Math.min(a, b) - reach);
    const to = Math.min(north, Math.max(a, b) + reach);
    if (to > from) share += (to - from) / (north - south);
  }
  return rows * share;
}

/** Where something meets a row: pairs of x, ascending and apart. */
export interface Row {
  readonly y: number;
  readonly spans: readonly number[];
}

/** A ring, and whether it bounds a hole. */
export interface TracedRing {
  readonly path: readonly number[];
  readonly isHole: boolean;
}

/** A span of the row before: the points at its ends. */
interface OpenSpan {
  readonly left: number;
  readonly right: number;
}

/**
 * Follows what is known row by row, each north of the one before, and gives its rings: exterior ones, which run clockwise,
 * each followed by its holes. Left sides run north and right sides south. Spans of two rows that overlap are of one piece:
 * where a span ends, divides or meets another, the row is the boundary.
 */
export class RowRings {
  // Of each point, by its number: plain arrays, because hundreds of thousands of objects would stop everybody else when
  // memory is collected.
  readonly #x: number[] = [];
  readonly #y: number[] = [];
  /** The next point of its ring. */
  readonly #next: number[] = [];
  readonly #region: number[] = [];
  /** What a region has turned out to belong to: another region, or itself. */
  readonly #joined: number[] = [];
  #open: readonly OpenSpan[] = [];

  /** How many points it has so far. */
  get size(): number {
    return this.#x.length;
  }

  add({ y, spans }: Row): void {
    const before = this.#open;
    const now: OpenSpan[] = [];
    let next = 0;
    for (let at = 0; at < spans.length; ) {
      // The spans of both rows that hang together, from the first one of this row on.
      const firstSpan = at;
      while (next < before.length && this.#x[before[next]!.right]! < spans[at]!) this.#close(before[next++]!);
      const firstBefore = next;
      let end = spans[at + 1]!;
      at += 2;
      for (;;) {
        if (next < before.length && this.#x[before[next]!.left]! <= end) {
          next++;
        } else if (
          at < spans.length &&
          next > firstBefore &&
          spans[at]! <= this.#x[before[next - 1]!.right]!
        ) {
          end = spans[at + 1]!;
          at += 2;
        } else break;
      }
      now.push(...this.#join(before.slice(firstBefore, next), spans.slice(firstSpan, at), y));
    }
    while (next < before.length) this.#close(before[next++]!);
    this.#open = now;
  }

  /** Nothing of the next row continues the span. */
  #close({ left, right }: OpenSpan): void {
    this.#next[left] = right;
  }

  /** Some spans of the row before continue as these. */
  #join(before: readonly OpenSpan[], spans: readonly number[], y: number): OpenSpan[] {
    const region = before.length > 0 ? this.#rootOf(before[0]!.left) : this.#joined.length;
    if (before.length === 0) this.#joined.push(region);
    for (const { left } of before) this.#joined[this.#rootOf(left)] = region;
    const now: OpenSpan[] = [];
    for (let at = 0; at < spans.length; at += 2) {
      now.push({ left: this.#point(spans[at]!, y, region), right: this.#point(spans[at + 1]!, y, region) });
    }
    const [first, last] = [now[0]!, now[now.length - 1]!];
    if (before.length === 0) {
      this.#next[last.right] = first.left;
    } else {
      this.#next[before[0]!.left] = first.left;
      this.#next[last.right] = before[before.length - 1]!.right;
    }
    // Between two spans of the row before a gap ends, between two of this one a gap begins.
    for (let n = 1; n < before.length; n++) this.#next[before[n]!.left] = before[n - 1]!.right;
    for (let n = 1; n < now.length; n++) this.#next[now[n - 1]!.right] = now[n]!.left;
    return now;
  }

  #point(x: number, y: number, region: number): number {
    this.#x.push(x);
    this.#y.push(y);
    this.#region.push(region);
    return this.#next.push(-1) - 1;
  }

  #rootOf(point: number): number {
    let root = this.#region[point]!;
    while (this.#joined[root] !== root) root = this.#joined[root]!;
    return root;
  }

  /** The rings, exterior ones each followed by their holes. Nothing can be added any more. */
  finish(): TracedRing[] {
    for (const span of this.#open) this.#close(span);
    const isTaken = new Uint8Array(this.size);
    const byRegion = new Map<number, TracedRing[]>();
    for (let start = 0; start < this.size; start++) {
      if (isTaken[start] === 1) continue;
      const path: number[] = [];
      let doubleArea = 0;
      for (let point = start; isTaken[point] === 0; point = this.#next[point]!) {
        isTaken[point] = 1;
        const next = this.#next[point]!;
        const [x, y] = [this.#x[point]!, this.#y[point]!];
        path.push(x, y);
        doubleArea += x * this.#y[next]! - this.#x[next]! * y;
      }
      const root = this.#rootOf(start);
      const rings = byRegion.get(root) ?? [];
      byRegion.set(root, rings);
      const isHole = doubleArea < 0;
      if (isHole) rings.push({ path, isHole });
      else rings.unshift({ path, isHole });
    }
    return [...byRegion.values()].flat();
  }
}
