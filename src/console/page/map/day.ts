import { callBytes, isRefusedForNow } from '../api.ts';
import { boundsOfDay } from '../format.ts';
import type { HistoryPoint } from '../types.ts';
import type { Day, DayPoint } from './mapState.ts';

/** More than a line on a screen shows. */
const POINTS_MAX = 10_000;

/** The call that has all points of a day, as a file of a format. */
export function dayPath(imei: string, date: string, format: string): string {
  return `/api/v1/devices/${imei}/history/export?format=${format}&${dayQuery(date)}`;
}

/** `from` and `to` of a day. */
export function dayQuery(date: string): string {
  const { fromMs, toMs } = boundsOfDay(date);
  return `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs - 1).toISOString()}`;
}

/** The way of a vehicle on a day, thinned to `POINTS_MAX` points. */
export async function readDay(imei: string, date: string, signal: AbortSignal): Promise<Day> {
  const reply = await callBytes(dayPath(imei, date, 'ndjson'), signal);
  if (!reply.ok)
    return { imei, date, points: [], error: reply.message, isRefusedForNow: isRefusedForNow(reply) };
  const lines = new TextDecoder().decode(reply.data).split('\n');
  lines.pop();
  const every = Math.ceil(lines.length / POINTS_MAX);
  const kept = every <= 1 ? lines : lines.filter((_, n) => n % every === 0 || n === lines.length - 1);
  return { imei, date, points: kept.map(pointOf), error: null, isRefusedForNow: false };
}

function pointOf(line: string): DayPoint {
  const { latitude, longitude, speed_kmh, recorded_at } = JSON.parse(line) as HistoryPoint;
  return { lng: longitude, lat: latitude, speedKmh: speed_kmh, atMs: Date.parse(recorded_at) };
}

/** The last point that is not after a time, or the first. */
export function pointAt(points: readonly DayPoint[], atMs: number): DayPoint | undefined {
  return points.findLast((point) => point.atMs <= atMs) ?? points[0];
}
