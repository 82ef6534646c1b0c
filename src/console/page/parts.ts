import type { ComponentChildren, VNode } from 'preact';
import type { Reply } from './api.ts';
import { type ApiCall, curlOf } from './curl.ts';
import { html } from './html.ts';

/** The call behind a view, to be pasted into a shell. */
export function Curl({ call }: { call: ApiCall }): VNode {
  return html`<details class="curl">
    <summary>As curl</summary>
    <pre tabindex="0">${curlOf(location.origin, call)}</pre>
    <p>SESSION is the token that POST /api/v1/session answers. With an API key, send X-API-Key to /api/v3 instead.</p>
  </details>`;
}

/** A list that was asked for: waiting, failed, empty, or there. */
export function List<T>(props: {
  reply: Reply<readonly T[]> | null;
  empty: ComponentChildren;
  reload: () => void;
  show: (items: readonly T[]) => VNode;
}): VNode {
  const { reply, empty, reload, show } = props;
  if (reply === null) return html`<p aria-live="polite">Loading…</p>`;
  if (!reply.ok)
    return html`<p class="error" role="alert">${reply.message} <button type="button" onClick=${reload}>Try again</button></p>`;
  return reply.data.length === 0 ? html`<p class="empty">${empty}</p>` : show(reply.data);
}

export function Time({ at }: { at: string }): VNode {
  return html`<time datetime=${at}>${new Date(at).toLocaleString()}</time>`;
}

/** Something that is shown this one time, and below it how it is used. */
export function Secret({ label, text, use }: { label: string; text: string; use?: string }): VNode {
  return html`<div class="secret" role="status">${label} <code>${text}</code> Copy it now: it is not shown again.
    ${use !== undefined && html`<pre tabindex="0" aria-label="How it is used">${use}</pre>`}
  </div>`;
}
