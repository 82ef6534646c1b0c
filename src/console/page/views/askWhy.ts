import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { explainPathOf } from '../explainPath.ts';
import { findDevices, nameOf } from '../findDevices.ts';
import { Field, Form } from '../forms.ts';
import { Panel } from '../forms/panel.ts';
import { useSending } from '../forms/sending.ts';
import { html } from '../html.ts';
import { fleet } from '../liveFleet.ts';
import type { Area } from '../types.ts';
import { Explained } from './explanation.ts';

const OFFERED_MAX = 20;
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** Asks why an area did, or did not, report a device in a time. */
export function AskWhy({ area, close }: { area: Area; close: () => void }): VNode {
  const [text, setText] = useState('');
  const [path, setPath] = useState<string | null>(null);
  const [opened] = useState(() => Date.now());
  const sending = useSending();
  const offered = findDevices(fleet.values(), text, OFFERED_MAX).first;
  const submit = (form: HTMLFormElement): void => {
    const fields = new FormData(form);
    const { count, first } = findDevices(fleet.values(), text, 2);
    const device = first.find(({ imei }) => imei === text) ?? (count === 1 ? first[0] : undefined);
    const fromMs = Date.parse(String(fields.get('from')));
    const toMs = Date.parse(String(fields.get('to')));
    const errors = [
      ...(device === undefined
        ? [fieldError('device', count === 0 ? 'no device fits' : `${count} devices fit: choose one`)]
        : []),
      ...(Number.isNaN(fromMs) ? [fieldError('from', 'choose a date and a time')] : []),
      ...(Number.isNaN(toMs) ? [fieldError('to', 'choose a date and a time')] : []),
    ];
    sending.show(errors);
    // A field shows minutes, and the last one counts as a whole.
    if (device !== undefined && errors.length === 0)
      setPath(explainPathOf(area.id, device.imei, fromMs, toMs + MINUTE_MS - 1));
  };
  return html`<${Panel} label=${`Why did ${area.name} not report a device?`} close=${close}>
    <${Form} label="Why" fields=${['device', 'from', 'to']} sending=${sending} submit=${submit}>
      <${Field} name="device" label="Device: name, plate or IMEI" list="why-devices" autocomplete="off" value=${text}
        onInput=${(event: InputEvent) => setText((event.currentTarget as HTMLInputElement).value)} />
      <datalist id="why-devices">${offered.map((device) => html`<option value=${device.imei}>${nameOf(device)}</option>`)}</datalist>
      <${Field} name="from" label="From" type="datetime-local" defaultValue=${fieldTime(opened - DAY_MS)} />
      <${Field} name="to" label="To" type="datetime-local" defaultValue=${fieldTime(opened)} />
      <button>Explain</button>
    <//>
    ${path !== null && html`<${Explained} path=${path} dwellSeconds=${area.dwell_seconds} />`}
  <//>`;
}

function fieldError(field: string, message: string) {
  return { field, code: '', message };
}

/** Local time as a field for date and time takes it, to the minute. */
function fieldTime(ms: number): string {
  const offsetMs = new Date(ms).getTimezoneOffset() * MINUTE_MS;
  return new Date(ms - offsetMs).toISOString().slice(0, 16);
}
