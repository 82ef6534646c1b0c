import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call, mayChange, useLoaded } from '../api.ts';
import { serverNowMs, Time } from '../format.ts';
import { Confirm, Fold } from '../forms.ts';
import { Icon } from '../icons.ts';
import { nameOfImei } from '../liveFleet.ts';
import { CallBehind, html, List } from '../parts.ts';
import type { Share } from '../types.ts';
import { ShareForm } from './shareForm.ts';

const PATH = '/api/v1/shares?limit=200';

/** Links to vehicles: those that there are, and a new one. */
export function Shares(): VNode {
  const { reply, reload } = useLoaded<readonly Share[]>(PATH);
  return html`<section aria-label="Shares">
    <h3>Shares</h3>
    <${List} reply=${reply} reload=${reload}
      empty=${html`<${Icon} name="devices" /> ${mayChange() ? 'No vehicle is shared. Make a link below: whoever has it sees the vehicle on a map, without a login.' : 'No vehicle is shared.'}`}
      show=${(all: readonly Share[]) => html`<ul class="rows">${all.map((share) => html`<${ShareRow} key=${share.id} share=${share} reload=${reload} />`)}</ul>`} />
    <${CallBehind} call=${{ method: 'GET', path: PATH }} />
    ${mayChange() && html`<${Fold} label="New share"><${ShareForm} imeis=${[]} made=${reload} /><//>`}
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
