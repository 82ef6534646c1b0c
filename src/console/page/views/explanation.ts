import type { VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useLoaded } from '../api.ts';
import { fieldText, msOfField, Sentence, Time, timeText } from '../format.ts';
import { Field, Form, Panel, useSending } from '../forms.ts';
import { CallBehind, counted, duration, html } from '../parts.ts';
import type { FieldError } from '../reply.ts';
import type { Area, Explanation, FleetEvent } from '../types.ts';
import { VehicleFormField } from './vehicleField.ts';

/** What explain answers at this path, with a picture of it. `dwellSeconds`: the minimum stay that is drawn. */
export function Explained({ path, dwellSeconds }: { path: string; dwellSeconds: number }): VNode {
  const { reply, reload } = useLoaded<Explanation>(path);
  const place = useRef<HTMLElement>(null);
  const isLoaded = reply !== null;
  // The panel was brought into view when it was empty.
  useLayoutEffect(() => {
    if (isLoaded) place.current?.scrollIntoView({ block: 'nearest' });
  }, [isLoaded]);
  if (reply === null) return html`<p class="loading" role="status">Looking at the points…</p>`;
  if (!reply.ok)
    return html`<p class="error" role="alert">${reply.message} <button type="button" onClick=${reload}>Try again</button></p>`;
  const { verdict, message, visits, gaps, notes } = reply.data;
  const { window } = reply.meta;
  return html`<div class="why" role="status" ref=${place}>
    <p><strong>${verdict.replaceAll('_', ' ')}</strong>: <${Sentence} text=${message} /></p>
    ${window !== undefined && html`<${Picture} line=${timeLine(reply.data, window, dwellSeconds)} window=${window} />`}
    <ul>${visits.map(
      (
        visit,
      ) => html`<li>inside from <${Time} at=${visit.first_inside_at} /> to <${Time} at=${visit.last_inside_at} />, ${counted(visit.points, 'point')},
        ${` ${duration(visit.seconds)}`}, ${visit.outcome.replaceAll('_', ' ')}</li>`,
    )}${gaps.map(({ from, to }) => html`<li>no points from <${Time} at=${from} /> to <${Time} at=${to} /></li>`)}</ul>
    <ul>${notes.map(({ message: note }) => html`<li><${Sentence} text=${note} /></li>`)}</ul>
    <${CallBehind} call=${{ method: 'GET', path }} />
  </div>`;
}

function Picture({
  line,
  window,
}: {
  line: TimeLine;
  window: { readonly from: string; readonly to: string };
}): VNode {
  const at = (share: number): string => `${share}%`;
  return html`<figure class="time-line">
    <svg role="img" aria-label=${line.text} width="100%" height="36">
      <rect class="window" x="0" y="14" width="100%" height="8" />
      ${line.gaps.map(({ x, width }) => html`<rect class="gap" x=${at(x)} y="14" width=${at(width)} height="8" />`)}
      ${line.visits.map(
        ({
          x,
          width,
          outcome,
          threshold,
        }) => html`<rect class=${`visit ${outcome}`} x=${at(x)} y="6" width=${at(Math.max(width, 0.4))} height="24" />
        ${threshold !== null && html`<line class="threshold" x1=${at(threshold)} x2=${at(threshold)} y1="0" y2="36" />`}`,
      )}
    </svg>
    <figcaption><${Time} at=${window.from} /><${Time} at=${window.to} /></figcaption>
    <p class="legend"><span class="key-entered">entered</span> <span class="key-passed">inside, not entered</span>
      <span class="key-gap">no points</span> <span class="key-threshold">minimum stay reached</span></p>
  </figure>`;
}

const BEFORE_MS = 10 * 60_000;
const AFTER_MS = 60_000;

/** Where to ask why an event of an area happened: from before the device came in. Null for other events. */
export function explainPath({ data, device_imei, occurred_at }: FleetEvent): string | null {
  if (!('areaId' in data)) return null;
  const atMs = Date.parse(occurred_at);
  const fromMs = Math.min(atMs, Date.parse(data.enteredAt)) - BEFORE_MS;
  return explainPathOf(data.areaId, device_imei, fromMs, atMs + AFTER_MS);
}

/** Where to ask why an area did, or did not, report a device in a time. */
export function explainPathOf(areaId: number, device: string, fromMs: number, toMs: number): string {
  const query = new URLSearchParams({
    device,
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
  });
  return `/api/v1/areas/${areaId}/explain?${query}`;
}

/** A part of the window, in per cent of its length. */
interface Span {
  readonly x: number;
  readonly width: number;
}

interface TimeLine {
  readonly visits: readonly (Span & {
    readonly outcome: string;
    /** Where the minimum stay is reached, or would have been; null: at once, or outside the window. */
    readonly threshold: number | null;
  })[];
  readonly gaps: readonly Span[];
  /** The same in words. */
  readonly text: string;
}

/** The picture of an explanation: what of the window (ISO 8601) was a visit, and what had no points. */
export function timeLine(
  { visits, gaps }: Pick<Explanation, 'visits' | 'gaps'>,
  window: { readonly from: string; readonly to: string },
  dwellSeconds: number,
): TimeLine {
  const fromMs = Date.parse(window.from);
  const lengthMs = Math.max(1, Date.parse(window.to) - fromMs);
  const share = (ms: number): number => ((ms - fromMs) / lengthMs) * 100;
  const within = (ms: number): number => Math.max(0, Math.min(100, share(ms)));
  const span = (from: string, to: string): Span => {
    const x = within(Date.parse(from));
    return { x, width: within(Date.parse(to)) - x };
  };
  const thresholdOf = (first: string): number | null => {
    const x = share(Date.parse(first) + dwellSeconds * 1_000);
    return dwellSeconds === 0 || x < 0 || x > 100 ? null : x;
  };
  return {
    visits: visits.map(({ first_inside_at, last_inside_at, outcome }) => ({
      ...span(first_inside_at, last_inside_at),
      outcome,
      threshold: thresholdOf(first_inside_at),
    })),
    gaps: gaps.map(({ from, to }) => span(from, to)),
    text: `Time line from ${timeOf(window.from)} to ${timeOf(window.to)}: ${counted(visits.length, 'visit')}, ${counted(gaps.length, 'gap')} without points${
      dwellSeconds === 0 ? '' : `, minimum stay ${duration(dwellSeconds)}`
    }. The list below has each of them.`,
  };
}

function timeOf(iso: string): string {
  return timeText(Date.parse(iso), 'dayAndTime');
}

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** Asks why an area did, or did not, report a device in a time. */
export function AskWhy({ area, close }: { area: Area; close: () => void }): VNode {
  const [imei, setImei] = useState('');
  const [path, setPath] = useState<string | null>(null);
  const [opened] = useState(() => Date.now());
  const sending = useSending();
  const submit = (form: HTMLFormElement): void => {
    const fields = new FormData(form);
    const fromMs = msOfField(String(fields.get('from')));
    const toMs = msOfField(String(fields.get('to')));
    const errors: FieldError[] = [];
    if (imei === '') errors.push({ field: 'device', message: 'choose a device' });
    for (const [field, ms] of Object.entries({ from: fromMs, to: toMs }))
      if (Number.isNaN(ms)) errors.push({ field, message: 'choose a date and a time' });
    sending.show(errors);
    // A field shows minutes, and the last one counts as a whole.
    if (errors.length === 0) setPath(explainPathOf(area.id, imei, fromMs, toMs + MINUTE_MS - 1));
  };
  return html`<${Panel} label=${`Why did ${area.name} not report a device?`} close=${close}>
    <${Form} label="Why" fields=${['device', 'from', 'to']} sending=${sending} submit=${submit}>
      <${VehicleFormField} name="device" label="Device" placeholder="Name, plate or IMEI" imei=${imei} change=${setImei} />
      <${Field} name="from" label="From" type="datetime-local" defaultValue=${fieldText(opened - DAY_MS)} />
      <${Field} name="to" label="To" type="datetime-local" defaultValue=${fieldText(opened)} />
      <button>Explain</button>
    <//>
    ${path !== null && html`<${Explained} path=${path} dwellSeconds=${area.dwell_seconds} />`}
  <//>`;
}
