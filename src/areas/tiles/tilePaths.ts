import type { TilePath } from '../../geo/vectorTile.ts';

/** Points of a plane in units of a tile: x, y, x, y, … A ring does not repeat its first point. */
export type PlanePath = readonly number[];

/** A rectangle of the plane. */
export interface PlaneBox {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export function widened({ left, top, right, bottom }: PlaneBox, units: number): PlaneBox {
  return { left: left - units, top: top - units, right: right + units, bottom: bottom + units };
}

/** How far a boundary may be moved to save points: a sixteenth of a pixel where a tile is 512 pixels wide. */
export const TOLERANCE_UNITS = 0.5;

/** The part of a ring in a box. Parts that the box divides stay joined along its sides (Sutherland and Hodgman, 1974). */
export function clipRing(ring: PlanePath, { left, top, right, bottom }: PlaneBox): PlanePath {
  let clipped = clipSide(ring, 0, left, 1);
  clipped = clipSide(clipped, 0, right, -1);
  clipped = clipSide(clipped, 1, top, 1);
  return clipSide(clipped, 1, bottom, -1);
}

/** The part on one side of a line: where `axis` (0: x, 1: y) times `sign` is not below `limit` times `sign`. */
function clipSide(ring: PlanePath, axis: 0 | 1, limit: number, sign: 1 | -1): PlanePath {
  const kept: number[] = [];
  let [x0, y0] = [ring.at(-2) ?? 0, ring.at(-1) ?? 0];
  for (let at = 0; at < ring.length; at += 2) {
    const [x, y] = [ring[at]!, ring[at + 1]!];
    const before = (axis === 0 ? x0 : y0) - limit;
    const here = (axis === 0 ? x : y) - limit;
    const wasInside = before * sign >= 0;
    const isInside = here * sign >= 0;
    if (wasInside !== isInside) {
      const share = before / (before - here);
      if (axis === 0) kept.push(limit, y0 + share * (y - y0));
      else kept.push(x0 + share * (x - x0), limit);
    }
    if (isInside) kept.push(x, y);
    [x0, y0] = [x, y];
  }
  return kept;
}

/** The parts of a line in a box. */
export function clipLine(line: PlanePath, box: PlaneBox): PlanePath[] {
  const parts: number[][] = [];
  let open: number[] | null = null;
  for (let at = 2; at < line.length; at += 2) {
    const [x0, y0, x1, y1] = [line[at - 2]!, line[at - 1]!, line[at]!, line[at + 1]!];
    const shares = sharesInside(x0, y0, x1, y1, box);
    if (shares === null) {
      open = null;
      continue;
    }
    const [from, to] = shares;
    if (open === null || from > 0) {
      open = [x0 + from * (x1 - x0), y0 + from * (y1 - y0)];
      parts.push(open);
    }
    open.push(x0 + to * (x1 - x0), y0 + to * (y1 - y0));
    if (to < 1) open = null;
  }
  return parts;
}

/** The shares of a segment between which it is in a box (Liang and Barsky, 1984); null where it is not. */
function sharesInside(
  x0: number,
  y0: number,
  x1: number,
  y1: number,
  { left, top, right, bottom }: PlaneBox,
): readonly [from: number, to: number] | null {
  if ((x0 < left && x1 < left) || (x0 > right && x1 > right)) return null;
  if ((y0 < top && y1 < top) || (y0 > bottom && y1 > bottom)) return null;
  let from = 0;
  let to = 1;
  for (const [start, step, low, high] of [
    [x0, x1 - x0, left, right],
    [y0, y1 - y0, top, bottom],
  ] as const) {
    if (step === 0) continue; // between both sides, as the first lines have found
    const a = (low - start) / step;
    const b = (high - start) / step;
    from = Math.max(from, Math.min(a, b));
    to = Math.min(to, Math.max(a, b));
  }
  return from <= to ? [from, to] : null;
}

/** Whether a line has a point in a box. */
export function lineMeets(line: PlanePath, box: PlaneBox): boolean {
  for (let at = 2; at < line.length; at += 2) {
    if (sharesInside(line[at - 2]!, line[at - 1]!, line[at]!, line[at + 1]!, box) !== null) return true;
  }
  return false;
}

/** Whether what a ring encloses, its boundary included, has a point in a box. */
export function ringMeets(ring: PlanePath, box: PlaneBox): boolean {
  if (lineMeets(ring, box)) return true;
  const last = ring.length - 2;
  if (sharesInside(ring[last]!, ring[last + 1]!, ring[0]!, ring[1]!, box) !== null) return true;
  return ringHolds(ring, box.left, box.top);
}

/** By the number of edges north of the point. */
function ringHolds(ring: PlanePath, x: number, y: number): boolean {
  let isInside = false;
  let [x0, y0] = [ring.at(-2) ?? 0, ring.at(-1) ?? 0];
  for (let at = 0; at < ring.length; at += 2) {
    const [x1, y1] = [ring[at]!, ring[at + 1]!];
    if (x0 <= x !== x1 <= x && y0 + ((x - x0) / (x1 - x0)) * (y1 - y0) < y) isInside = !isInside;
    [x0, y0] = [x1, y1];
  }
  return isInside;
}

/**
 * The path with fewer points, none of which moved; the first and the last one stay. From the last point that was kept, a
 * sleeve of directions passes all points since within the tolerance. When a point leaves the sleeve, or turns back in it,
 * the one before is kept (Zhao and Saalfeld, Linear-time sleeve-fitting polyline simplification algorithms, 1997). Takes
 * time in proportion to the points, whatever their shape.
 */
export function simplifyPath(path: PlanePath): PlanePath {
  const kept: number[] = [];
  for (const n of keptPoints(path)) kept.push(path[2 * n]!, path[2 * n + 1]!);
  return kept;
}

/** Which points of a path simplifyPath keeps. */
export function keptPoints(path: PlanePath): number[] {
  const end = path.length - 2;
  if (end <= 2) return end < 0 ? [] : end === 0 ? [0] : [0, 1];
  const kept: number[] = [0];
  let [x0, y0] = [path[0]!, path[1]!];
  // The sides of the sleeve as directions, and how far along it the points have come. Without a side it is open.
  let [leftX, leftY, rightX, rightY] = [0, 0, 0, 0];
  let isOpen = true;
  let reach = 0;
  for (let at = 2; at <= end; at += 2) {
    const dx = path[at]! - x0;
    const dy = path[at + 1]! - y0;
    const distance = Math.hypot(dx, dy);
    const isWithin =
      isOpen || (leftX * dy - leftY * dx <= 0 && rightX * dy - rightY * dx >= 0 && distance > 0);
    if (!isWithin || distance < reach - TOLERANCE_UNITS) {
      kept.push(at / 2 - 1);
      [x0, y0] = [path[at - 2]!, path[at - 1]!];
      isOpen = true;
      reach = 0;
      at -= 2; // once more, from there
      continue;
    }
    reach = Math.max(reach, distance);
    if (distance <= TOLERANCE_UNITS) continue;
    // The directions that pass this point within the tolerance.
    const sin = TOLERANCE_UNITS / distance;
    const cos = Math.sqrt(1 - sin * sin);
    const [toLeftX, toLeftY] = [dx * cos - dy * sin, dx * sin + dy * cos];
    const [toRightX, toRightY] = [dx * cos + dy * sin, dy * cos - dx * sin];
    if (isOpen || leftX * toLeftY - leftY * toLeftX < 0) [leftX, leftY] = [toLeftX, toLeftY];
    if (isOpen || rightX * toRightY - rightY * toRightX > 0) [rightX, rightY] = [toRightX, toRightY];
    isOpen = false;
  }
  kept.push(end / 2);
  return kept;
}

/**
 * The path without the points that have both neighbours on the same side of a box: what remains runs through the box as
 * before. The first and the last one stay.
 */
export function withoutFar(path: PlanePath, box: PlaneBox): number[] {
  const kept: number[] = [];
  const last = path.length / 2 - 1;
  let side = 0;
  for (let n = 0; n <= last; n++) {
    // The sides on which the points since the one that was kept last all are, and the next one too.
    const own = sidesOf(path[2 * n]!, path[2 * n + 1]!, box);
    const next = n < last ? sidesOf(path[2 * n + 2]!, path[2 * n + 3]!, box) : 0;
    if (n > 0 && (side & own & next) !== 0) {
      side &= own;
      continue;
    }
    kept.push(n);
    side = own;
  }
  return kept;
}

function sidesOf(x: number, y: number, { left, top, right, bottom }: PlaneBox): number {
  return (x < left ? 1 : 0) | (x > right ? 2 : 0) | (y < top ? 4 : 0) | (y > bottom ? 8 : 0);
}

/** In whole units, without points that follow each other on the same place. */
export function rounded(path: PlanePath, isRing: boolean): TilePath {
  const whole: number[] = [];
  for (let at = 0; at < path.length; at += 2) {
    const [x, y] = [Math.round(path[at]!), Math.round(path[at + 1]!)];
    if (x !== whole.at(-2) || y !== whole.at(-1)) whole.push(x, y);
  }
  while (isRing && whole.length > 2 && whole[0] === whole.at(-2) && whole[1] === whole.at(-1)) {
    whole.splice(-2);
  }
  return whole;
}

/** Twice the area of a ring: positive where it runs clockwise as one looks at the map. */
export function doubleArea(ring: PlanePath): number {
  let sum = 0;
  let [x0, y0] = [ring.at(-2) ?? 0, ring.at(-1) ?? 0];
  for (let at = 0; at < ring.length; at += 2) {
    sum += x0 * ring[at + 1]! - ring[at]! * y0;
    [x0, y0] = [ring[at]!, ring[at + 1]!];
  }
  return sum;
}

/** The ring in the other direction. */
export function reversed(ring: TilePath): TilePath {
  const back: number[] = [];
  for (let at = ring.length - 2; at >= 0; at -= 2) back.push(ring[at]!, ring[at + 1]!);
  return back;
}
