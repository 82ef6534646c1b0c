import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { vehicleAddress } from '../../address.ts';
import { useLoaded } from '../../api.ts';
import { nameOf } from '../../fleet.ts';
import { dateOf, fieldText, msOfField, serverNowMs, Time, timeText } from '../../format.ts';
import { Field, Form, Panel, useSending } from '../../forms.ts';
import { askedPresence, type TimeSpan } from '../../map/mapState.ts';
import { CallBehind, counted, duration, html } from '../../parts.ts';
import type { Area, DevicePresence } from '../../types.ts';

/** The most that a call lists. */
const LISTED_MAX = 200;
const HOUR_MS = 3_600_000;

/** Asks who was in an area in a time. */
export function WasHere({ area, close }: { area: Area; close: () => void }): VNode {
  const [shown] = useState(() => askedPresence.value ?? lastHours());
  const sending = useSending();
  const span = askedPresence.value;
  const submit = (form: HTMLFormElement): void => {
    const fields = new FormData(form);
    const fromMs = msOfField(String(fields.get('from')));
    const toMs = msOfField(String(fields.get('to')));
    const wrong = Object.entries({ from: fromMs, to: toMs }).filter(([, ms]) => Number.isNaN(ms));
    sending.show(wrong.map(([field]) => ({ field, message: 'choose a date and a time' })));
    if (wrong.length === 0) askedPresence.value = { fromMs, toMs };
  };
  return html`<${Panel} label=${`Who was in ${area.name}?`} close=${close}>
    <${Form} label="Who was here" fields=${['from', 'to']} sending=${sending} submit=${submit}>
      <${Field} name="from" label="From" type="datetime-local" defaultValue=${fieldText(shown.fromMs)} />
      <${Field} name="to" label="To" type="datetime-local" defaultValue=${fieldText(shown.toMs)} />
      <button>Look</button>
    <//>
    ${span !== null && html`<${Found} areaId=${area.id} span=${span} />`}
  <//>`;
}

/** The last two hours, to the minute. */
function lastHours(): TimeSpan {
  const toMs = Math.floor(serverNowMs() / 60_000) * 60_000;
  return { fromMs: toMs - 2 * HOUR_MS, toMs };
}

function Found({ areaId, span }: { areaId: number; span: TimeSpan }): VNode {
  const path = presencePath(areaId, span);
  const { reply, reload } = useLoaded<readonly DevicePresence[]>(path);
  if (reply === null)
    return html`<p class="loading" role="status">Looking through the points of this time…</p>`;
  if (!reply.ok)
    return html`<p class="error" role="alert">${reply.message} <button type="button" onClick=${reload}>Try again</button></p>`;
  const { total = reply.data.length, query } = reply.meta;
  const isTrimmed = query !== undefined && Date.parse(query.from) > span.fromMs;
  return html`
    <p role="status">${saidOf(total, span)}${total > reply.data.length && `; the first ${reply.data.length} are listed`}</p>
    ${isTrimmed && html`<p class="empty">Your plan keeps no points before <${Time} at=${query.from} />, so the time begins there.</p>`}
    <ul class="rows">${reply.data.map(
      ({ device, first_at, last_at, seconds, points }) => html`<li key=${device.imei}>
        <a class="plain" href=${vehicleAddress(device.imei, dateOf(Date.parse(first_at)))} title="Show its day">${nameOf(device)}</a> <span class="beside">${duration(Math.round(seconds))}</span>
        <small><${Time} at=${first_at} /> – <${Time} at=${last_at} isOfDay=${isOneDay(first_at, last_at)} />, ${counted(points, 'point')}</small>
      </li>`,
    )}</ul>
    <p class="empty">By the points inside the area as it is now. More than 10 minutes without a point do not count.</p>
    <${CallBehind} call=${{ method: 'GET', path }} />`;
}

function presencePath(areaId: number, { fromMs, toMs }: TimeSpan): string {
  const time = (ms: number): string => new Date(ms).toISOString();
  return `/api/v1/presence?area_id=${areaId}&from=${time(fromMs)}&to=${time(toMs)}&limit=${LISTED_MAX}`;
}

function saidOf(total: number, { fromMs, toMs }: TimeSpan): string {
  const time = `between ${timeText(fromMs, 'dayAndTime')} and ${timeText(toMs, 'dayAndTime')}`;
  return total === 0 ? `No vehicle was here ${time}` : `${counted(total, 'vehicle')} ${time}`;
}

function isOneDay(a: string, b: string): boolean {
  return dateOf(Date.parse(a)) === dateOf(Date.parse(b));
}
