import { HOUR_MS } from '../lib/durations.ts';

/** Points that a device may store in a second, on average over an hour: those of an hour may come at once. */
export const POINTS_PER_SECOND = 10;
const POINT_MS = 1_000 / POINTS_PER_SECOND;
export const BURST_POINTS = HOUR_MS / POINT_MS;

/**
 * What a device owes after storing points: the time that they would have taken at the highest rate, less the time that
 * has passed. It may owe an hour.
 */
export function owedAfter(owedMs: number, stored: number): number {
  return owedMs + stored * POINT_MS;
}

/** How many points a device may store that owes so much. */
export function roomOf(owedMs: number): number {
  return Math.max(0, Math.floor((HOUR_MS - owedMs) / POINT_MS));
}

/** When there is room for the point at this place, from 1, among those that a device has sent and not stored yet. */
export function roomAtMs(owedMs: number, place: number, nowMs: number): number {
  return Math.ceil(nowMs + owedAfter(owedMs, place) - HOUR_MS);
}
