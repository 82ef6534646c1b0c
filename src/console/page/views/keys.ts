import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call, mayChange, useLoaded } from '../api.ts';
import { Ago, isoOfField, serverNowMs, Time } from '../format.ts';
import { Choices, Confirm, Field, Fold, Form, Panel, type Sending, useSending, wordsOf } from '../forms.ts';
import { Icon } from '../icons.ts';
import { CallBehind, html, keyCurl, List, Secret } from '../parts.ts';

/** Of v1, which the description leaves out. */
interface Key {
  readonly id: number;
  readonly name: string;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly allowlist: readonly string[];
  readonly groups: readonly string[];
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  readonly expires_at: string | null;
}

export const SCOPES = [
  'read_devices',
  'read_locations',
  'read_history',
  'read_history_summary',
  'send_commands',
  'read_events',
  'read_areas',
  'write_areas',
  'manage_webhooks',
  'manage_shares',
];
const PATH = '/api/v1/keys?limit=200';

export function Keys(): VNode {
  const { reply, reload } = useLoaded<readonly Key[]>(PATH);
  return html`<section aria-label="API keys">
    <h3>API keys</h3>
    <${List} reply=${reply} reload=${reload} empty=${html`<${Icon} name="api" /> ${mayChange() ? 'There are no keys yet. Make one below for each program that uses the API.' : 'There are no keys.'}`}
      show=${(keys: readonly Key[]) => html`<ul class="rows">${keys.map((key) => html`<${KeyRow} key=${key.id} apiKey=${key} reload=${reload} />`)}</ul>`} />
    <${CallBehind} call=${{ method: 'GET', path: PATH }} />
    ${mayChange() && html`<${NewKey} reload=${reload} />`}
  </section>`;
}

function KeyRow({ apiKey, reload }: { apiKey: Key; reload: () => void }): VNode {
  const [isOpen, setOpen] = useState(false);
  const [error, setError] = useState('');
  const { id, name, prefix, scopes, allowlist, groups, last_used_at, revoked_at, expires_at } = apiKey;
  const hasEnded = expires_at !== null && Date.parse(expires_at) <= serverNowMs();
  const revoke = async (): Promise<void> => {
    const reply = await call({ method: 'POST', path: `/api/v1/keys/${id}/revoke` });
    if (reply.ok) reload();
    else setError(reply.message);
  };
  return html`<li>
    <strong>${name}</strong> <code>${prefix}…</code>
    <small>${scopes.length === SCOPES.length ? 'all permissions' : scopes.join(', ')}; ${allowlist.length === 0 ? 'from anywhere' : `from ${allowlist.join(', ')}`}; ${
      groups.length === 0 ? '' : `sees devices of ${groups.join(', ')}; `
    }${
      last_used_at === null ? 'not used yet' : html`last used <${Ago} at=${last_used_at} />`
    }${expires_at !== null && html`; ${hasEnded ? 'ended' : 'ends'} <${Time} at=${expires_at} />`}</small>
    ${
      revoked_at === null && !hasEnded
        ? mayChange() &&
          html`<button type="button" aria-expanded=${isOpen} aria-label=${`Change ${name || prefix}`} onClick=${() => setOpen(!isOpen)}>Change</button>
          <${Confirm} label="Revoke" sure="Revoke permanently" run=${revoke} />`
        : html`<em>${revoked_at === null ? 'ended' : 'revoked'}</em>`
    }
    <span class="error" role="alert">${error}</span>
    ${isOpen && mayChange() && html`<${ChangeKey} apiKey=${apiKey} reload=${reload} close=${() => setOpen(false)} />`}
  </li>`;
}

function ChangeKey({ apiKey, reload, close }: { apiKey: Key; reload: () => void; close: () => void }): VNode {
  const sending = useSending();
  const path = `/api/v1/keys/${apiKey.id}`;
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const body = bodyOf(form);
    if ((await sending.send(() => call({ method: 'PATCH', path, body }))) === null) return;
    close();
    reload();
  };
  const { name, prefix, scopes, allowlist } = apiKey;
  return html`<${Panel} label=${`Change ${name || prefix}`} close=${close}>
    <${KeyForm} label="Key" button="Save" sending=${sending} submit=${submit} apiKey=${apiKey} />
    <${CallBehind} call=${{ method: 'PATCH', path, body: { name, scopes, allowlist } }} />
  <//>`;
}

function NewKey({ reload }: { reload: () => void }): VNode {
  const [made, setMade] = useState<{ key: string; use: string | null } | null>(null);
  const sending = useSending();
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const end = String(new FormData(form).get('expires_at'));
    // The field has the time of the chosen zone.
    const named = String(new FormData(form).get('groups')).split(',');
    const groups = named.map((name) => name.trim()).filter((name) => name !== '');
    const body = {
      ...bodyOf(form),
      ...(groups.length > 0 && { groups }),
      ...(end !== '' && { expires_at: isoOfField(end) ?? end }),
    };
    setMade(null);
    const reply = await sending.send<{ key: string }>(() =>
      call({ method: 'POST', path: '/api/v1/keys', body }),
    );
    if (reply === null) return;
    const { key } = reply.data;
    setMade({ key, use: keyCurl(location.origin, key, body.scopes) });
    form.reset();
    reload();
  };
  return html`<${Fold} label="New key">
      <${KeyForm} label="New key" button="Make a key" sending=${sending} submit=${submit} apiKey=${null} />
    <//>
    ${made !== null && html`<${Secret} label="The key:" text=${made.key} use=${made.use ?? undefined} />`}`;
}

function KeyForm(props: {
  label: string;
  button: string;
  sending: Sending;
  submit: (form: HTMLFormElement) => unknown;
  /** Null: a new one. */
  apiKey: Key | null;
}): VNode {
  const { label, button, sending, submit, apiKey } = props;
  return html`<${Form} label=${label} fields=${['name', 'scopes', 'allowlist', 'groups', 'expires_at']} sending=${sending} submit=${submit}>
    <${Field} name="name" label="Name" defaultValue=${apiKey?.name ?? ''} />
    <${Choices} name="scopes" label="It may" values=${SCOPES} chosen=${apiKey?.scopes ?? []} />
    <${Field} name="allowlist" label="Only from these addresses (empty: anywhere)" placeholder="192.0.2.0/24"
      defaultValue=${apiKey?.allowlist.join(', ') ?? ''} />
    ${apiKey === null && html`<${Field} name="groups" label="Sees only devices of these groups (empty: all)" placeholder="north" />`}
    ${apiKey === null && html`<${Field} name="expires_at" label="Ends (empty: never)" type="datetime-local" />`}
    <button class="main">${button}</button>
  <//>`;
}

function bodyOf(form: HTMLFormElement): { name: string; scopes: string[]; allowlist: string[] } {
  const fields = new FormData(form);
  return {
    name: String(fields.get('name')),
    scopes: fields.getAll('scopes').map(String),
    allowlist: wordsOf(fields.get('allowlist')),
  };
}
