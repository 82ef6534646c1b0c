import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import type { ApiCall } from '../curl.ts';
import { Field, Form } from '../forms.ts';
import { Panel } from '../forms/panel.ts';
import { useSending } from '../forms/sending.ts';
import { html } from '../html.ts';
import { useLoaded } from '../loaded.ts';
import type { Delivery, Webhook } from '../types.ts';
import { Curl, List, Time } from '../parts.ts';
import { reasonOf } from './reason.ts';

const REPLAYED = ['failed', 'exhausted'];

/** The last deliveries of a webhook, each with its reason where it failed; asked for again with each `round`. */
export function Deliveries({
  webhook,
  round,
  close,
}: {
  webhook: Webhook;
  round: number;
  close: () => void;
}): VNode {
  const path = `/api/v1/webhooks/${webhook.id}/deliveries?limit=50`;
  const { reply, reload } = useLoaded<readonly Delivery[]>(path, round);
  const [said, setSaid] = useState('');
  const replay = async (id: string): Promise<void> => {
    const answer = await call({ method: 'POST', path: `/api/v1/webhooks/deliveries/${id}/replay` });
    setSaid(answer.ok ? 'It is sent again.' : answer.message);
    reload();
  };
  const row = (delivery: Delivery): VNode => html`<li key=${delivery.id}>
    <${Time} at=${delivery.created_at} /> ${delivery.event_type} <span class=${`status ${delivery.status}`}>${delivery.status}</span>
    <small>${reasonOf(delivery)}</small>
    ${
      REPLAYED.includes(delivery.status) &&
      html`<button type="button" aria-label=${`Replay ${delivery.event_type} of ${delivery.created_at}`} onClick=${() => replay(delivery.id)}>Replay</button>`
    }
  </li>`;
  const replayed = (count: number): void => {
    setSaid(`${count} deliveries are sent again.`);
    reload();
  };
  return html`<${Panel} label=${`Deliveries to ${webhook.url}`} close=${close}>
    <p role="status">${said}</p>
    <button type="button" onClick=${reload}>Refresh</button>
    <${List} reply=${reply} reload=${reload} empty="Nothing was sent yet. Send a test, or wait for an event."
      show=${(all: readonly Delivery[]) => html`<ul class="rows">${all.map(row)}</ul>`} />
    <${Curl} call=${{ method: 'GET', path }} />
    <${ReplayAll} webhookId=${webhook.id} done=${replayed} />
  <//>`;
}

function ReplayAll({ webhookId, done }: { webhookId: number; done: (count: number) => void }): VNode {
  const [since, setSince] = useState('');
  const sending = useSending();
  const replay = replayCall(webhookId, since);
  const submit = async (): Promise<void> => {
    const answer = await sending.send<{ requeued: number }>(() => call(replay));
    if (answer !== null) done(answer.data.requeued);
  };
  return html`<${Form} label="Replay" fields=${['from']} sending=${sending} submit=${submit}>
    <${Field} name="from" label="Made since (empty: ever)" type="datetime-local" value=${since}
      onInput=${(event: InputEvent) => setSince((event.currentTarget as HTMLInputElement).value)} />
    <button>Replay all that failed</button>
    <${Curl} call=${replay} />
  <//>`;
}

/** `since` as a field for date and time gives it, in local time. */
function replayCall(webhookId: number, since: string): ApiCall {
  const body = { status: REPLAYED, ...(since === '' ? {} : { from: new Date(since).toISOString() }) };
  return { method: 'POST', path: `/api/v1/webhooks/${webhookId}/replay`, body };
}
