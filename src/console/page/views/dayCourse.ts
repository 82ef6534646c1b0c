import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { boundsOfDay, distanceText, speedText, timeText, units } from '../format.ts';
import { nameOfImei } from '../liveFleet.ts';
import { distanceM } from '../map/areaShapes.ts';
import { pointAt } from '../map/day.ts';
import { type Day, type DayPoint, dayAtMs } from '../map/mapState.ts';
import { counted, html } from '../parts.ts';
import type { FleetEvent } from '../types.ts';
import { typeOf } from './eventFilters.ts';

/** A day is played in a minute and a half. */
const PLAYED_EVERY_MS = 100;
const PLAYED_STEP_MS = 96_000;
/** Of the graph of speeds, in units of its picture. */
const GRAPH = { width: 300, height: 60 };
/** A place that is older than this at a moment is told with its time. */
const OLD_AFTER_MS = 600_000;

/** The speed of a vehicle over a day, and of another one beside it, with a moment of the day that the map shows. */
export function DayCourse({
  day,
  other,
  events,
}: {
  day: Day;
  other: Day | null;
  /** Of the first vehicle, on this day. */
  events: readonly FleetEvent[];
}): VNode | null {
  const [isPlaying, setPlaying] = useState(false);
  const shown = [day, ...(other === null ? [] : [other])].filter(({ points }) => points.length > 1);
  const bounds = boundsOfDay(day.date);
  const fromMs = Math.min(...shown.map(({ points }) => points[0]?.atMs ?? bounds.toMs), bounds.toMs);
  const toMs = Math.max(...shown.map(({ points }) => points.at(-1)?.atMs ?? bounds.fromMs), fromMs);
  useEffect(() => {
    if (!isPlaying) return;
    const timer = setInterval(() => {
      const nextMs = (dayAtMs.peek() ?? fromMs) + PLAYED_STEP_MS;
      dayAtMs.value = Math.min(nextMs, toMs);
      if (nextMs >= toMs) setPlaying(false);
    }, PLAYED_EVERY_MS);
    return () => clearInterval(timer);
  }, [isPlaying, fromMs, toMs]);
  const problems = html`${problemOf(day)}${other !== null && problemOf(other)}`;
  if (shown.length === 0) return problems;
  const atMs = dayAtMs.value ?? fromMs;
  const play = (): void => {
    if (atMs >= toMs) dayAtMs.value = fromMs;
    setPlaying(!isPlaying);
  };
  const topKmh = Math.max(1, ...shown.flatMap(({ points }) => points.map(({ speedKmh }) => speedKmh)));
  const x = shareOf(atMs, fromMs, toMs);
  return html`${problems}<figure class="course">
    ${shown.map(
      (each) => html`<${Name} key=${each.imei} of=${each} other=${other} />
        <svg class=${each === other ? 'other' : ''} viewBox="0 0 ${GRAPH.width} ${GRAPH.height}" preserveAspectRatio="none" role="img"
          aria-label=${other === null ? 'Speed over the day' : `Speed of ${nameOfImei(each.imei)} over the day`}>
          <path d=${speedPath(each.points, fromMs, toMs, topKmh)} />
          <line x1=${x} x2=${x} y1="0" y2=${GRAPH.height} />
        </svg>`,
    )}
    ${events.length > 0 && html`<${Marks} marks=${marksOf(events, fromMs, toMs)} />`}
    <input type="range" aria-label="Moment of the day" min=${fromMs} max=${toMs} step="1000" value=${atMs}
      aria-valuetext=${timeOf(atMs)}
      onInput=${(event: InputEvent) => {
        dayAtMs.value = Number((event.currentTarget as HTMLInputElement).value);
      }} />
    <figcaption class="tools">
      <button type="button" aria-pressed=${isPlaying} onClick=${play}>Play</button>
      <span role="status">${other === null ? aloneText(day, atMs) : besideText(day, other, atMs)}</span>
    </figcaption>
  </figure>`;
}

/** An event on the line of a day. */
interface Mark {
  /** In per cent of the width. */
  readonly x: number;
  readonly sign: 'enter' | 'leave' | 'alarm' | 'other';
  readonly text: string;
}

const SIGNS: Readonly<Record<string, Mark['sign']>> = {
  geofence_enter: 'enter',
  geofence_exit: 'leave',
  alarm: 'alarm',
  tamper_alert: 'alarm',
};

/** The events of a time, where they are on its line. */
export function marksOf(events: readonly FleetEvent[], fromMs: number, toMs: number): readonly Mark[] {
  return events
    .map((event) => ({ event, atMs: Date.parse(event.occurred_at) }))
    .filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
    .map(({ event, atMs }) => ({
      x: (100 * (atMs - fromMs)) / Math.max(1, toMs - fromMs),
      sign: SIGNS[typeOf(event)] ?? 'other',
      text: `${timeOf(atMs)} ${event.message}`,
    }));
}

function Marks({ marks }: { marks: readonly Mark[] }): VNode {
  return html`<svg class="marks" role="img" aria-label=${`${counted(marks.length, 'event')} on the line; the list below has them`}>${marks.map(
    ({ x, sign, text }) => html`<rect class=${sign} x=${`${x}%`}><title>${text}</title></rect>`,
  )}</svg>`;
}

function problemOf({ imei, error }: Day): VNode | null {
  return error === null ? null : html`<p class="error" role="alert">${nameOfImei(imei)}: ${error}</p>`;
}

/** Whose graph is below; nothing where there is one alone. */
function Name({ of, other }: { of: Day; other: Day | null }): VNode | null {
  if (other === null) return null;
  return html`<p class=${of === other ? 'of other' : 'of'}>${nameOfImei(of.imei)}</p>`;
}

function shareOf(atMs: number, fromMs: number, toMs: number): number {
  return (GRAPH.width * (atMs - fromMs)) / Math.max(1, toMs - fromMs);
}

/** The outline of the speeds, from the bottom up to `topKmh`. */
function speedPath(points: readonly DayPoint[], fromMs: number, toMs: number, topKmh: number): string {
  const steps = Array.from(
    highestSpeeds(points, fromMs, toMs),
    (speed, x) => `L${x} ${(GRAPH.height * (1 - speed / topKmh)).toFixed(1)}`,
  );
  return `M0 ${GRAPH.height}${steps.join('')}L${GRAPH.width} ${GRAPH.height}Z`;
}

/**
 * For each unit of the width of the graph the highest speed in it. Where it has no point, the speed is that of the last point
 * before, as long as that is not old; then 0. `points` in the order of their times.
 */
export function highestSpeeds(points: readonly DayPoint[], fromMs: number, toMs: number): Float64Array {
  const highest = new Float64Array(GRAPH.width + 1);
  points.forEach(({ atMs, speedKmh }, n) => {
    const x = Math.round(shareOf(atMs, fromMs, toMs));
    const heldToMs = Math.min(points[n + 1]?.atMs ?? toMs, atMs + OLD_AFTER_MS);
    highest[x] = Math.max(highest[x] as number, speedKmh);
    highest.fill(speedKmh, x + 1, Math.round(shareOf(heldToMs, fromMs, toMs)));
  });
  return highest;
}

function aloneText({ points }: Day, atMs: number): string {
  const at = pointAt(points, atMs);
  return `${timeOf(atMs)}${at === undefined ? '' : `, ${speedText(at.speedKmh)}`}`;
}

/** What two vehicles do at a moment, and how far they are from each other. */
export function besideText(a: Day, b: Day, atMs: number): string {
  const [ofA, ofB] = [a, b].map(({ points }) => points.findLast((point) => point.atMs <= atMs));
  const said = [saidOf(a, ofA, atMs), saidOf(b, ofB, atMs)];
  if (ofA !== undefined && ofB !== undefined) said.push(`${apartText(distanceM(ofA, ofB))} apart`);
  return `${timeOf(atMs)}. ${said.join('; ')}`;
}

function saidOf({ imei, points }: Day, at: DayPoint | undefined, atMs: number): string {
  const name = nameOfImei(imei);
  if (at === undefined) return `${name} has no point ${points.length === 0 ? 'on this day' : 'yet'}`;
  const age = atMs - at.atMs > OLD_AFTER_MS ? ` at ${timeOf(at.atMs)}, its last point` : '';
  return `${name} ${speedText(at.speedKmh)}${age}`;
}

function apartText(metres: number): string {
  return units.value === 'km' && metres < 1_000 ? `${Math.round(metres)} m` : distanceText(metres / 1_000);
}

function timeOf(ms: number): string {
  return timeText(ms, 'minute');
}
