import type { Signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { AGAIN_MS, callBytes, useLoaded, wait } from '../api.ts';
import { dateOf, distanceText, serverNowMs, speedText, timeText } from '../format.ts';
import { Icon } from '../icons.ts';
import { dayPath, dayQuery, readDay } from '../map/day.ts';
import { askedDay, comparedWith, type Day, day, dayAtMs, otherDay } from '../map/mapState.ts';
import { CallBehind, counted, duration, html } from '../parts.ts';
import type { FleetEvent, HistoryPeriod } from '../types.ts';
import { DayCourse } from './dayCourse.ts';
import { typeOf } from './eventFilters.ts';
import { iconOfEvent } from './eventList.ts';
import { VehicleField } from './vehicleField.ts';

const FORMATS = ['csv', 'gpx', 'geojson', 'parquet'];

/** The most that a call lists. */
const EVENTS_MAX = 200;
/** A vehicle that stands this long is parked; a longer time without points is a gap (docs/history.md). */
const PARKED_FROM_MS = 120_000;
const GAP_FROM_MS = 600_000;

/** A day of the chosen vehicle: its sums, its speed, its events, trips and stops, and files of its points. */
export function VehicleDay({ imei }: { imei: string }): VNode {
  const date = askedDay.value;
  const ask = (value: string | null): void => {
    askedDay.value = value;
    if (value === null) comparedWith.value = null;
  };
  const other = comparedWith.value;
  useDay(imei, date, day);
  useDay(other, date, otherDay);
  useEffect(
    () => () => {
      dayAtMs.value = null;
    },
    [imei, date],
  );
  const today = dateOf(serverNowMs());
  const eventsPath =
    date === null ? null : `/api/v1/events?device=${imei}&${dayQuery(date)}&limit=${EVENTS_MAX}`;
  const { reply: happened } = useLoaded<readonly FleetEvent[]>(eventsPath);
  const events = happened?.ok ? happened.data : [];
  return html`<section aria-label="A day">
    <p class="tools">
      <label>Day <input type="date" max=${today} value=${date ?? ''}
        onChange=${(event: Event) => ask((event.currentTarget as HTMLInputElement).value || null)} /></label>
      ${date === null ? html`<button type="button" onClick=${() => ask(today)}>Today</button>` : html`<button type="button" onClick=${() => ask(null)}>Last hours</button>`}
    </p>
    ${date !== null && html`<${Sums} imei=${imei} date=${date} />`}
    ${date !== null && day.value !== null && html`<${DayCourse} day=${day.value} other=${otherDay.value} events=${events} />`}
    ${events.length > 0 && html`<${Happened} events=${events} />`}
    ${date !== null && html`<${Compare} imei=${imei} />`}
    ${date !== null && html`<${Legs} imei=${imei} date=${date} points=${day.value?.points ?? []} /><${Files} imei=${imei} date=${date} />`}
  </section>`;
}

/** Picks the vehicle whose same day is shown beside this one. */
function Compare({ imei }: { imei: string }): VNode {
  const other = comparedWith.value;
  const [said, setSaid] = useState('');
  const pick = (picked: string): void => {
    setSaid(picked === imei ? 'choose another vehicle' : '');
    comparedWith.value = picked === '' || picked === imei ? null : picked;
  };
  return html`<div class="compare tools">
    <${VehicleField} label="Compare with" placeholder="Another vehicle" imei=${other ?? ''} change=${pick} />
    ${other !== null && html`<button type="button" onClick=${() => pick('')}>Do not compare</button>`}
    <span role="status">${other !== null && otherDay.value === null ? 'Reading its day…' : said}</span>
  </div>`;
}

/** Reads a day of a vehicle into `into`, which is null until it is there. */
function useDay(imei: string | null, date: string | null, into: Signal<Day | null>): void {
  useEffect(() => {
    const asked = new AbortController();
    if (imei !== null && date !== null) void readAsked({ imei, date }, into, asked.signal);
    return () => {
      asked.abort();
      into.value = null;
    };
  }, [imei, date, into]);
}

/** What is refused for a time is read again until it is answered. */
async function readAsked({ imei, date }: OfDay, into: Signal<Day | null>, asked: AbortSignal): Promise<void> {
  while (!asked.aborted) {
    const found = await readDay(imei, date, asked);
    if (asked.aborted) return;
    into.value = found;
    if (!found.isRefusedForNow) return;
    await wait(AGAIN_MS, asked);
  }
}

interface OfDay {
  readonly imei: string;
  readonly date: string;
}

function summaryPath({ imei, date }: OfDay, by: string): string {
  return `/api/v1/devices/${imei}/history/summary?${dayQuery(date)}&by=${by}`;
}

function Sums(asked: OfDay): VNode {
  const path = summaryPath(asked, 'total');
  const { reply } = useLoaded<readonly HistoryPeriod[]>(path);
  if (reply === null) return html`<p class="loading" role="status">Adding up the day…</p>`;
  if (!reply.ok) return html`<p class="error" role="alert">${reply.message}</p>`;
  const [sums] = reply.data;
  if (sums === undefined || sums.points === 0)
    return html`<p class="empty" role="status">No points on this day.</p>`;
  const { distance_km, moving_seconds, parked_seconds, gap_seconds, max_speed_kmh } = sums;
  const lines = [
    ['Driven', distanceText(distance_km)],
    ['Moving', duration(Math.round(moving_seconds))],
    ['Parked', duration(Math.round(parked_seconds))],
    ['Without points', duration(Math.round(gap_seconds))],
    ['Top speed', max_speed_kmh === null ? '–' : speedText(max_speed_kmh)],
  ];
  return html`<dl class="sums">${lines.map(([what, value]) => html`<div key=${what}><dt>${what}</dt><dd>${value}</dd></div>`)}</dl>
    <${CallBehind} call=${{ method: 'GET', path }} />`;
}

/** The events of the day, the earliest first; each leads to its moment. */
function Happened({ events }: { events: readonly FleetEvent[] }): VNode {
  const more = events.length === EVENTS_MAX ? ', the last of the day' : '';
  return html`<details><summary>${counted(events.length, 'event')}${more}</summary>
    <ol class="rows">${events.toReversed().map(
      (event) => html`<li key=${event.id}>
      <button type="button" class="row" onClick=${() => {
        dayAtMs.value = Date.parse(event.occurred_at);
      }}><${Icon} name=${iconOfEvent(typeOf(event))} /> ${event.message} <span class="beside">${timeOf(Date.parse(event.occurred_at))}</span></button>
    </li>`,
    )}</ol>
  </details>`;
}

/** A trip, or a stop before, between or after trips. */
interface Leg {
  readonly fromMs: number;
  readonly toMs: number;
  /** Null: a stop. */
  readonly km: number | null;
  /** It has a time without points: what the vehicle did then is not known. */
  readonly hasGap: boolean;
}

/** What the points of a day are made of, in the order of their times. */
export function legsOf(
  trips: readonly HistoryPeriod[],
  points: readonly { readonly atMs: number }[],
): readonly Leg[] {
  const driven = trips.map(({ from, to, distance_km: km }) => ({
    fromMs: Date.parse(from ?? ''),
    toMs: Date.parse(to ?? ''),
    km,
    hasGap: false,
  }));
  const legs: Leg[] = [];
  let endMs = points[0]?.atMs ?? driven[0]?.fromMs ?? Number.NaN;
  const stopUntil = (ms: number): void => {
    if (ms - endMs >= PARKED_FROM_MS)
      legs.push({ fromMs: endMs, toMs: ms, km: null, hasGap: hasGap(points, endMs, ms) });
  };
  for (const trip of driven) {
    stopUntil(trip.fromMs);
    legs.push(trip);
    endMs = trip.toMs;
  }
  stopUntil(points.at(-1)?.atMs ?? endMs);
  return legs;
}

function hasGap(points: readonly { readonly atMs: number }[], fromMs: number, toMs: number): boolean {
  return points.some(({ atMs }, n) => {
    const nextMs = points[n + 1]?.atMs ?? atMs;
    return nextMs > fromMs && atMs < toMs && nextMs - atMs > GAP_FROM_MS;
  });
}

function Legs({ points, ...asked }: OfDay & { points: readonly { readonly atMs: number }[] }): VNode | null {
  const path = summaryPath(asked, 'trip');
  const { reply } = useLoaded<readonly HistoryPeriod[]>(path);
  if (reply === null || !reply.ok) return null;
  const legs = legsOf(reply.data, points);
  if (legs.length === 0) return null;
  const trips = legs.filter(({ km }) => km !== null).length;
  return html`<h4>${counted(trips, 'trip')}, ${counted(legs.length - trips, 'stop')}</h4>
    <ol class="rows" aria-label="Trips and stops">${legs.map(
      ({ fromMs, toMs, km, hasGap }) => html`<li key=${fromMs}>
      <button type="button" class="row" onClick=${() => {
        dayAtMs.value = fromMs;
      }}><${Icon} name=${km === null ? 'park' : 'drive'} /> ${timeOf(fromMs)} – ${timeOf(toMs)}
        <span class="beside">${km === null ? `stood ${duration(Math.round((toMs - fromMs) / 1_000))}` : distanceText(km)}</span>
        ${hasGap && html`<small>a part of it without points</small>`}</button>
    </li>`,
    )}</ol>
    <${CallBehind} call=${{ method: 'GET', path }} />`;
}

/** Saves all points of the day as a file. */
function Files({ imei, date }: OfDay): VNode {
  const [said, setSaid] = useState('');
  const save = async (format: string): Promise<void> => {
    setSaid('Reading…');
    const reply = await callBytes(dayPath(imei, date, format), new AbortController().signal);
    setSaid(reply.ok ? '' : reply.message);
    if (!reply.ok) return;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([reply.data as Uint8Array<ArrayBuffer>]));
    link.download = `${imei}-${date}.${format}`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return html`<h4>Save all points as</h4>
    <p class="tools">${FORMATS.map((format) => html`<button type="button" onClick=${() => save(format)}>${format === 'geojson' ? 'GeoJSON' : format === 'parquet' ? 'Parquet' : format.toUpperCase()}</button>`)}</p>
    <p role="status">${said}</p>`;
}

function timeOf(ms: number): string {
  return timeText(ms, 'minute');
}
