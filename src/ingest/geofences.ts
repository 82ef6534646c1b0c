import type { AreaDefinition } from '../areas/area.ts';
import type { Shape } from '../areas/shape.ts';
import { indexOfArea, NO_STAYS, type Stay } from '../devices/stays/packedStays.ts';
import type { StayLimit, StayRoom } from '../devices/stays/stayCounts.ts';
import type { GeofenceEvent } from '../events/fleetEvent.ts';
import type { Pace, Steps } from '../lib/workTurns.ts';
import type { Fix } from './fix.ts';

/** What the engine asks of an area. */
export interface WatchedArea {
  readonly id: number;
  readonly worldId: number;
  /** Whose quota its stays count for: that of the account that made it. */
  readonly accountId: number;
  readonly definition: Pick<AreaDefinition, 'name' | 'dwellSeconds'>;
  readonly shape: Pick<Shape, 'contains'>;
}

/** The areas that watch one device: those of every owner who can see it. */
export interface WatchedAreas {
  readonly deviceWorldId: number;
  /** At least those that contain the position, each once, in any order. */
  near(lat: number, lng: number): readonly WatchedArea[];
  /** Undefined: it was deleted, or does not watch this device any more. */
  byId(areaId: number): WatchedArea | undefined;
  /** True for the world of an organization. */
  isShared(worldId: number): boolean;
}

export interface GeofenceStep {
  /** The very list that was given when the point changed nothing. */
  readonly stays: readonly Stay[];
  /** Exits first, then entries, each by area. */
  readonly events: readonly GeofenceEvent[];
  /** What kept stays from beginning at this point; null: they all began. */
  readonly refusedBy: StayLimit | null;
}

/** Areas that are looked up one by one; more of them are put into a set first. */
const LISTED_MAX = 32;

/** How areas are asked, and how long that may take. */
export interface GeofenceRun {
  readonly pace: Pace;
  /** Whether the point is inside, if its area is near. */
  contains(area: WatchedArea, fix: PointFacts): boolean;
  /** Asked after each pause. True: the point is left for later. */
  isSpent(): boolean;
}

export type PointFacts = Pick<Fix, 'lat' | 'lng' | 'recordedAtMs'>;

/** Whether a point is inside, by the shape of its area. */
export function askShape({ shape }: WatchedArea, { lat, lng }: PointFacts): boolean {
  return shape.contains(lat, lng);
}

/**
 * One point of a device, newer than all before it, against the areas `near` it and those with an open stay, wherever they
 * are: a device may jump out of an area and far away. A stay whose area is gone from sight vanishes without an exit.
 *
 * Stays begin while there is room for them, in the order of their areas and after those that end at this point. One that
 * finds no room begins with the next point inside that does. There may be thousands of areas, so it pauses. Null: it took
 * too long; then the point has changed the room in part.
 */
export function* geofenceSteps(
  stays: readonly Stay[],
  fix: PointFacts,
  watch: WatchedAreas,
  near: readonly WatchedArea[],
  room: StayRoom,
  { pace, contains, isSpent }: GeofenceRun,
): Steps<GeofenceStep | null> {
  if (near.length === 0 && stays.length === 0) return { stays, events: NO_EVENTS, refusedBy: null };
  const next: Stay[] = [];
  const exits: GeofenceEvent[] = [];
  const entries: GeofenceEvent[] = [];
  let changed = false;
  const keep = (area: WatchedArea, before: Stay | null, { stay, transition }: StayStep): void => {
    if (stay !== before) changed = true;
    if (stay !== null) next.push(stay);
    if (transition === 'entry' && stay !== null) entries.push(entryOf(area, stay, fix, watch));
    if (transition === 'exit' && before !== null) exits.push(exitOf(area, before, fix, watch));
  };

  // An area that is not near cannot contain the point, and is not asked.
  const nearSet = stays.length * near.length > LISTED_MAX ** 2 ? new Set(near) : null;
  for (const stay of stays) {
    const area = watch.byId(stay.areaId);
    if (area === undefined) {
      changed = true;
      room.end(null);
    } else {
      const isNear = nearSet === null ? near.includes(area) : nearSet.has(area);
      const step = stepStay(stay, area, isNear && contains(area, fix), fix.recordedAtMs);
      keep(area, stay, step);
      if (step.stay === null) room.end(area.accountId);
    }
    if (!pace.isDue()) continue;
    yield* pace.pause();
    if (isSpent()) return null;
  }
  const begun: { readonly area: WatchedArea; readonly step: StayStep }[] = [];
  /** Accounts without room that have an area around the point: their other areas need not be asked. */
  const refused = new Set<number>();
  for (const area of near) {
    if (!hasStay(stays, area.id) && !refused.has(area.accountId)) {
      const step = stepStay(null, area, contains(area, fix), fix.recordedAtMs);
      if (step.stay !== null) begun.push({ area, step });
      if (step.stay !== null && room.limitOf(area.accountId) !== null) refused.add(area.accountId);
    }
    if (!pace.isDue()) continue;
    yield* pace.pause();
    if (isSpent()) return null;
  }
  if (begun.length > 1) begun.sort((a, b) => a.area.id - b.area.id);
  let refusedBy: StayLimit | null = null;
  for (const { area, step } of begun) {
    const limit = room.limitOf(area.accountId);
    refusedBy = limit ?? refusedBy;
    if (limit !== null) continue;
    room.begin(area.accountId);
    keep(area, null, step);
  }

  if (!changed) return { stays, events: NO_EVENTS, refusedBy };
  if (next.length > 1) next.sort(byArea);
  if (entries.length > 1) entries.sort(byArea);
  return { stays: next.length === 0 ? NO_STAYS : next, events: exits.concat(entries), refusedBy };
}

interface StayStep {
  /** The very `stay` that was given when the point changes nothing; null: not inside. */
  readonly stay: Stay | null;
  readonly transition: 'entry' | 'exit' | null;
}

/**
 * One point of a device against one area: the state before it → the state after it, and what it produces. Points
 * come in the order of their GPS times. `inside` is by the shape that the area has now, and `dwellSeconds` is its
 * present threshold; `atMs` is the GPS time of the point. Elapsed: from the first inside point to this one.
 *
 *   before      the point   and                              after       produces   rule of the API document
 *   none        outside                                      none        -          4: passing through is nothing
 *   none        inside      dwellSeconds is 0                confirmed   entry      1: at once
 *   none        inside      dwellSeconds is more than 0      pending     -          2: not before the minimum stay
 *   pending     outside                                      none        -          3: the count resets; 5: no exit
 *   pending     inside      elapsed <  dwellSeconds          pending     -          2: by GPS time
 *   pending     inside      elapsed >= dwellSeconds          confirmed   entry      2: equality is enough
 *   confirmed   inside      whatever dwellSeconds is now     confirmed   -          an entry is reported once
 *   confirmed   outside                                      none        exit       5: after an entry only
 *
 * No timer ever confirms a stay. A threshold that was changed while a stay is pending holds from the next point on,
 * counted from the beginning that was kept.
 */
export function stepStay(
  stay: Stay | null,
  area: { readonly id: number; readonly definition: { readonly dwellSeconds: number } },
  inside: boolean,
  atMs: number,
): StayStep {
  if (!inside) return stay === null || stay.confirmedAtMs === null ? NOT_INSIDE : LEFT;
  if (stay !== null && stay.confirmedAtMs !== null) return { stay, transition: null };
  const insideSinceMs = stay === null ? atMs : stay.insideSinceMs;
  if (atMs - insideSinceMs >= area.definition.dwellSeconds * 1_000) {
    return { stay: { areaId: area.id, insideSinceMs, confirmedAtMs: atMs }, transition: 'entry' };
  }
  return { stay: stay ?? { areaId: area.id, insideSinceMs, confirmedAtMs: null }, transition: null };
}

const NOT_INSIDE: StayStep = { stay: null, transition: null };

const LEFT: StayStep = { stay: null, transition: 'exit' };

/**
 * The world that may read what happened between an area and a device: the shared one only when both are shared,
 * else that of the account that owns the private one. (Both private: it is the same account's.)
 *
 *   area      device    the event is read in
 *   private   private   their account's world
 *   private   shared    the area's
 *   shared    private   the device's
 *   shared    shared    their organization's
 */
export function eventWorldId(
  area: { readonly worldId: number; readonly isShared: boolean },
  deviceWorldId: number,
): number {
  return area.isShared ? deviceWorldId : area.worldId;
}

const NO_EVENTS: readonly GeofenceEvent[] = [];

function entryOf(area: WatchedArea, stay: Stay, fix: PointFacts, watch: WatchedAreas): GeofenceEvent {
  return { direction: 'entry', ...facts(area, stay, fix, watch) };
}

function exitOf(area: WatchedArea, stay: Stay, fix: PointFacts, watch: WatchedAreas): GeofenceEvent {
  const staySeconds = (fix.recordedAtMs - stay.insideSinceMs) / 1_000;
  return { direction: 'exit', staySeconds, ...facts(area, stay, fix, watch) };
}

function facts(area: WatchedArea, stay: Stay, fix: PointFacts, watch: WatchedAreas) {
  const isShared = watch.isShared(area.worldId);
  return {
    worldId: eventWorldId({ worldId: area.worldId, isShared }, watch.deviceWorldId),
    areaId: area.id,
    areaName: area.definition.name,
    enteredAtMs: stay.insideSinceMs,
    dwellSeconds: area.definition.dwellSeconds,
    position: { lat: fix.lat, lng: fix.lng },
    occurredAtMs: fix.recordedAtMs,
  };
}

/** By bisection: a thousand areas may lie over one place. */
function hasStay(stays: readonly Stay[], areaId: number): boolean {
  return stays[indexOfArea(stays, areaId)]?.areaId === areaId;
}

function byArea(a: { readonly areaId: number }, b: { readonly areaId: number }): number {
  return a.areaId - b.areaId;
}
