import type { AreaDefinition } from '../areas/area.ts';
import type { Shape } from '../areas/shape.ts';
import { inOneGo, type Steps } from '../base/workTurns.ts';
import type { LatLng } from '../geometry/latLng.ts';
import type { Fix } from './fix.ts';
import { stepStay } from './geofenceStep.ts';
import { indexOfArea, NO_STAYS, type Stay } from './stays.ts';

/** What the engine asks of an area. */
export interface WatchedArea {
  readonly id: number;
  readonly worldId: number;
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

/** A device entered or left an area, as one of its points shows. */
export type GeofenceEvent = {
  /** The world that may read it. */
  readonly worldId: number;
  readonly areaId: number;
  readonly areaName: string;
  /** The first inside point of the stay. */
  readonly enteredAtMs: number;
  /** The area's threshold at this point. */
  readonly dwellSeconds: number;
  /** Of the point that confirmed the entry, or of the first one outside; so is the time. */
  readonly position: LatLng;
  readonly occurredAtMs: number;
} & (
  | { readonly direction: 'entry' }
  /** staySeconds: from the first point inside to the first outside, to the millisecond. */
  | { readonly direction: 'exit'; readonly staySeconds: number }
);

export interface GeofenceStep {
  /** The very list that was given when the point changed nothing. */
  readonly stays: readonly Stay[];
  /** Exits first, then entries, each by area. */
  readonly events: readonly GeofenceEvent[];
}

/** Areas that a point is evaluated against before others have their turn: less than half a millisecond. */
const AREAS_PER_STEP = 128;

type PointFacts = Pick<Fix, 'lat' | 'lng' | 'recordedAtMs'>;

/**
 * One point of a device, newer than all before it, against all areas that watch the device. Evaluated are the areas
 * around the point and those with an open stay, wherever they are: a device may jump out of an area and far away. A
 * stay whose area is gone from sight vanishes without an exit.
 */
export function stepGeofences(stays: readonly Stay[], fix: PointFacts, watch: WatchedAreas): GeofenceStep {
  return inOneGo(geofenceSteps(stays, fix, watch, watch.near(fix.lat, fix.lng)));
}

/** The same for the areas found `near` the point, with a pause after some of them: there may be thousands. */
export function* geofenceSteps(
  stays: readonly Stay[],
  fix: PointFacts,
  watch: WatchedAreas,
  near: readonly WatchedArea[],
): Steps<GeofenceStep> {
  if (near.length === 0 && stays.length === 0) return { stays, events: NO_EVENTS };
  const next: Stay[] = [];
  const exits: GeofenceEvent[] = [];
  const entries: GeofenceEvent[] = [];
  let changed = false;
  const evaluate = (area: WatchedArea, before: Stay | null): void => {
    const inside = area.shape.contains(fix.lat, fix.lng);
    const { stay: after, transition } = stepStay(before, area, inside, fix.recordedAtMs);
    if (after !== before) changed = true;
    if (after !== null) next.push(after);
    if (transition === 'entry' && after !== null) entries.push(entryOf(area, after, fix, watch));
    if (transition === 'exit' && before !== null) exits.push(exitOf(area, before, fix, watch));
  };

  let untilPause = AREAS_PER_STEP;
  for (const stay of stays) {
    const area = watch.byId(stay.areaId);
    if (area === undefined) changed = true;
    else evaluate(area, stay);
    if (--untilPause === 0) {
      untilPause = AREAS_PER_STEP;
      yield;
    }
  }
  for (const area of near) {
    if (!hasStay(stays, area.id)) evaluate(area, null);
    if (--untilPause === 0) {
      untilPause = AREAS_PER_STEP;
      yield;
    }
  }

  if (!changed) return { stays, events: NO_EVENTS };
  if (next.length > 1) next.sort(byArea);
  if (entries.length > 1) entries.sort(byArea);
  return { stays: next.length === 0 ? NO_STAYS : next, events: exits.concat(entries) };
}

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
