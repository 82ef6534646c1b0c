import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call, useLoaded } from '../api.ts';
import { Time } from '../format.ts';
import { Confirm, Field, Form, Panel, useSending, wordsOf } from '../forms.ts';
import { CallBehind, html, List, Secret } from '../parts.ts';
import type { ApiCall, Reply } from '../reply.ts';
import type { Delivery, Webhook } from '../types.ts';

const PATH = '/api/v1/webhooks?limit=200';

/** Why an endpoint is paused, by the reason that the API gives. */
const PAUSES: Readonly<Record<string, string>> = {
  endpoint_quota: 'too many of its deliveries wait',
  account_quota: 'too many deliveries of your account wait',
  failing: 'no attempt has succeeded for five days',
};

/** The endpoints of the account; `changed` is called when one was made, deleted or resumed. */
export function Webhooks({ changed }: { changed: () => void }): VNode {
  const loaded = useLoaded<readonly Webhook[]>(PATH);
  const { reply } = loaded;
  const reload = (): void => {
    loaded.reload();
    changed();
  };
  return html`<section aria-label="Webhooks">
    <h3>Webhooks</h3>
    <${List} reply=${reply} reload=${reload} empty="There are no webhooks yet. Enter below where events are to be sent."
      show=${(all: readonly Webhook[]) => html`<ul class="rows">${all.map((webhook) => html`<${WebhookRow} key=${webhook.id} webhook=${webhook} reload=${reload} />`)}</ul>`} />
    <${CallBehind} call=${{ method: 'GET', path: PATH }} />
    <${NewWebhook} reload=${reload} />
  </section>`;
}

function WebhookRow({ webhook, reload }: { webhook: Webhook; reload: () => void }): VNode {
  const [secret, setSecret] = useState<string | null>(null);
  const [error, setError] = useState('');
  const [isOpen, setOpen] = useState(false);
  const [round, setRound] = useState(0);
  const { id, url, events, active, paused } = webhook;
  const path = `/api/v1/webhooks/${id}`;
  const say = (reply: Reply<unknown>): void => setError(reply.ok ? '' : reply.message);
  const test = async (): Promise<void> => {
    say(await call({ method: 'POST', path: `${path}/test` }));
    setOpen(true);
    setRound((before) => before + 1);
  };
  const rotate = async (): Promise<void> => {
    const reply = await call<{ secret: string }>({ method: 'POST', path: `${path}/rotate-secret` });
    say(reply);
    if (reply.ok) setSecret(reply.data.secret);
  };
  const change = async (asked: ApiCall): Promise<void> => {
    const reply = await call(asked);
    say(reply);
    if (reply.ok) reload();
  };
  const resume = () => change({ method: 'POST', path: `${path}/resume`, body: {} });
  const remove = () => change({ method: 'DELETE', path });
  return html`<li>
    <strong>${url}</strong> <small>${events.join(', ')}${active ? '' : '; not active'}</small>
    ${
      paused !== null &&
      html`<p>Paused since ${new Date(paused.since).toLocaleString()}: ${PAUSES[paused.reason] ?? paused.reason}. New events are left out until you resume it; then they are sent, too.
        <button type="button" onClick=${resume}>Resume</button></p>`
    }
    <button type="button" onClick=${test}>Send a test</button>
    <${Confirm} label="Rotate the secret" sure="Make a new secret" run=${rotate} />
    <button type="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>Deliveries</button>
    <${Confirm} label="Delete" sure="Delete with its deliveries" run=${remove} />
    <span class="error" role="alert">${error}</span>
    ${secret !== null && html`<${Secret} label="The new secret:" text=${secret} />`}
    ${isOpen && html`<${Deliveries} round=${round} webhook=${webhook} close=${() => setOpen(false)} />`}
  </li>`;
}

function NewWebhook({ reload }: { reload: () => void }): VNode {
  const [secret, setSecret] = useState<string | null>(null);
  const sending = useSending('url');
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const fields = new FormData(form);
    const body = { url: String(fields.get('url')), events: wordsOf(fields.get('events')) };
    setSecret(null);
    const reply = await sending.send<{ secret: string }>(() =>
      call({ method: 'POST', path: '/api/v1/webhooks', body }),
    );
    if (reply === null) return;
    setSecret(reply.data.secret);
    form.reset();
    reload();
  };
  return html`<h4>New webhook</h4>
    <${Form} label="New webhook" fields=${['url', 'events']} sending=${sending} submit=${submit}>
      <${Field} name="url" label="URL" type="url" placeholder="https://…" />
      <${Field} name="events" label="Types of events (* for all)" defaultValue="*" />
      <button>Make a webhook</button>
    <//>
    ${secret !== null && html`<${Secret} label="Its secret:" text=${secret} />`}`;
}

/** What came of the attempts, for people. */
export function reasonOf({ attempts, last_status_code, last_error }: Delivery): string {
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  if (attempts === 0) return 'not sent yet';
  if (last_error === 'url_unsafe') return `${tries}: the address of the URL is not a public one`;
  if (last_error !== null) return `${tries}: ${last_error.replaceAll('_', ' ')}`;
  return last_status_code === null ? tries : `${tries}: the receiver answered ${last_status_code}`;
}

const REPLAYED = ['failed', 'exhausted'];

/** The last deliveries of a webhook, each with its reason where it failed; asked for again with each `round`. */
function Deliveries({
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
    <${CallBehind} call=${{ method: 'GET', path }} />
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
    <${CallBehind} call=${replay} />
  <//>`;
}

/** `since` as a field for date and time gives it, in local time. */
function replayCall(webhookId: number, since: string): ApiCall {
  const body = { status: REPLAYED, ...(since === '' ? {} : { from: new Date(since).toISOString() }) };
  return { method: 'POST', path: `/api/v1/webhooks/${webhookId}/replay`, body };
}
