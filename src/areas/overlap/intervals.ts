/**
 * Where a shape meets one parallel: pairs of longitudes in degrees, west then east, ascending and disjoint. Longitudes
 * are continuous (no jump at 180°), so a shape may have -190 or 185; a whole parallel is one pair 360° apart.
 */
export type Intervals = readonly number[];

/** A shape as its intersections with parallels. */
export interface Slices {
  /** Degrees. Nothing of the shape lies outside. */
  readonly south: number;
  readonly north: number;
  /** Metres. The shape has no detail that is much smaller; slices are taken several to this height. */
  readonly detailM: number;
  /** Latitudes at which the width may jump: no slice extends across them. In any order. */
  readonly breaks: readonly number[];
  /** The intersection with the parallel `lat`, which rises from call to call. */
  at(lat: number): Intervals;
}

/** Sorts pairs by their west ends and joins those that meet. */
export function joined(pairs: [west: number, east: number][]): number[] {
  pairs.sort((a, b) => a[0] - b[0]);
  const intervals: number[] = [];
  for (const [west, east] of pairs) {
    const last = intervals.length - 1;
    if (last > 0 && west <= intervals[last]!) intervals[last] = Math.max(intervals[last]!, east);
    else intervals.push(west, east);
  }
  return intervals;
}

/** Degrees of longitude that two sets of intervals have in common, full turns apart included. */
export function commonDegrees(a: Intervals, b: Intervals): number {
  if (a.length === 0 || b.length === 0) return 0;
  const lowestTurn = Math.ceil((a[0]! - b[b.length - 1]!) / 360);
  const highestTurn = Math.floor((a[a.length - 1]! - b[0]!) / 360);
  let degrees = 0;
  for (let turn = lowestTurn; turn <= highestTurn; turn++) degrees += commonOfTurn(a, b, turn * 360);
  return Math.min(360, degrees);
}

function commonOfTurn(a: Intervals, b: Intervals, shift: number): number {
  let degrees = 0;
  let j = 0;
  for (let i = 0; i < a.length; i += 2) {
    while (j < b.length && b[j + 1]! + shift <= a[i]!) j += 2;
    for (let k = j; k < b.length && b[k]! + shift < a[i + 1]!; k += 2) {
      degrees += Math.min(a[i + 1]!, b[k + 1]! + shift) - Math.max(a[i]!, b[k]! + shift);
    }
  }
  return degrees;
}
