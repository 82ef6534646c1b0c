import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../api.ts';
import { html } from '../html.ts';
import { useLoaded } from '../loaded.ts';
import type { FieldError, Key } from '../types.ts';
import { Curl, FieldProblem, List, Secret } from './parts.ts';

const SCOPES = [
  'read_devices',
  'read_locations',
  'read_history',
  'read_history_summary',
  'send_commands',
  'read_events',
  'read_areas',
  'write_areas',
  'manage_webhooks',
];
const PATH = '/api/v1/keys?limit=200';

export function Keys(): VNode {
  const { reply, reload } = useLoaded<readonly Key[]>(PATH);
  return html`<section aria-label="API keys">
    <h3>API keys</h3>
    <${List} reply=${reply} reload=${reload} empty="There are no keys yet. Make one below for each program that uses the API."
      show=${(keys: readonly Key[]) => html`<ul class="rows">${keys.map((key) => html`<${KeyRow} key=${key.id} apiKey=${key} reload=${reload} />`)}</ul>`} />
    <${Curl} call=${{ method: 'GET', path: PATH }} />
    <${NewKey} reload=${reload} />
  </section>`;
}

function KeyRow({ apiKey, reload }: { apiKey: Key; reload: () => void }): VNode {
  const [isSure, setSure] = useState(false);
  const [problem, setProblem] = useState('');
  const revoke = async (): Promise<void> => {
    if (!isSure) return setSure(true);
    const reply = await call({ method: 'POST', path: `/api/v1/keys/${apiKey.id}/revoke` });
    if (reply.ok) reload();
    else setProblem(reply.message);
  };
  return html`<li>
    <strong>${apiKey.name}</strong> <code>${apiKey.prefix}…</code>
    <small>${apiKey.scopes.join(', ')}; ${apiKey.allowlist.length === 0 ? 'from anywhere' : `from ${apiKey.allowlist.join(', ')}`}</small>
    ${
      apiKey.revoked_at === null
        ? html`<button type="button" onClick=${revoke} onBlur=${() => setSure(false)}>${isSure ? 'Revoke for ever' : 'Revoke'}</button>`
        : html`<em>revoked</em>`
    }
    <span class="error" role="alert">${problem}</span>
  </li>`;
}

function NewKey({ reload }: { reload: () => void }): VNode {
  const [made, setMade] = useState<string | null>(null);
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const fields = new FormData(form);
    const body = {
      name: String(fields.get('name')),
      scopes: fields.getAll('scopes'),
      allowlist: String(fields.get('allowlist'))
        .split(/[\s,]+/)
        .filter((entry) => entry !== ''),
    };
    const reply = await call<{ key: string }>({ method: 'POST', path: '/api/v1/keys', body });
    setMade(reply.ok ? reply.data.key : null);
    setErrors(
      reply.ok
        ? []
        : reply.details.length > 0
          ? reply.details
          : [{ field: 'name', code: '', message: reply.message }],
    );
    if (!reply.ok) return;
    form.reset();
    reload();
  };
  return html`<form onSubmit=${submit} aria-label="New key">
    <label>Name <input name="name" required aria-describedby="key-name" /></label><${FieldProblem} id="key-name" field="name" errors=${errors} />
    <fieldset><legend>It may</legend>${SCOPES.map(
      (scope) => html`<label><input type="checkbox" name="scopes" value=${scope} /> ${scope}</label>`,
    )}</fieldset><${FieldProblem} id="key-scopes" field="scopes" errors=${errors} />
    <label>Only from these addresses (empty: anywhere) <input name="allowlist" placeholder="192.0.2.0/24" aria-describedby="key-allowlist" /></label>
    <${FieldProblem} id="key-allowlist" field="allowlist" errors=${errors} />
    <button>Make a key</button>
    ${made !== null && html`<${Secret} label="The key:" text=${made} />`}
  </form>`;
}
