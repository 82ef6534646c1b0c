import type { VNode } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { askedEvent, vehicleAddress } from '../address.ts';
import { call, useLoaded } from '../api.ts';
import { Time, timeText } from '../format.ts';
import { Panel } from '../forms.ts';
import { Icon } from '../icons.ts';
import { events, firstEvents, nameOfImei } from '../liveFleet.ts';
import { CallBehind, grouped, html } from '../parts.ts';
import type { AreaEvent, FleetEvent } from '../types.ts';
import { EventBar, useAreas } from './eventBar.ts';
import { type EventFilters, eventFilters, eventQuery, eventsPath, passesEvent } from './eventFilters.ts';
import { EventList, iconOfEvent, LISTED_MAX, type ListedEvent, listedEvent, messageOf } from './eventList.ts';
import { Explained, explainPath } from './explanation.ts';

/** Events as they happen, newest first, and those from before. */
export function Events(): VNode {
  const asked = eventFilters.value;
  const isFiltered = eventQuery(asked) !== '';
  const { list, isBusy, problem, readMore } = useEvents(asked, isFiltered);
  const { listed } = list;
  const [isAreaWanted, setAreaWanted] = useState(false);
  const areas = useAreas(isAreaWanted || asked.areaId !== null);
  const area = areas.find(({ id }) => id === asked.areaId)?.name ?? `area ${asked.areaId}`;
  const first = firstEvents.value;
  const isWaiting = isBusy || (!isFiltered && first.state === 'asked');
  const isMissing =
    askedEvent.value !== null && !isWaiting && !listed.some(({ id }) => id === askedEvent.value);
  return html`
    <${EventBar} areas=${areas} wantAreas=${() => setAreaWanted(true)} />
    ${
      !isFiltered &&
      first.state === 'refused' &&
      html`<p class="error" role="alert">Earlier events could not be read: ${first.message.replace(/\.?$/, '.')} They are asked for again within half a minute.</p>`
    }
    ${listed.length === 0 && isWaiting && html`<p aria-live="polite">Loading…</p>`}
    ${
      listed.length === 0 &&
      list.isComplete &&
      html`<p class="empty" role="status">${
        isFiltered
          ? 'No event fits. Choose another type, vehicle or area, or a longer time.'
          : html`<${Icon} name="events" /> Nothing has happened yet. Entries and exits of areas, ignition, parking and alarms are listed here as they happen.`
      }</p>`
    }
    ${isMissing && html`<p class="empty" role="status">Event ${askedEvent.value} is not among the ${listed.length} that are listed.</p>`}
    ${byDay(listed).map(
      ({ day, happened }) =>
        html`<h3 key=${day}>${day}</h3><ol class="rows happenings">${happened.map((event) => html`<${Row} key=${event.id} event=${event} area=${area} />`)}</ol>`,
    )}
    ${problem !== null && html`<p class="error" role="alert">${problem} <button type="button" onClick=${readMore}>Try again</button></p>`}
    ${
      list.isFull
        ? html`<p class="empty">The newest ${grouped(LISTED_MAX)} are listed. Choose an earlier time to see others.</p>`
        : problem === null &&
          !list.isComplete &&
          listed.length > 0 &&
          html`<button type="button" disabled=${isBusy} onClick=${readMore}>Show earlier</button>`
    }
    <${CallBehind} call=${{ method: 'GET', path: isFiltered ? eventsPath(asked, null) : '/api/v1/stream?include=events' }} />
  `;
}

function Row({ event, area }: { event: ListedEvent; area: string }): VNode {
  const { id, type, imei, at } = event;
  const message = messageOf(event, nameOfImei(imei), area);
  const isAsked = askedEvent.value === id;
  const ask = (asked: number | null): void => {
    askedEvent.value = asked;
  };
  return html`<li class=${type}>
    <${Time} at=${at} isOfDay=${true} />
    <a class="plain" href=${vehicleAddress(imei)}><${Icon} name=${iconOfEvent(type)} /> ${message}</a>
    ${
      type.startsWith('geofence') &&
      html`<button type="button" class="quiet" aria-expanded=${isAsked} aria-label=${`Why: ${message}`}
        onClick=${() => ask(isAsked ? null : id)}><${Icon} name="why" />Why?</button>`
    }
    ${isAsked && html`<${Panel} label=${`Why: ${message}`} close=${() => ask(null)}><${Why} event=${event} /><//>`}
  </li>`;
}

/** Replays an entry or exit; first asks for what the list of an area does not have of it. */
function Why({ event: { id, imei, at, event } }: { event: ListedEvent }): VNode {
  const isWhole = 'occurred_at' in event;
  const path = `/api/v1/events?type=geofence&device=${imei}&from=${at}&to=${at}&limit=200`;
  const { reply, reload } = useLoaded<readonly FleetEvent[]>(isWhole ? null : path);
  const whole = isWhole ? event : reply?.ok ? reply.data.find((one) => one.id === id) : undefined;
  const explained = whole === undefined ? null : explainPath(whole);
  if (whole !== undefined && explained !== null)
    return html`<${Explained} path=${explained} dwellSeconds=${'dwellSeconds' in whole.data ? whole.data.dwellSeconds : 0} />`;
  if (reply === null) return html`<p role="status">Looking at the event…</p>`;
  return html`<p class="error" role="alert">${reply.ok ? 'It is no longer there.' : reply.message} <button type="button" onClick=${reload}>Try again</button></p>`;
}

interface Asking {
  readonly of: EventFilters;
  readonly isBusy: boolean;
  readonly problem: string | null;
}

/** The events that pass: those that happen, and pages of earlier ones. Without filters the newest are here already. */
function useEvents(asked: EventFilters, isFiltered: boolean) {
  const list = useMemo(() => new EventList(), [asked]);
  const [asking, setAsking] = useState<Asking>({ of: asked, isBusy: false, problem: null });
  list.add(events.value.filter((event) => passesEvent(asked, event)).map(listedEvent));
  const first = firstEvents.value;
  const readMore = async (): Promise<void> => {
    setAsking({ of: asked, isBusy: true, problem: null });
    const path = eventsPath(asked, list.before);
    const reply = await call<(FleetEvent | AreaEvent)[]>({ method: 'GET', path });
    if (reply.ok) list.addPage(reply.data.map(listedEvent));
    const done = { of: asked, isBusy: false, problem: reply.ok ? null : reply.message };
    setAsking((now) => (now.of === asked ? done : now));
  };
  useEffect(() => {
    if (!list.isNew || (!isFiltered && first.state !== 'read')) return;
    const page = !isFiltered && first.state === 'read' ? first.page : null;
    const last = page?.at(-1);
    // When more has happened since than the page keeps, what lies between is missing.
    if (page === null || (last !== undefined && !list.has(last.id))) return void readMore();
    list.addPage(page.map(listedEvent));
    setAsking({ of: asked, isBusy: false, problem: null });
  }, [list, isFiltered, first.state]);
  return { list, readMore, ...(asking.of === asked ? asking : { isBusy: isFiltered, problem: null }) };
}

/** By the days of the chosen zone, in the order of the events. */
function byDay(all: readonly ListedEvent[]): { day: string; happened: ListedEvent[] }[] {
  const days: { day: string; happened: ListedEvent[] }[] = [];
  for (const event of all) {
    const day = timeText(Date.parse(event.at), 'day');
    const last = days.at(-1);
    if (last?.day === day) last.happened.push(event);
    else days.push({ day, happened: [event] });
  }
  return days;
}
