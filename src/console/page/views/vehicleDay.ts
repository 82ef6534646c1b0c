import type { Signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { AGAIN_MS, callBytes, useLoaded, wait } from '../api.ts';
import { dateOf, distanceText, serverNowMs, speedText, timeText } from '../format.ts';
import { dayPath, dayQuery, readDay } from '../map/day.ts';
import { askedDay, comparedWith, type Day, day, dayAtMs, otherDay } from '../map/mapState.ts';
import { CallBehind, counted, duration, html } from '../parts.ts';
import type { HistoryPeriod } from '../types.ts';
import { DayCourse } from './dayCourse.ts';
import { VehicleField } from './vehicleField.ts';

const FORMATS = ['csv', 'gpx', 'geojson', 'parquet'];

/** A day of the chosen vehicle: its sums, its speed, its trips, and files of its points. */
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
  return html`<section aria-label="A day">
    <p class="tools">
      <label>Day <input type="date" max=${today} value=${date ?? ''}
        onChange=${(event: Event) => ask((event.currentTarget as HTMLInputElement).value || null)} /></label>
      ${date === null ? html`<button type="button" onClick=${() => ask(today)}>Today</button>` : html`<button type="button" onClick=${() => ask(null)}>Last hours</button>`}
    </p>
    ${date !== null && html`<${Sums} imei=${imei} date=${date} />`}
    ${date !== null && day.value !== null && html`<${DayCourse} day=${day.value} other=${otherDay.value} />`}
    ${date !== null && html`<${Compare} imei=${imei} />`}
    ${date !== null && html`<${Trips} imei=${imei} date=${date} /><${Files} imei=${imei} date=${date} />`}
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

function Trips(asked: OfDay): VNode | null {
  const path = summaryPath(asked, 'trip');
  const { reply } = useLoaded<readonly HistoryPeriod[]>(path);
  if (reply === null || !reply.ok || reply.data.length === 0) return null;
  return html`<h4>${counted(reply.data.length, 'trip')}</h4>
    <ol class="rows">${reply.data.map(
      ({ from, to, distance_km }) => html`<li key=${from}>
      <button type="button" class="row" onClick=${() => {
        dayAtMs.value = Date.parse(from ?? '');
      }}>${timeOf(Date.parse(from ?? ''))} – ${timeOf(Date.parse(to ?? ''))} <span class="beside">${distanceText(distance_km)}</span></button>
    </li>`,
    )}</ol>`;
}

function timeOf(ms: number): string {
  return timeText(ms, 'minute');
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
