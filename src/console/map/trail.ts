import { effect, untracked } from '@preact/signals';
import { call } from '../api.ts';
import { fleet } from '../liveFleet.ts';
import type { HistoryPoint, LatLng } from '../types.ts';
import { chosen, trail, trailHours } from './mapState.ts';
import type { Overlay } from './overlay.ts';
import { unwrapped } from './unwrapped.ts';

const PAGE = 1_000;
/** The newest points; each page costs a call of the account's limits. */
const PAGES_MAX = 5;
const HOUR_MS = 3_600_000;

interface Trail {
  readonly way: readonly LatLng[];
  readonly error: string | null;
}

/** Draws the way that the chosen device has come, and goes on with it, until the returned function is called. */
export function drawTrail(overlay: Overlay): () => void {
  let points: LatLng[] = [];
  let error: string | null = null;
  let asked = new AbortController();
  const draw = (): void => {
    const coordinates = unwrapped(points);
    const geometry = { type: 'LineString' as const, coordinates };
    overlay.show(coordinates.length < 2 ? [] : [{ type: 'Feature', properties: {}, geometry }]);
    trail.value = { points: points.length, error };
  };
  const stopAsking = effect(() => {
    const imei = chosen.value;
    const hours = trailHours.value;
    asked.abort();
    asked = new AbortController();
    points = [];
    error = null;
    draw();
    if (imei === null || hours === 0) return;
    trail.value = null;
    const { signal } = asked;
    void untracked(() => readTrail(imei, hours, signal)).then((read) => {
      if (signal.aborted) return;
      points = [...read.way, ...points];
      error = read.error;
      draw();
    });
  });
  const stopListening = fleet.listen((changed) => {
    if (chosen.peek() === null || trailHours.peek() === 0) return;
    const own = changed.findLast(({ imei }) => imei === chosen.peek());
    if (own === undefined || 'removed' in own || own.location === null) return;
    points = [...points, { lng: own.location.longitude, lat: own.location.latitude }].slice(
      -PAGE * PAGES_MAX,
    );
    if (trail.peek() !== null) draw();
  });
  return () => {
    asked.abort();
    stopAsking();
    stopListening();
  };
}

/** Oldest first. What was read before an error is kept. */
async function readTrail(imei: string, hours: number, signal: AbortSignal): Promise<Trail> {
  const points: HistoryPoint[] = [];
  let error: string | null = null;
  for (let page = 0; page < PAGES_MAX && !signal.aborted; page++) {
    const path = trailPath(imei, hours, points.at(-1)?.recorded_at);
    const reply = await call<readonly HistoryPoint[]>({ method: 'GET', path });
    if (!reply.ok) error = reply.message;
    else points.push(...reply.data);
    if (!reply.ok || reply.data.length < PAGE) break;
  }
  const way = points.reverse().map(({ longitude, latitude }) => ({ lng: longitude, lat: latitude }));
  return { way, error };
}

/** Newest first; `before` is the time of the last point that is known. */
export function trailPath(imei: string, hours: number, before?: string): string {
  const from = new Date(Math.floor((Date.now() - hours * HOUR_MS) / 60_000) * 60_000).toISOString();
  const to = before === undefined ? '' : `&to=${new Date(Date.parse(before) - 1).toISOString()}`;
  return `/api/v1/devices/${imei}/history?from=${from}${to}&limit=${PAGE}`;
}
