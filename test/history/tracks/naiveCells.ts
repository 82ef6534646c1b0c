import { distanceM } from '../../../src/geo/wgs84.ts';
import type { TrackPoint } from '../../../src/history/summary/motionWalk.ts';
import { intervalsOf } from '../summary/naiveSummary.ts';

const SIDE = 2 ** 21;

/** Column and row of a place as every map computes them: not whole. */
export function placeOnGrid({ lat, lng }: { lat: number; lng: number }): [x: number, y: number] {
  const angle = (lat * Math.PI) / 180;
  const north = Math.log(Math.tan(angle) + 1 / Math.cos(angle));
  return [((lng + 180) / 360) * SIDE, ((1 - north / Math.PI) / 2) * SIDE];
}

/** The cells, as `column/row`, that a track of one day is drawn through. */
export function naiveCells(track: readonly TrackPoint[]): Set<string> {
  const cells = new Set<string>();
  for (const { from, to, kind } of intervalsOf(track)) {
    const metres = distanceM(from.lat, from.lng, to.lat, to.lng);
    const isJump = metres > 2_000 || metres > (70 * (to.recordedAtMs - from.recordedAtMs)) / 1_000;
    if (kind !== 'moving' || isJump) continue;
    const [x0, y0] = placeOnGrid(from);
    let [x1, y1] = placeOnGrid(to);
    if (x1 - x0 > SIDE / 2) x1 -= SIDE;
    if (x0 - x1 > SIDE / 2) x1 += SIDE;
    const steps = Math.max(1, Math.ceil(Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0))));
    for (let n = 0; n <= steps; n++) {
      const x = (Math.floor(x0 + ((x1 - x0) * n) / steps) + SIDE) % SIDE;
      const y = Math.floor(y0 + ((y1 - y0) * n) / steps);
      if (y >= 0 && y < SIDE) cells.add(`${x}/${y}`);
    }
  }
  return cells;
}

/** Days of a track, in UTC. */
export function daysOf(track: readonly TrackPoint[]): TrackPoint[][] {
  return [...Map.groupBy(track, ({ recordedAtMs }) => Math.floor(recordedAtMs / 86_400_000)).values()];
}

/** In how many days of tracks each cell is driven. */
export function naiveCounts(tracks: readonly (readonly TrackPoint[])[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const day of tracks.flatMap((track) => daysOf(track)))
    for (const cell of naiveCells(day)) counts.set(cell, Math.min(255, (counts.get(cell) ?? 0) + 1));
  return counts;
}

/** The column and row of a code, bit by bit. */
export function cellOfCode(code: number, bits = 21): string {
  let [x, y] = [0, 0];
  for (let bit = 0; bit < bits; bit++) {
    x += (Math.floor(code / 4 ** bit) % 2) * 2 ** bit;
    y += (Math.floor(code / 4 ** bit / 2) % 2) * 2 ** bit;
  }
  return `${x}/${y}`;
}

/** What only one of two sets has. */
export function differences<T>(one: ReadonlySet<T>, other: ReadonlySet<T>): T[] {
  return [...[...one].filter((each) => !other.has(each)), ...[...other].filter((each) => !one.has(each))];
}
