import { distanceM } from '../geo/distance.ts';
import { MINUTE_MS } from '../lib/durations.ts';

/** A place at a time; recordedAtMs null: there is none. */
interface Passage {
  readonly recordedAtMs: number | null;
  readonly lat: number;
  readonly lng: number;
}

const LONGEST_GAP_MS = 10 * MINUTE_MS;
const KMH_PER_M_MS = 3_600;

/**
 * The speed in km/h of a point that reports none: the straight way from the previous point of its device over
 * the time between them. 0 when there is no previous point or it is more than 10 minutes older, since a mean
 * over a longer time says nothing about now.
 */
export function derivedSpeedKmh(previous: Passage, point: Passage): number {
  if (previous.recordedAtMs === null || point.recordedAtMs === null) return 0;
  const elapsedMs = point.recordedAtMs - previous.recordedAtMs;
  if (elapsedMs <= 0 || elapsedMs > LONGEST_GAP_MS) return 0;
  return (distanceM(previous.lat, previous.lng, point.lat, point.lng) / elapsedMs) * KMH_PER_M_MS;
}
