import { effect, untracked } from '@preact/signals';
import type { Feature, Geometry } from 'geojson';
import { AGAIN_MS, call, isRefusedForNow, wait } from '../api.ts';
import { fleet } from '../liveFleet.ts';
import type { Reply } from '../reply.ts';
import type { HistoryPoint, LatLng } from '../types.ts';
import { unwrapped } from './areaShapes.ts';
import { pointAt } from './day.ts';
import { askedDay, chosen, type Day, day, dayAtMs, otherDay, trail, trailHours } from './mapState.ts';
import type { Overlay } from './overlay.ts';

const PAGE = 1_000;
/** The newest points; each page costs a call of the account's limits. */
const PAGES_MAX = 5;
const HOUR_MS = 3_600_000;

interface TrailPoint extends LatLng {
  readonly atMs: number;
}

interface Trail {
  /** Oldest first. */
  readonly way: readonly TrailPoint[];
  readonly error: string | null;
  /** The rest may be read later. */
  readonly isRefusedForNow: boolean;
}

/**
 * Draws the trail of the chosen device, and extends it as the device moves, or its way on the asked day, until the returned
 * function is called.
 */
export function drawTrail(overlay: Overlay): () => void {
  let points: readonly TrailPoint[] = [];
  let error: string | null = null;
  let asked = new AbortController();
  const draw = (): void => {
    const at = untracked(() => dayAtMs.value);
    const other = askedDay.peek() === null ? [] : (otherDay.peek()?.points ?? []);
    overlay.show([...shapesOf(points, day.peek(), at, false), ...shapesOf(other, otherDay.peek(), at, true)]);
    trail.value = { points: points.length, error };
  };
  /** What is refused for a time is read again until it is answered. */
  const read = async (imei: string, hours: number, signal: AbortSignal): Promise<void> => {
    for (;;) {
      const found = await readTrail(imei, hours, signal);
      if (signal.aborted) return;
      const readToMs = found.way.at(-1)?.atMs ?? 0;
      points = [...found.way, ...points.filter(({ atMs }) => atMs > readToMs)];
      error = found.error;
      draw();
      if (!found.isRefusedForNow) return;
      await wait(AGAIN_MS, signal);
      if (signal.aborted) return;
    }
  };
  const stopAsking = effect(() => {
    const imei = chosen.value;
    const hours = trailHours.value;
    const isDay = askedDay.value !== null;
    asked.abort();
    asked = new AbortController();
    points = [];
    error = null;
    draw();
    if (imei === null || hours === 0 || isDay) return;
    trail.value = null;
    const { signal } = asked;
    void untracked(() => read(imei, hours, signal));
  });
  const stopDrawingDay = effect(() => {
    if (askedDay.value === null) return;
    points = day.value?.points ?? [];
    error = day.value?.error ?? null;
    otherDay.value; // drawn again with the way of the other vehicle, and when another moment stands out
    dayAtMs.value;
    draw();
  });
  const stopListening = fleet.listen((changed) => {
    if (chosen.peek() === null || trailHours.peek() === 0 || askedDay.peek() !== null) return;
    const own = changed.findLast(({ imei }) => imei === chosen.peek());
    if (own === undefined || 'removed' in own || own.location === null) return;
    const { longitude, latitude, recordedAtMs } = own.location;
    if (recordedAtMs <= (points.at(-1)?.atMs ?? 0)) return;
    points = [...points, { lng: longitude, lat: latitude, atMs: recordedAtMs }].slice(-PAGE * PAGES_MAX);
    if (trail.peek() !== null) draw();
  });
  return () => {
    asked.abort();
    stopAsking();
    stopDrawingDay();
    stopListening();
  };
}

/** A way as a line, and the place on it at a moment of its day. */
function shapesOf(
  way: readonly LatLng[],
  ofDay: Day | null,
  atMs: number | null,
  isOther: boolean,
): readonly Feature[] {
  const coordinates = unwrapped(way);
  const place = atMs === null ? undefined : pointAt(ofDay?.points ?? [], atMs);
  const geometries: readonly Geometry[] = [
    ...(coordinates.length < 2 ? [] : [{ type: 'LineString' as const, coordinates }]),
    ...(place === undefined ? [] : [{ type: 'Point' as const, coordinates: [place.lng, place.lat] }]),
  ];
  return geometries.map((geometry) => ({ type: 'Feature', properties: { isOther }, geometry }));
}

/** What was read before an error is kept. */
async function readTrail(imei: string, hours: number, signal: AbortSignal): Promise<Trail> {
  const points: HistoryPoint[] = [];
  let refused: Extract<Reply<unknown>, { ok: false }> | null = null;
  for (let page = 0; page < PAGES_MAX && !signal.aborted; page++) {
    const path = trailPath(imei, hours, points.at(-1)?.recorded_at);
    const reply = await call<readonly HistoryPoint[]>({ method: 'GET', path });
    if (!reply.ok) refused = reply;
    else points.push(...reply.data);
    if (!reply.ok || reply.data.length < PAGE) break;
  }
  const way = points.reverse().map(({ longitude, latitude, recorded_at }) => ({
    ...{ lng: longitude, lat: latitude },
    atMs: Date.parse(recorded_at),
  }));
  const isRefused = refused !== null && isRefusedForNow(refused);
  return { way, error: refused?.message ?? null, isRefusedForNow: isRefused };
}

/** Newest first; `before` is the time of the last point that is known. */
export function trailPath(imei: string, hours: number, before?: string): string {
  const from = new Date(Math.floor((Date.now() - hours * HOUR_MS) / 60_000) * 60_000).toISOString();
  const to = before === undefined ? '' : `&to=${new Date(Date.parse(before) - 1).toISOString()}`;
  return `/api/v1/devices/${imei}/history?from=${from}${to}&limit=${PAGE}`;
}
