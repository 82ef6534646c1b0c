import { callBytes, isRefusedForNow } from '../api.ts';
import type { HistoryPoint } from '../types.ts';
import type { Day, DayPoint } from './mapState.ts';

/** More than a line on a screen shows. */
const POINTS_MAX = 10_000;

/** The day (YYYY-MM-DD) that a time belongs to in this place. */
export function dateOf(ms: number): string {
  const time = new Date(ms);
  const parts = [time.getFullYear(), time.getMonth() + 1, time.getDate()];
  return parts.map((part) => String(part).padStart(2, '0')).join('-');
}

/** Where a day of this place begins and ends; some have 23 or 25 hours. */
export function boundsOfDay(date: string): { readonly fromMs: number; readonly toMs: number } {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  return { fromMs: +new Date(year, month - 1, day), toMs: +new Date(year, month - 1, day + 1) };
}

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
