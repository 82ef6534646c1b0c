import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { explainPath } from '../explainPath.ts';
import { html } from '../html.ts';
import { events } from '../liveFleet.ts';
import { useLoaded } from '../loaded.ts';
import type { Explanation, FleetEvent } from '../types.ts';
import { Curl, Time } from './parts.ts';

/** Events as they happen, newest first. */
export function Events(): VNode {
  const [asked, setAsked] = useState<number | null>(null);
  const all = events.value;
  const row = (event: FleetEvent): VNode => {
    const path = explainPath(event);
    const isAsked = asked === event.id;
    return html`<li key=${event.id}>
      <${Time} at=${event.occurred_at} /> ${event.message} <small>${event.type}</small>
      ${
        path !== null &&
        html`<button type="button" aria-expanded=${isAsked} aria-label=${`Why: ${event.message}`}
          onClick=${() => setAsked(isAsked ? null : event.id)}>Why?</button>`
      }
      ${isAsked && path !== null && html`<${Why} path=${path} />`}
    </li>`;
  };
  return html`
    ${
      all.length === 0
        ? html`<p class="empty">Nothing has happened yet. Entries and exits of areas, ignition, parking and alarms are listed here as they happen.</p>`
        : html`<ol class="rows">${all.map(row)}</ol>`
    }
    <${Curl} call=${{ method: 'GET', path: '/api/v1/stream?include=events' }} />
  `;
}

function Why({ path }: { path: string }): VNode {
  const { reply, reload } = useLoaded<Explanation>(path);
  if (reply === null) return html`<p>Looking at the points…</p>`;
  if (!reply.ok)
    return html`<p class="error">${reply.message} <button type="button" onClick=${reload}>Try again</button></p>`;
  const { message, visits, notes } = reply.data;
  return html`<div class="why" role="status">
    <p>${message}</p>
    <ul>${visits.map(
      (
        visit,
      ) => html`<li>inside from <${Time} at=${visit.first_inside_at} /> to <${Time} at=${visit.last_inside_at} />:
        ${visit.points} points, ${visit.seconds} s, ${visit.outcome.replaceAll('_', ' ')}</li>`,
    )}</ul>
    <ul>${notes.map(({ message: note }) => html`<li>${note}</li>`)}</ul>
    <${Curl} call=${{ method: 'GET', path }} />
  </div>`;
}
