import { computed, signal } from '@preact/signals';
import type { VNode } from 'preact';
import { duration, html, kept } from './parts.ts';

// How times, ways and speeds are written on every view: in the time zone and the units that a person has chosen.

/** An IANA name; '': the time zone of the browser. */
export const zone = kept('fleet-zone', (text) => (isZone(text) ? text : ''));

export type Units = 'km' | 'mi';
export const units = kept<Units>('fleet-units', (text) => (text === 'mi' ? 'mi' : 'km'));

/** An IMEI identifies a tracker everywhere, so it is on no screen that others may see until a person asks for it. */
export const imeisShown = kept('fleet-imeis', (text) => (text === 'shown' ? 'shown' : ''));

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

export const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** What the clock of this machine is behind that of the service, by the last answer: whole seconds, so half a second off. */
let behindMs = 0;

/** The time by the clock of the service, epoch milliseconds. */
export function serverNowMs(): number {
  return Date.now() + behindMs;
}

/** Compares the clocks (RFC 9110 6.6.1). */
export function takeServerTime(response: Response): void {
  const ms = Date.parse(response.headers.get('date') ?? '');
  if (!Number.isNaN(ms)) behindMs = ms - Date.now();
}

const KM_PER_MILE = 1.609344;

/** "36 km/h" or "22 mph". */
export function speedText(kmh: number): string {
  return units.value === 'mi' ? `${Math.round(kmh / KM_PER_MILE)} mph` : `${Math.round(kmh)} km/h`;
}

/** "12.3 km" or "7.6 mi". */
export function distanceText(km: number): string {
  return units.value === 'mi' ? `${(km / KM_PER_MILE).toFixed(1)} mi` : `${km.toFixed(1)} km`;
}

const STYLES = {
  day: { dateStyle: 'full' },
  dayAndTime: { dateStyle: 'medium', timeStyle: 'medium' },
  time: { timeStyle: 'medium' },
  minute: { hour: '2-digit', minute: '2-digit' },
} as const satisfies Readonly<Record<string, Intl.DateTimeFormatOptions>>;

/** A time (epoch milliseconds) as people here write it: its day, its time of day, or both. */
export function timeText(ms: number, style: keyof typeof STYLES): string {
  return Number.isNaN(ms) ? '' : formatOf(undefined, STYLES[style]).format(ms);
}

/** A time; without its date when that is of today, or stands above it (`isOfDay`). The pointer over it shows all of it. */
export function Time({ at, isOfDay = false }: { at: string; isOfDay?: boolean }): VNode {
  const isShort = isOfDay || dateOf(Date.parse(at)) === today.value;
  return html`<time datetime=${at} title=${exactText(at)}>${timeText(Date.parse(at), isShort ? 'time' : 'dayAndTime')}</time>`;
}

const TIMES = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)/;

/** A sentence of the API, whose times (ISO 8601 in UTC) are written like all others. */
export function Sentence({ text }: { text: string }): VNode {
  return html`${text.split(TIMES).map((part, n) => (n % 2 === 1 ? html`<${Time} at=${part} />` : part))}`;
}

const EVERY_MS = 5_000;
const rounds = signal(0);
let isCounting = false;

/** How long ago something was. The pointer over it shows the exact time. */
export function Ago({ at }: { at: string }): VNode {
  return html`<time datetime=${at} title=${exactText(at)}>${agoText(secondsSince(at))}</time>`;
}

/** How far away a time is that is to come. The pointer over it shows the exact time. */
export function Due({ at }: { at: string }): VNode {
  return html`<time datetime=${at} title=${exactText(at)}>${dueText(-secondsSince(at))}</time>`;
}

/** What shows it is drawn again every few seconds. */
function secondsSince(at: string): number {
  countRounds();
  return (serverNowMs() - Date.parse(at)) / 1_000;
}

function countRounds(): void {
  rounds.value;
  if (!isCounting) setInterval(() => rounds.value++, EVERY_MS);
  isCounting = true;
}

/** The day that it is, for pages that stay open over midnight. */
const today = computed(() => {
  countRounds();
  return dateOf(serverNowMs());
});

function exactText(at: string): string {
  return `${timeText(Date.parse(at), 'dayAndTime')} (${zone.value || browserZone})`;
}

/** In one unit: "now", "12 s ago", "4 min ago", "36 h ago", "2 days ago". A clock may be a little behind: then it is now. */
export function agoText(seconds: number): string {
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < HOUR) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h ago`;
  return `${Math.floor(seconds / DAY)} days ago`;
}

/** "now", "in 50 s", "in 3 min", "in 2 h 5 min". */
export function dueText(seconds: number): string {
  if (seconds < 0.5) return 'now';
  return `in ${duration(seconds < 60 ? Math.round(seconds) : Math.round(seconds / 60) * 60)}`;
}

const HOUR = 3_600;
const DAY = 24 * HOUR;
const DAY_MS = 1_000 * DAY;

/** The day (YYYY-MM-DD) that a time belongs to. */
export function dateOf(ms: number): string {
  return new Date(clockMs(ms)).toISOString().slice(0, 10);
}

/** Where a day (YYYY-MM-DD) begins and ends; some have 23 or 25 hours. */
export function boundsOfDay(date: string): { readonly fromMs: number; readonly toMs: number } {
  const startMs = Date.parse(`${date}T00:00Z`);
  return { fromMs: msAtClock(startMs), toMs: msAtClock(startMs + DAY_MS) };
}

/** A time as a field for date and time takes it, to the minute. */
export function fieldText(ms: number): string {
  return new Date(clockMs(ms)).toISOString().slice(0, 16);
}

/** The time that a field for date and time says; NaN for any other text. */
export function msOfField(text: string): number {
  return msAtClock(Date.parse(`${text}Z`));
}

/** The same as ISO 8601 in UTC; null for any other text. */
export function isoOfField(text: string): string | null {
  const ms = msOfField(text);
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

/** What the clocks of the zone show at a time, as the epoch milliseconds at which those of UTC show the same. */
function clockMs(ms: number): number {
  const parts = formatOf('en', CLOCK).formatToParts(ms);
  const [month = 0, day = 0, year = 0, hour, minute, second] = parts
    .filter(({ type }) => type !== 'literal')
    .map(({ value }) => Number(value));
  return Date.UTC(year, month - 1, day, hour, minute, second) + (ms - Math.floor(ms / 1_000) * 1_000);
}

const CLOCK = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
} as const;

/** When the clocks show this: the first of two times; where they skip it, as far behind the skip as it is in it. */
function msAtClock(shownMs: number): number {
  if (Number.isNaN(shownMs)) return Number.NaN;
  const [before, after] = [-DAY_MS, DAY_MS].map((byMs) => {
    const nearMs = shownMs + byMs;
    return shownMs - (clockMs(nearMs) - nearMs);
  }) as [number, number];
  return clockMs(before) !== shownMs && clockMs(after) === shownMs ? after : before;
}

/** Making one takes longer than many uses of it. There are as many as styles and zones that were chosen. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(locale: 'en' | undefined, style: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const options = { ...style, ...(zone.value === '' ? {} : { timeZone: zone.value }) };
  const name = JSON.stringify([locale, options]);
  const known = formats.get(name) ?? new Intl.DateTimeFormat(locale, options);
  formats.set(name, known);
  return known;
}
