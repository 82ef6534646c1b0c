import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import { fieldText, isoOfField, serverNowMs } from '../format.ts';
import { Choices, Field, Form, useSending } from '../forms.ts';
import { nameOfImei } from '../liveFleet.ts';
import { html, Secret } from '../parts.ts';
import { useAreas } from './eventBar.ts';
import { VehicleFormField } from './vehicleField.ts';

const SHOWN = ['name', 'plate', 'speed', 'trail'];
const FIELDS = ['devices', 'name', 'expires_at', 'until_area_id', 'delay_seconds', 'show'];
const DAY_MS = 86_400_000;

/** Makes a link to vehicles, of which `imeis` are chosen already; `made` is called when there is one. */
export function ShareForm({ imeis, made }: { imeis: readonly string[]; made: () => void }): VNode {
  const [chosen, setChosen] = useState(imeis);
  const [url, setUrl] = useState<string | null>(null);
  const [openedMs] = useState(serverNowMs);
  const areas = useAreas(true);
  const sending = useSending('devices');
  const submit = async (form: HTMLFormElement): Promise<void> => {
    setUrl(null);
    const body = bodyOf(form, chosen);
    const reply = await sending.send<{ url: string }>(() =>
      call({ method: 'POST', path: '/api/v1/shares', body }),
    );
    if (reply === null) return;
    setUrl(reply.data.url);
    made();
  };
  return html`<${Form} label="New share" fields=${FIELDS} sending=${sending} submit=${submit}>
      <${Vehicles} chosen=${chosen} change=${setChosen} />
      <${Field} name="name" label="What its viewers read above the map (may be empty)" />
      <${Field} name="expires_at" label="Ends" type="datetime-local" defaultValue=${fieldText(openedMs + DAY_MS)} />
      <${Field} name="until_area_id" label="Ends sooner when it enters" as="select">
        <option value="">no area</option>
        ${areas.map(({ id, name }) => html`<option value=${id}>${name}</option>`)}
      <//>
      <${Field} name="delay_seconds" label="Seconds by which places are late" inputmode="numeric" defaultValue="0" />
      <${Choices} name="show" label="It shows, beside the place" values=${SHOWN} chosen=${['name']} />
      <button class="main">Make a link</button>
    <//>
    ${url !== null && html`<${Secret} label="The link:" text=${url} />`}`;
}

/** The vehicles that are shared. */
function Vehicles({
  chosen,
  change,
}: {
  chosen: readonly string[];
  change: (imeis: readonly string[]) => void;
}): VNode {
  const add = (imei: string): void => {
    if (imei !== '' && !chosen.includes(imei)) change([...chosen, imei]);
  };
  return html`<div>
    ${
      chosen.length > 0 &&
      html`<ul class="rows" aria-label="Vehicles that are shared">${chosen.map(
        (imei) => html`<li key=${imei}>${nameOfImei(imei)}
          <button type="button" class="beside" aria-label=${`Leave out ${nameOfImei(imei)}`} onClick=${() => change(chosen.filter((one) => one !== imei))}>Leave out</button></li>`,
      )}</ul>`
    }
    <${VehicleFormField} name="devices" label=${chosen.length === 0 ? 'Vehicle' : 'Another vehicle'} placeholder="Name, plate or IMEI" imei="" change=${add} />
  </div>`;
}

/** Text that is not a number is sent unchanged, so that the API refuses it in its own words. */
function bodyOf(form: HTMLFormElement, devices: readonly string[]) {
  const fields = new FormData(form);
  const textOf = (name: string): string => String(fields.get(name) ?? '').trim();
  const numberOf = (text: string): number | string | null =>
    text === '' ? null : /^\d+$/.test(text) ? Number(text) : text;
  const end = textOf('expires_at');
  return {
    devices,
    name: textOf('name') || null,
    // The field has the time of the chosen zone.
    expires_at: isoOfField(end) ?? (end || null),
    until_area_id: numberOf(textOf('until_area_id')),
    delay_seconds: numberOf(textOf('delay_seconds')),
    show: fields.getAll('show'),
  };
}
