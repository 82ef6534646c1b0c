import type { VNode } from 'preact';
import { askedEvent, vehicleAddress } from '../address.ts';
import { Time } from '../format.ts';
import { Panel } from '../forms.ts';
import { Icon } from '../icons.ts';
import { events, firstEvents } from '../liveFleet.ts';
import { CallBehind, html } from '../parts.ts';
import type { FleetEvent } from '../types.ts';
import { Explained, explainPath } from './explanation.ts';

/** Events as they happen, newest first. */
export function Events(): VNode {
  const asked = askedEvent.value;
  const setAsked = (id: number | null): void => {
    askedEvent.value = id;
  };
  const all = events.value;
  const row = (event: FleetEvent): VNode => {
    const path = explainPath(event);
    const isAsked = asked === event.id;
    return html`<li key=${event.id}>
      <${Time} at=${event.occurred_at} isOfDay=${true} />
      <span><a class="plain" href=${vehicleAddress(event.device_imei)}>${event.message}</a> <small>${event.type}</small></span>
      ${
        path !== null &&
        html`<button type="button" class="quiet" aria-expanded=${isAsked} aria-label=${`Why: ${event.message}`}
          onClick=${() => setAsked(isAsked ? null : event.id)}><${Icon} name="why" />Why?</button>`
      }
      ${
        isAsked &&
        path !== null &&
        html`<${Panel} label=${`Why: ${event.message}`} close=${() => setAsked(null)}>
          <${Explained} path=${path} dwellSeconds=${'dwellSeconds' in event.data ? event.data.dwellSeconds : 0} />
        <//>`
      }
    </li>`;
  };
  const first = firstEvents.value;
  return html`
    ${
      first.state === 'refused' &&
      html`<p class="error" role="alert">Earlier events could not be read: ${first.message.replace(/\.?$/, '.')} They are asked for again within half a minute.</p>`
    }
    ${all.length === 0 && first.state === 'asked' && html`<p aria-live="polite">Loading…</p>`}
    ${
      all.length === 0 &&
      first.state === 'read' &&
      html`<p class="empty">Nothing has happened yet. Entries and exits of areas, ignition, parking and alarms are listed here as they happen.</p>`
    }
    ${asked !== null && first.state === 'read' && !all.some(({ id }) => id === asked) && html`<p class="empty" role="status">Event ${asked} is not among the last ${all.length}, which are listed.</p>`}
    ${byDay(all).map(
      ({ day, happened }) =>
        html`<h3 key=${day}>${day}</h3><ol class="rows happenings">${happened.map(row)}</ol>`,
    )}
    <${CallBehind} call=${{ method: 'GET', path: '/api/v1/stream?include=events' }} />
  `;
}

/** By the days of this place, in the order of the events. */
function byDay(all: readonly FleetEvent[]): { day: string; happened: FleetEvent[] }[] {
  const days: { day: string; happened: FleetEvent[] }[] = [];
  for (const event of all) {
    const day = new Date(event.occurred_at).toLocaleDateString(undefined, { dateStyle: 'full' });
    const last = days.at(-1);
    if (last?.day === day) last.happened.push(event);
    else days.push({ day, happened: [event] });
  }
  return days;
}
