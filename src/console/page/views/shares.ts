import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call, mayChange, useLoaded } from '../api.ts';
import { serverNowMs, Time } from '../format.ts';
import { Choices, Confirm, Field, Form, useSending, wordsOf } from '../forms.ts';
import { nameOfImei } from '../liveFleet.ts';
import { CallBehind, html, List, Secret } from '../parts.ts';
import type { Share } from '../types.ts';

const PATH = '/api/v1/shares?limit=200';
const SHOWN = ['name', 'plate', 'speed', 'trail'];
const FIELDS = ['devices', 'name', 'expires_at', 'until_area_id', 'delay_seconds', 'show'];

/** Links to vehicles: those that there are, and a new one. */
export function Shares(): VNode {
  const { reply, reload } = useLoaded<readonly Share[]>(PATH);
  return html`<section aria-label="Shares">
    <h3>Shares</h3>
    <${List} reply=${reply} reload=${reload}
      empty=${mayChange() ? 'No vehicle is shared. Make a link below: whoever has it sees the vehicle on a map, without a login.' : 'No vehicle is shared.'}
      show=${(all: readonly Share[]) => html`<ul class="rows">${all.map((share) => html`<${ShareRow} key=${share.id} share=${share} reload=${reload} />`)}</ul>`} />
    <${CallBehind} call=${{ method: 'GET', path: PATH }} />
    ${mayChange() && html`<${NewShare} reload=${reload} />`}
  </section>`;
}

const ENDS: Readonly<Record<string, string>> = {
  deleted: 'ended by hand',
  arrived: 'ended with the arrival',
};

function ShareRow({ share, reload }: { share: Share; reload: () => void }): VNode {
  const [error, setError] = useState('');
  const { id, name, devices, expires_at, end_reason } = share;
  const end = async (): Promise<void> => {
    const reply = await call({ method: 'DELETE', path: `/api/v1/shares/${id}` });
    if (reply.ok) reload();
    else setError(reply.message);
  };
  const isOver = end_reason !== null || Date.parse(expires_at) <= serverNowMs();
  return html`<li>
    <strong>${name ?? devices.map(nameOfImei).join(', ')}</strong>
    <small>${name !== null && `${devices.map(nameOfImei).join(', ')}; `}${
      end_reason === null
        ? html`${isOver ? 'ended' : 'ends'} <${Time} at=${expires_at} />`
        : (ENDS[end_reason] ?? end_reason)
    }</small>
    ${!isOver && mayChange() && html`<${Confirm} label="End" sure="End the link now" run=${end} />`}
    <span class="error" role="alert">${error}</span>
  </li>`;
}

function NewShare({ reload }: { reload: () => void }): VNode {
  const [url, setUrl] = useState<string | null>(null);
  const sending = useSending('devices');
  const submit = async (form: HTMLFormElement): Promise<void> => {
    setUrl(null);
    const body = bodyOf(form);
    const reply = await sending.send<{ url: string }>(() =>
      call({ method: 'POST', path: '/api/v1/shares', body }),
    );
    if (reply === null) return;
    setUrl(reply.data.url);
    form.reset();
    reload();
  };
  return html`<h4>New share</h4>
    <${Form} label="New share" fields=${FIELDS} sending=${sending} submit=${submit}>
      <${Field} name="devices" label="IMEIs of the vehicles" />
      <${Field} name="name" label="What its viewers read above the map (may be empty)" />
      <${Field} name="expires_at" label="Ends" type="datetime-local" />
      <${Field} name="until_area_id" label="Ends at the entry into the area with this id (empty: no area)" inputmode="numeric" />
      <${Field} name="delay_seconds" label="Seconds by which places are late" inputmode="numeric" defaultValue="0" />
      <${Choices} name="show" label="It shows, beside the place" values=${SHOWN} chosen=${['name']} />
      <button>Make a link</button>
    <//>
    ${url !== null && html`<${Secret} label="The link:" text=${url} />`}`;
}

/** Text that is not a number is sent unchanged, so that the API refuses it in its own words. */
function bodyOf(form: HTMLFormElement) {
  const fields = new FormData(form);
  const textOf = (name: string): string => String(fields.get(name) ?? '').trim();
  const numberOf = (text: string): number | string | null =>
    text === '' ? null : /^\d+$/.test(text) ? Number(text) : text;
  const end = textOf('expires_at');
  return {
    devices: wordsOf(fields.get('devices')),
    name: textOf('name') || null,
    // The field has the time of this place.
    expires_at: end === '' ? null : new Date(end).toISOString(),
    until_area_id: numberOf(textOf('until_area_id')),
    delay_seconds: numberOf(textOf('delay_seconds')),
    show: fields.getAll('show'),
  };
}
