import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call, type Reply } from '../api.ts';
import { html } from '../html.ts';
import { useLoaded } from '../loaded.ts';
import type { FieldError, Webhook } from '../types.ts';
import { Deliveries } from './deliveries.ts';
import { Curl, FieldProblem, List, Secret } from './parts.ts';

const PATH = '/api/v1/webhooks?limit=200';

export function Webhooks(): VNode {
  const { reply, reload } = useLoaded<readonly Webhook[]>(PATH);
  return html`<section aria-label="Webhooks">
    <h3>Webhooks</h3>
    <${List} reply=${reply} reload=${reload} empty="There are no webhooks yet. Enter below where events are to be sent."
      show=${(all: readonly Webhook[]) => html`<ul class="rows">${all.map((webhook) => html`<${WebhookRow} key=${webhook.id} webhook=${webhook} />`)}</ul>`} />
    <${Curl} call=${{ method: 'GET', path: PATH }} />
    <${NewWebhook} reload=${reload} />
  </section>`;
}

function WebhookRow({ webhook }: { webhook: Webhook }): VNode {
  const [secret, setSecret] = useState<string | null>(null);
  const [problem, setProblem] = useState('');
  const [isOpen, setOpen] = useState(false);
  const [round, setRound] = useState(0);
  const say = (reply: Reply<unknown>): void => setProblem(reply.ok ? '' : reply.message);
  const test = async (): Promise<void> => {
    say(await call({ method: 'POST', path: `/api/v1/webhooks/${webhook.id}/test` }));
    setOpen(true);
    setRound((before) => before + 1);
  };
  const rotate = async (): Promise<void> => {
    const reply = await call<{ secret: string }>({
      method: 'POST',
      path: `/api/v1/webhooks/${webhook.id}/rotate-secret`,
    });
    say(reply);
    if (reply.ok) setSecret(reply.data.secret);
  };
  return html`<li>
    <strong>${webhook.url}</strong> <small>${webhook.events.join(', ')}${webhook.active ? '' : '; not active'}</small>
    <button type="button" onClick=${test}>Send a test</button>
    <button type="button" onClick=${rotate}>Rotate the secret</button>
    <button type="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>Deliveries</button>
    <span class="error" role="alert">${problem}</span>
    ${secret !== null && html`<${Secret} label="The new secret:" text=${secret} />`}
    ${isOpen && html`<${Deliveries} key=${round} webhookId=${webhook.id} />`}
  </li>`;
}

function NewWebhook({ reload }: { reload: () => void }): VNode {
  const [secret, setSecret] = useState<string | null>(null);
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const fields = new FormData(form);
    const body = {
      url: String(fields.get('url')),
      events: String(fields.get('events'))
        .split(/[\s,]+/)
        .filter((type) => type !== ''),
    };
    const reply = await call<{ secret: string }>({ method: 'POST', path: '/api/v1/webhooks', body });
    setSecret(reply.ok ? reply.data.secret : null);
    setErrors(
      reply.ok
        ? []
        : reply.details.length > 0
          ? reply.details
          : [{ field: 'url', code: '', message: reply.message }],
    );
    if (!reply.ok) return;
    form.reset();
    reload();
  };
  return html`<form onSubmit=${submit} aria-label="New webhook">
    <label>URL <input name="url" type="url" required placeholder="https://…" aria-describedby="webhook-url" /></label>
    <${FieldProblem} id="webhook-url" field="url" errors=${errors} />
    <label>Types of events (* for all) <input name="events" required defaultValue="*" aria-describedby="webhook-events" /></label>
    <${FieldProblem} id="webhook-events" field="events" errors=${errors} />
    <button>Make a webhook</button>
    ${secret !== null && html`<${Secret} label="Its secret:" text=${secret} />`}
  </form>`;
}
