import { computed, effect, signal } from '@preact/signals';
import { AGAIN_MS, call, wait } from './api.ts';
import { filterQuery, filters, type StatusCounts } from './filters.ts';
import type { Fleet } from './fleet.ts';
import { type Box, isWithin, widened } from './map/box.ts';
import { chosen } from './map/mapState.ts';
import type { Device } from './types.ts';

/** The largest fleet that the page holds, and the most devices that it draws in a view one by one. Tests lower both. */
export const LIMITS = { fleet: 20_000, view: 5_000 };

/** The fleet has too many devices for the page: it follows those in view. */
export const isLarge = signal(false);
/** The tab is in sight, or begins to be. */
export const isSeen = signal(true);
/** What the map shows since it came to rest; null without a map. */
export const view = signal<{ readonly box: Box; readonly zoom: number } | null>(null);
/** How many devices of the chosen groups have each status. */
export const wholeCounts = signal<StatusCounts>({ moving: 0, parked: 0, offline: 0, unknown: 0 });
/** How many devices the fleet has. */
export const largeTotal = signal(0);
/** Why the map does not show what it should; null: it does. */
export const viewProblem = signal<string | null>(null);

const ONLY_EVENTS = 'include=events';
/** What of the stream is wanted now, as a query. */
export const wantedStream = signal(ONLY_EVENTS);
/** The stream that is open. */
export const openStream = signal<string | null>(null);
/** True when the open stream sends the devices in view. Otherwise the map draws clusters. */
export const isViewLive = computed(() => (openStream.value ?? ONLY_EVENTS) !== ONLY_EVENTS);

/** A map that is moved comes to rest for shorter times, too. */
const REST_MS = 300;
/** Each costs a call of the account's limits. */
const COUNT_EVERY_MS = 30_000;
const CHOSEN_EVERY_MS = 15_000;

/** Follows what the map shows, until aborted. `hasOf`: true for a device that the stream sends. */
export function followLarge(fleet: Fleet, hasOf: (imei: string) => boolean, signal: AbortSignal): void {
  const query = computed(() => filterQuery(filters.value));
  const group = computed(() => filterQuery({ ...filters.value, statuses: [] }));
  held = null;
  want(null);
  const look = (): void => {
    isSeen.value = !document.hidden;
  };
  look();
  document.addEventListener('visibilitychange', look, { signal });
  restart(signal, async (asked) => {
    const box = view.value?.box ?? null;
    const [asQuery, round] = [query.value, again.value];
    await wait(REST_MS, asked);
    if (!asked.aborted) await choose(box, asQuery, round, asked);
  });
  restart(signal, async (asked) => {
    const asQuery = group.value;
    if (!isSeen.value) return;
    for (; !asked.aborted; await wait(COUNT_EVERY_MS, asked)) {
      const path = countPath(asQuery);
      const reply = await call<StatusCounts & { total: number }>({ method: 'GET', path });
      if (!reply.ok || asked.aborted) continue;
      wholeCounts.value = reply.data;
      if (asQuery === '') largeTotal.value = reply.data.total;
    }
  });
  restart(signal, async (asked) => {
    const imei = chosen.value;
    if (imei === null) return;
    asked.addEventListener('abort', () => {
      if (!hasOf(imei)) fleet.apply([{ imei, removed: true }]);
    });
    for (; !asked.aborted; await wait(CHOSEN_EVERY_MS, asked)) {
      if (document.hidden || hasOf(imei)) continue;
      const reply = await call<Device>({ method: 'GET', path: `/api/v1/devices/${imei}` });
      if (reply.ok && !asked.aborted && !hasOf(imei)) fleet.apply([changedDevice(reply.data)]);
    }
  });
}

const again = signal(0);
/** The view that is streamed; null: none. */
let held: { readonly box: Box; readonly query: string; readonly round: number } | null = null;

/** There are more devices in the view than when it was chosen. */
export function chooseAgain(): void {
  again.value++;
}

async function choose(box: Box | null, query: string, round: number, asked: AbortSignal): Promise<void> {
  if (box === null) return want(null);
  if (held?.query === query && held.round === round && isWithin(box, held.box)) return;
  const wide = widened(box);
  const bbox = `bbox=${[wide.west, wide.south, wide.east, wide.north].map(roundedDeg).join()}`;
  const whole = query === '' ? bbox : `${bbox}&${query}`;
  for (; !asked.aborted; await wait(AGAIN_MS, asked)) {
    const reply = await call<{ total: number }>({ method: 'GET', path: countPath(whole) });
    if (asked.aborted) return;
    viewProblem.value = reply.ok ? null : reply.message;
    if (!reply.ok) continue;
    return want(reply.data.total > LIMITS.view ? null : { box: wide, query, round }, whole);
  }
}

function want(next: typeof held, query = ''): void {
  held = next;
  wantedStream.value = next === null ? ONLY_EVENTS : query;
}

/** Runs `task` again whenever a signal that it reads before it first waits has changed, and aborts it before. */
export function restart(signal: AbortSignal, task: (asked: AbortSignal) => Promise<void>): void {
  let asked = new AbortController();
  const stop = effect(() => {
    asked.abort();
    asked = new AbortController();
    void task(asked.signal);
  });
  signal.addEventListener('abort', () => {
    stop();
    asked.abort();
  });
}

export function countPath(query: string): string {
  return `/api/v1/devices/count${query === '' ? '' : `?${query}`}`;
}

/** A device of the list as the stream tells it, as far as the list has it. */
export function changedDevice({ location, ...device }: Device) {
  return { ...device, ignition: null, location: location === null ? null : { ...location, heading: 0 } };
}

/** A tenth of a metre; without an exponent, which the API does not read. */
function roundedDeg(degrees: number): string {
  return degrees.toFixed(6);
}
