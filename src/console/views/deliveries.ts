import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import { html } from '../html.ts';
import { useLoaded } from '../loaded.ts';
import { reasonOf } from '../reason.ts';
import type { Delivery } from '../types.ts';
import { Curl, List, Time } from './parts.ts';

const REPLAYED = { status: ['failed', 'exhausted'] };

/** The last deliveries of a webhook, each with its reason where it failed. */
export function Deliveries({ webhookId }: { webhookId: number }): VNode {
  const path = `/api/v1/webhooks/${webhookId}/deliveries?limit=50`;
  const { reply, reload } = useLoaded<readonly Delivery[]>(path);
  const [said, setSaid] = useState('');
  const replay = async (id: string): Promise<void> => {
    const answer = await call({ method: 'POST', path: `/api/v1/webhooks/deliveries/${id}/replay` });
    setSaid(answer.ok ? 'It is sent again.' : answer.message);
    reload();
  };
  const replayAll = async (): Promise<void> => {
    const answer = await call<{ requeued: number }>({
      method: 'POST',
      path: `/api/v1/webhooks/${webhookId}/replay`,
      body: REPLAYED,
    });
    setSaid(answer.ok ? `${answer.data.requeued} deliveries are sent again.` : answer.message);
    reload();
  };
  const row = (delivery: Delivery): VNode => html`<li key=${delivery.id}>
    <${Time} at=${delivery.created_at} /> ${delivery.event_type} <span class=${`status ${delivery.status}`}>${delivery.status}</span>
    <small>${reasonOf(delivery)}</small>
    ${
      REPLAYED.status.includes(delivery.status) &&
      html`<button type="button" onClick=${() => replay(delivery.id)}>Replay</button>`
    }
  </li>`;
  return html`<div>
    <p role="status">${said}</p>
    <button type="button" onClick=${reload}>Refresh</button>
    <button type="button" onClick=${replayAll}>Replay all that failed</button>
    <${List} reply=${reply} reload=${reload} empty="Nothing was sent yet. Send a test, or wait for an event."
      show=${(all: readonly Delivery[]) => html`<ul class="rows">${all.map(row)}</ul>`} />
    <${Curl} call=${{ method: 'GET', path }} />
    <${Curl} call=${{ method: 'POST', path: `/api/v1/webhooks/${webhookId}/replay`, body: REPLAYED }} />
  </div>`;
}
