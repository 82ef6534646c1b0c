import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, mayChange, useLoaded } from '../api.ts';
import { Due, Time } from '../format.ts';
import { Confirm, Field, Fold, Form, Panel, useSending, wordsOf } from '../forms.ts';
import { Icon } from '../icons.ts';
import { CallBehind, counted, grouped, html, List, Secret } from '../parts.ts';
import type { ApiCall, Reply } from '../reply.ts';
import type { LeftOut, Webhook } from '../types.ts';
import { Deliveries } from './deliveries.ts';

const PATH = '/api/v1/webhooks?limit=200';
/** While an endpoint fails, somebody may wait for it to work again. */
const FAILING_EVERY_MS = 30_000;

/** Why an endpoint is paused, by the reason that the API gives. */
const PAUSES: Readonly<Record<string, string>> = {
  endpoint_quota: 'too many of its deliveries wait',
  account_quota: 'too many deliveries of your account wait',
  failing: 'no attempt has succeeded for five days',
};

/** The endpoints of the account; `changed` is called when one was made, changed or deleted. */
export function Webhooks({ changed }: { changed: () => void }): VNode {
  const loaded = useLoaded<readonly Webhook[]>(PATH);
  // What is open in the list stays open when it cannot be read again.
  const last = useRef<Reply<readonly Webhook[]> | null>(null);
  if (loaded.reply?.ok) last.current = loaded.reply;
  const reply = last.current ?? loaded.reply;
  useEffect(() => {
    if (!reply?.ok || !reply.data.some(({ failing }) => failing)) return;
    const timer = setInterval(() => document.hidden || loaded.reload(), FAILING_EVERY_MS);
    return () => clearInterval(timer);
  }, [reply]);
  const reload = (): void => {
    loaded.reload();
    changed();
  };
  const [secret, setSecret] = useState<string | null>(null);
  return html`<section aria-label="Webhooks">
    <h3>Webhooks</h3>
    <${List} reply=${reply} reload=${reload} empty=${html`<${Icon} name="events" /> ${mayChange() ? 'There are no webhooks yet. Make one below for each place that events are to be sent to.' : 'There are no webhooks.'}`}
      show=${(all: readonly Webhook[]) => html`<ul class="rows">${all.map((webhook) => html`<${WebhookRow} key=${webhook.id} webhook=${webhook} reload=${reload} look=${loaded.reload} />`)}</ul>`} />
    ${
      loaded.reply !== null &&
      loaded.reply !== reply &&
      !loaded.reply.ok &&
      html`<p class="error" role="alert">What stands here is from before: ${loaded.reply.message}</p>`
    }
    <${CallBehind} call=${{ method: 'GET', path: PATH }} />
    ${
      mayChange() &&
      html`<${Fold} label="New webhook">
        <${WebhookForm} webhook=${null} saved=${(made: { secret?: string }) => {
          setSecret(made.secret ?? null);
          reload();
        }} />
      <//>`
    }
    ${secret !== null && html`<${Secret} label="Its secret:" text=${secret} />`}
  </section>`;
}

type Opened = 'deliveries' | 'edit' | null;

/** `look` reads the list again; `reload` also what counts webhooks. */
function WebhookRow(props: { webhook: Webhook; reload: () => void; look: () => void }): VNode {
  const { webhook, reload, look } = props;
  const [secret, setSecret] = useState<string | null>(null);
  const [error, setError] = useState('');
  const [opened, setOpened] = useState<Opened>(null);
  const [round, setRound] = useState(0);
  const { id, url, description, events, active, retry_policy, max_retries } = webhook;
  const [health, text] = healthOf(webhook);
  const path = `/api/v1/webhooks/${id}`;
  const say = (reply: Reply<unknown>): void => setError(reply.ok ? '' : reply.message);
  const test = async (): Promise<void> => {
    say(await call({ method: 'POST', path: `${path}/test` }));
    setOpened('deliveries');
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
  const activate = (isActive: boolean) => change({ method: 'PUT', path, body: { active: isActive } });
  const remove = () => change({ method: 'DELETE', path });
  const opener = (what: Exclude<Opened, null>, label: string): VNode =>
    html`<button type="button" aria-expanded=${opened === what} onClick=${() => setOpened(opened === what ? null : what)}>${label}</button>`;
  const close = (): void => setOpened(null);
  return html`<li>
    <strong>${url}</strong> <span class=${`status ${health}`}>${text}</span>
    ${webhook.failing && html`<${Failing} failing=${webhook.failing} />`}
    <small>${description !== null && `${description}; `}${events.includes('*') ? 'all types of events' : events.join(', ')}; ${
      retry_policy === 'none' ? 'no retries' : `${counted(max_retries, 'attempt')} at most, ${retry_policy}`
    }</small>
    ${webhook.paused !== null && html`<${Pause} webhook=${webhook} change=${change} />`}
    <div class="tools">
      ${mayChange() && html`<button type="button" onClick=${test}>Send a test</button>`}
      ${opener('deliveries', 'Deliveries')}
      ${
        mayChange() &&
        html`${opener('edit', 'Edit')}
        <button type="button" onClick=${() => activate(!active)}>${active ? 'Pause' : 'Start again'}</button>
        <${Confirm} label="Rotate the secret" sure="Make a new secret" run=${rotate} />
        <${Confirm} label="Delete" sure="Delete with its deliveries" run=${remove} />`
      }
    </div>
    <span class="error" role="alert">${error}</span>
    ${secret !== null && html`<${Secret} label="The new secret:" text=${secret} />`}
    ${opened === 'deliveries' && html`<${Deliveries} round=${round} webhook=${webhook} asked=${look} close=${close} />`}
    ${
      opened === 'edit' &&
      mayChange() &&
      html`<${Panel} label=${`Change ${url}`} close=${close}>
        <${WebhookForm} webhook=${webhook} saved=${() => {
          close();
          reload();
        }} />
      <//>`
    }
  </li>`;
}

/** The health of an endpoint: the class of its sign, and a word for it. */
export function healthOf({
  active,
  paused,
  failing,
}: Pick<Webhook, 'active' | 'paused' | 'failing'>): readonly [sign: string, text: string] {
  if (!active) return ['idle', 'paused'];
  if (paused !== null) return ['unknown', 'paused by the service'];
  return failing ? ['failed', 'failing'] : ['delivered', 'active'];
}

/** Since when an endpoint fails, how often it was tried since, and when it is tried again. */
function Failing({
  failing: { since, attempts, next_attempt_at },
}: {
  failing: NonNullable<Webhook['failing']>;
}): VNode {
  return html`<p class="error">Failing since <${Time} at=${since} /> (${counted(attempts, 'attempt')})${
    next_attempt_at === null ? ', no try is due' : html`, next try <${Due} at=${next_attempt_at} />`
  }.</p>`;
}

/** Why the service has paused an endpoint, what it lacks since, and the ways on. */
function Pause({
  webhook: { id, paused },
  change,
}: {
  webhook: Webhook;
  change: (asked: ApiCall) => Promise<void>;
}): VNode | null {
  const path = `/api/v1/webhooks/${id}`;
  const { reply } = useLoaded<LeftOut>(`${path}/left-out`);
  if (paused === null) return null;
  const lacks = reply?.ok
    ? ` ${grouped(reply.data.events)}${reply.data.is_complete ? '' : ' or more'} are left out so far.`
    : '';
  const resume = (body: object) => change({ method: 'POST', path: `${path}/resume`, body });
  return html`<p>Paused since <${Time} at=${paused.since} />: ${PAUSES[paused.reason] ?? paused.reason}. New events are left out until you resume it; then they are sent, too.${lacks}</p>
    ${
      mayChange() &&
      html`<p class="tools">
        <button type="button" onClick=${() => resume({})}>Resume</button>
        <${Confirm} label="Go on without them" sure="Never send what was left out" run=${() => resume({ from: null })} />
      </p>`
    }`;
}

const POLICIES = {
  exponential: 'After 2, 4, 8, 16 … minutes',
  fixed: 'Every 5 minutes',
  none: 'Not at all',
} as const;

/** A new endpoint (null), or one that is changed. */
function WebhookForm({
  webhook,
  saved,
}: {
  webhook: Webhook | null;
  saved: (endpoint: { secret?: string }) => void;
}): VNode {
  const sending = useSending('url');
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const [method, path] =
      webhook === null ? ['POST', '/api/v1/webhooks'] : ['PUT', `/api/v1/webhooks/${webhook.id}`];
    const reply = await sending.send<{ secret?: string }>(() => call({ method, path, body: bodyOf(form) }));
    if (reply === null) return;
    if (webhook === null) form.reset();
    saved(reply.data);
  };
  return html`<${Form} label=${webhook === null ? 'New webhook' : 'Webhook'} sending=${sending} submit=${submit}
      fields=${['url', 'description', 'events', 'retry_policy', 'max_retries']}>
    <${Field} name="url" label="URL" type="url" placeholder="https://…" defaultValue=${webhook?.url ?? ''} />
    <${Field} name="description" label="Description (may be empty)" defaultValue=${webhook?.description ?? ''} />
    <${Field} name="events" label="Types of events (* for all)" defaultValue=${webhook?.events.join(', ') ?? '*'} />
    <${Field} name="retry_policy" label="What fails is sent again" as="select">
      ${Object.entries(POLICIES).map(([policy, text]) => html`<option value=${policy} selected=${policy === (webhook?.retry_policy ?? 'exponential')}>${text}</option>`)}
    <//>
    <${Field} name="max_retries" label="Attempts at most" inputmode="numeric" defaultValue=${webhook?.max_retries ?? 5} />
    <button class="main">${webhook === null ? 'Make a webhook' : 'Save'}</button>
  <//>`;
}

/** Text that is not a number is sent unchanged, so that the API refuses it in its own words. */
function bodyOf(form: HTMLFormElement) {
  const fields = new FormData(form);
  const textOf = (name: string): string => String(fields.get(name) ?? '').trim();
  const attempts = textOf('max_retries');
  return {
    url: textOf('url'),
    description: textOf('description') || null,
    events: wordsOf(fields.get('events')),
    retry_policy: textOf('retry_policy'),
    max_retries: /^\d+$/.test(attempts) ? Number(attempts) : attempts,
  };
}
