import type { Shape } from '../areas/shape.ts';

/** Something that was so until a time of receipt, that one excluded. The last of a list holds until Infinity. */
export interface Until<Value> {
  readonly value: Value;
  readonly untilMs: number;
}

/** An area as it was from a time on. */
interface PastArea {
  readonly sinceMs: number;
  readonly worldId: number;
  readonly dwellSeconds: number;
  /** The same object for revisions of the same shape. */
  readonly shape: PastShape;
}

/** Compiled when it is first needed: an area may have many that no point was evaluated against. */
export interface PastShape {
  compiled(): Pick<Shape, 'contains' | 'signedDistanceM'>;
}

/** What is known of an area and a device since both exist. Times are those of Postgres' clock. */
export interface Past {
  readonly createdAtMs: number;
  /** By time, at least one. The first may begin after the area was made: what it was like before is not known. */
  readonly revisions: readonly PastArea[];
  /** The worlds of the device. */
  readonly deviceWorlds: readonly Until<number>[];
  /** The worlds of organizations that the account of a world belonged to, by the world of the account; null: none. */
  readonly organizations: ReadonlyMap<number, readonly Until<number | null>[]>;
}

/** What the points of a device that were received from `sinceMs` on were evaluated against. */
export interface WatchPeriod {
  readonly sinceMs: number;
  /** `no_area`: it did not exist yet. `not_watched`: it did not watch this device. */
  readonly state: 'watched' | 'not_watched' | 'no_area';
  readonly shape: PastShape;
  readonly dwellSeconds: number;
  /** False where the area is not known as it was: then these are its first known shape and dwell. */
  readonly isKnown: boolean;
}

/** The periods of a device and an area one after the other; the first holds from the beginning of time. */
export function watchPeriodsOf(past: Past): readonly WatchPeriod[] {
  const times = new Set([Number.NEGATIVE_INFINITY, past.createdAtMs]);
  for (const { sinceMs } of past.revisions) times.add(Math.max(sinceMs, past.createdAtMs));
  for (const { untilMs } of past.deviceWorlds) times.add(untilMs);
  for (const list of past.organizations.values()) for (const { untilMs } of list) times.add(untilMs);
  times.delete(Number.POSITIVE_INFINITY);
  const periods: WatchPeriod[] = [];
  for (const sinceMs of [...times].sort((a, b) => a - b)) {
    const next = periodAt(past, sinceMs);
    const last = periods.at(-1);
    if (last === undefined || !isSame(last, next)) periods.push(next);
  }
  return periods;
}

/** Where in the list the period of a time is. */
export function indexAt(periods: readonly WatchPeriod[], atMs: number): number {
  let low = 0;
  let high = periods.length;
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if ((periods[mid] as WatchPeriod).sinceMs <= atMs) low = mid;
    else high = mid;
  }
  return low;
}

function periodAt(past: Past, sinceMs: number): WatchPeriod {
  const known = past.revisions.findLast((revision) => revision.sinceMs <= sinceMs);
  const { shape, dwellSeconds, worldId } = known ?? (past.revisions[0] as PastArea);
  const hasArea = sinceMs >= past.createdAtMs;
  const isWatched = watches(past, worldId, valueAt(past.deviceWorlds, sinceMs), sinceMs);
  return {
    sinceMs,
    state: !hasArea ? 'no_area' : isWatched ? 'watched' : 'not_watched',
    shape,
    dwellSeconds,
    isKnown: known !== undefined || !hasArea,
  };
}

/** An area watches its own world, and members and their organization watch each other. */
function watches({ organizations }: Past, areaWorldId: number, deviceWorldId: number, atMs: number): boolean {
  if (areaWorldId === deviceWorldId) return true;
  const organizationOf = (worldId: number): number | null => {
    const list = organizations.get(worldId);
    return list === undefined ? null : valueAt(list, atMs);
  };
  return organizationOf(deviceWorldId) === areaWorldId || organizationOf(areaWorldId) === deviceWorldId;
}

function valueAt<Value>(list: readonly Until<Value>[], atMs: number): Value {
  const last = list.length - 1;
  return (list.find(({ untilMs }, n) => n === last || atMs < untilMs) as Until<Value>).value;
}

function isSame(a: WatchPeriod, b: WatchPeriod): boolean {
  return (
    a.state === b.state && a.shape === b.shape && a.dwellSeconds === b.dwellSeconds && a.isKnown === b.isKnown
  );
}
