import { signal } from '@preact/signals';
import type { Area, LatLng } from '../types.ts';
import type { Near } from './vehicles/vehicleTable.ts';

/** What the map and the views beside it share. */

/** The IMEI of the device that stands out, or null. */
export const chosen = signal<string | null>(null);
/** The IMEI of the device that the map is to move to; null when it has. */
export const sought = signal<string | null>(null);
/** The map follows the chosen device until a person moves it. */
export const isFollowing = signal(false);
/** How many hours the trail of the chosen device covers; 0 shows none. */
export const trailHours = signal(6);
/** The trail that is drawn; null while it is asked for. */
export const trail = signal<{ readonly points: number; readonly error: string | null } | null>(null);
export interface DayPoint extends LatLng {
  readonly atMs: number;
  readonly speedKmh: number;
}
/** The way of a vehicle on a day of this place, oldest first. */
export interface Day {
  readonly imei: string;
  readonly date: string;
  readonly points: readonly DayPoint[];
  readonly error: string | null;
  /** It may be read later. */
  readonly isRefusedForNow: boolean;
}
/** The day (YYYY-MM-DD) whose way is shown instead of the trail of the last hours, or null. */
export const askedDay = signal<string | null>(null);
/** What was read of it; null while it is asked for. */
export const day = signal<Day | null>(null);
/** The IMEI of the vehicle whose same day is shown beside it, or null. */
export const comparedWith = signal<string | null>(null);
/** What was read of that; null while it is asked for. */
export const otherDay = signal<Day | null>(null);
/** The moment of that day that stands out on the map, or null. */
export const dayAtMs = signal<number | null>(null);
/** Several devices were on the spot that was clicked. */
export const onSpot = signal<Near | null>(null);
/** The number of vehicles in the drawn clusters, and the path of one of their tiles; null: no cluster is drawn. */
export const clustered = signal<{ readonly vehicles: number; readonly path: string } | null>(null);
export const chosenArea = signal<number | null>(null);
/** The area that the map is to move to; null when it has. */
export const soughtArea = signal<number | null>(null);
/** A time, from its first moment to its last. */
export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}
/** The time for which it is asked who was in the chosen area; null: it is not. */
export const askedPresence = signal<TimeSpan | null>(null);
/** The areas that are drawn, how many there are, and why some could not be read (null: they could). */
export const drawnAreas = signal<{
  readonly areas: readonly Area[];
  readonly total: number;
  readonly error: string | null;
}>({ areas: [], total: 0, error: null });
/** Why the map cannot be shown, or null. */
export const mapError = signal<string | null>(null);

export function choose(imei: string | null): void {
  chosen.value = imei;
  if (imei === null) askedDay.value = null;
  comparedWith.value = null;
  isFollowing.value = false;
  sought.value = null;
}

/** Chooses a device, and moves the map to it. */
export function seek(imei: string): void {
  choose(imei);
  onSpot.value = null;
  sought.value = imei;
}

/** Chooses an area, or none, and moves the map to it unless it is in sight. */
export function seekArea(id: number | null): void {
  chosenArea.value = id;
  soughtArea.value = id;
}
