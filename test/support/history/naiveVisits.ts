/** A point that was evaluated, as a test knows it: what it was evaluated against included. */
export interface KnownPoint {
  readonly atMs: number;
  readonly inside: boolean;
  readonly isWatched: boolean;
  readonly dwellSeconds: number;
}

export interface NaiveVisit {
  readonly firstMs: number;
  lastMs: number;
  points: number;
  entryMs: number | null;
  exitMs: number | null;
  /** The point that ended it, of whatever kind. */
  endMs: number | null;
}

/** The rule of the API document in a loop: every visit of a device that was evaluated at these points, in order. */
export function naiveVisits(points: readonly KnownPoint[], fromMs: number, toMs: number): NaiveVisit[] {
  const visits: NaiveVisit[] = [];
  let open: NaiveVisit | null = null;
  for (const { atMs, inside, isWatched, dwellSeconds } of points) {
    if (atMs > toMs) break;
    if (isWatched && inside) {
      if (open === null) {
        open = { firstMs: atMs, lastMs: atMs, points: 0, entryMs: null, exitMs: null, endMs: null };
        visits.push(open);
      }
      open.lastMs = atMs;
      if (atMs >= fromMs) open.points++;
      if (open.entryMs === null && atMs - open.firstMs >= dwellSeconds * 1_000) open.entryMs = atMs;
    } else if (open !== null) {
      open.endMs = atMs;
      if (isWatched && open.entryMs !== null) open.exitMs = atMs;
      open = null;
    }
  }
  return visits.filter(({ points: count, endMs }) => count > 0 || (endMs !== null && endMs >= fromMs));
}

export function naiveOutcome({ entryMs, exitMs, endMs }: NaiveVisit): string {
  if (entryMs !== null) return exitMs === null ? 'entry' : 'entry_and_exit';
  return endMs === null ? 'pending' : 'too_short';
}

/** The verdict of a window with at least one evaluated and watched point, or with a visit. */
export function naiveVerdict(visits: readonly NaiveVisit[], otherwise: string): string {
  const outcomes = visits.map(naiveOutcome);
  const reported = outcomes.findLast((outcome) => outcome.startsWith('entry'));
  if (reported !== undefined) return reported === 'entry' ? 'entered' : 'left';
  const last = outcomes.at(-1);
  if (last === 'pending') return 'inside_pending';
  return last ?? otherwise;
}
