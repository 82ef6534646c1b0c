import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { AGAIN_MS, callBytes, useLoaded, wait } from '../api.ts';
import { boundsOfDay, dateOf, distanceText, serverNowMs, speedText, timeText } from '../format.ts';
import { dayPath, dayQuery, pointAt, readDay } from '../map/day.ts';
import { askedDay, type Day, type DayPoint, day, dayAtMs } from '../map/mapState.ts';
import { CallBehind, counted, duration, html } from '../parts.ts';
import type { HistoryPeriod } from '../types.ts';

const FORMATS = ['csv', 'gpx', 'geojson', 'parquet'];
/** A day is played in a minute and a half. */
const PLAYED_EVERY_MS = 100;
const PLAYED_STEP_MS = 96_000;
/** Of the graph of speeds, in units of its picture. */
const GRAPH = { width: 300, height: 60 };

/** A day of the chosen vehicle: its sums, its speed, its trips, and files of its points. */
export function VehicleDay({ imei }: { imei: string }): VNode {
  const date = askedDay.value;
  const ask = (value: string | null): void => {
    askedDay.value = value;
  };
  useEffect(() => {
    const asked = new AbortController();
    if (date !== null) void readAsked({ imei, date }, asked.signal);
    return () => {
      asked.abort();
      day.value = null;
      dayAtMs.value = null;
    };
  }, [imei, date]);
  const today = dateOf(serverNowMs());
  return html`<section aria-label="A day">
    <p class="tools">
      <label>Day <input type="date" max=${today} value=${date ?? ''}
        onChange=${(event: Event) => ask((event.currentTarget as HTMLInputElement).value || null)} /></label>
      ${date === null ? html`<button type="button" onClick=${() => ask(today)}>Today</button>` : html`<button type="button" onClick=${() => ask(null)}>Last hours</button>`}
    </p>
    ${date !== null && html`<${Sums} imei=${imei} date=${date} />`}
    ${date !== null && day.value !== null && html`<${Course} day=${day.value} />`}
    ${date !== null && html`<${Trips} imei=${imei} date=${date} /><${Files} imei=${imei} date=${date} />`}
  </section>`;
}

/** What is refused for a time is read again until it is answered. */
async function readAsked({ imei, date }: OfDay, asked: AbortSignal): Promise<void> {
  while (!asked.aborted) {
    const found = await readDay(imei, date, asked);
    if (asked.aborted) return;
    day.value = found;
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
  if (reply === null) return html`<p role="status">Adding up the day…</p>`;
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

/** The speed over the day, and a moment of it that the map shows. */
function Course({ day: { date, points, error } }: { day: Day }): VNode | null {
  const [isPlaying, setPlaying] = useState(false);
  const bounds = boundsOfDay(date);
  const [fromMs, toMs] = [points[0]?.atMs ?? bounds.fromMs, points.at(-1)?.atMs ?? bounds.toMs];
  useEffect(() => {
    if (!isPlaying) return;
    const timer = setInterval(() => {
      const nextMs = (dayAtMs.peek() ?? fromMs) + PLAYED_STEP_MS;
      dayAtMs.value = Math.min(nextMs, toMs);
      if (nextMs >= toMs) setPlaying(false);
    }, PLAYED_EVERY_MS);
    return () => clearInterval(timer);
  }, [isPlaying, fromMs, toMs]);
  if (error !== null) return html`<p class="error" role="alert">${error}</p>`;
  if (points.length < 2) return null;
  const atMs = dayAtMs.value ?? fromMs;
  const at = pointAt(points, atMs);
  const play = (): void => {
    if (atMs >= toMs) dayAtMs.value = fromMs;
    setPlaying(!isPlaying);
  };
  return html`<figure class="course">
    <svg viewBox="0 0 ${GRAPH.width} ${GRAPH.height}" preserveAspectRatio="none" role="img" aria-label="Speed over the day">
      <path d=${speedPath(points, fromMs, toMs)} />
      <line x1=${shareOf(atMs, fromMs, toMs)} x2=${shareOf(atMs, fromMs, toMs)} y1="0" y2=${GRAPH.height} />
    </svg>
    <input type="range" aria-label="Moment of the day" min=${fromMs} max=${toMs} step="1000" value=${atMs}
      aria-valuetext=${timeOf(atMs)}
      onInput=${(event: InputEvent) => {
        dayAtMs.value = Number((event.currentTarget as HTMLInputElement).value);
      }} />
    <figcaption class="tools">
      <button type="button" aria-pressed=${isPlaying} onClick=${play}>Play</button>
      <span role="status">${timeOf(atMs)}${at !== undefined && `, ${Math.round(at.speedKmh)} km/h`}</span>
    </figcaption>
  </figure>`;
}

function shareOf(atMs: number, fromMs: number, toMs: number): number {
  return (GRAPH.width * (atMs - fromMs)) / Math.max(1, toMs - fromMs);
}

/** The outline of the speeds: for each unit of the width the highest of it, from the bottom up. */
export function speedPath(points: readonly DayPoint[], fromMs: number, toMs: number): string {
  const highest = new Float64Array(GRAPH.width + 1);
  for (const { atMs, speedKmh } of points) {
    const x = Math.round(shareOf(atMs, fromMs, toMs));
    highest[x] = Math.max(highest[x] as number, speedKmh);
  }
  const top = Math.max(1, ...highest);
  const steps = Array.from(highest, (speed, x) => `L${x} ${(GRAPH.height * (1 - speed / top)).toFixed(1)}`);
  return `M0 ${GRAPH.height}${steps.join('')}L${GRAPH.width} ${GRAPH.height}Z`;
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
