import { batch, effect, signal } from '@preact/signals';
import { clearFilters, filters, filtersIn, hashOf } from './filters.ts';
import {
  askedDay,
  askedPresence,
  choose,
  chosen,
  chosenArea,
  comparedWith,
  seek,
  seekArea,
  type TimeSpan,
} from './map/mapState.ts';
import { eventFilters, eventFiltersIn, eventQuery, NO_EVENT_FILTERS } from './views/eventFilters.ts';

// The address of the page says what is shown: a view, what is chosen in it, and the filters. A link to it shows the same.

export const VIEW_NAMES = ['Map', 'Devices', 'Areas', 'Events', 'Settings'] as const;
export type ViewName = (typeof VIEW_NAMES)[number];

export const shownView = signal<ViewName>('Map');
/** The id of the event that is explained, or null. */
export const askedEvent = signal<number | null>(null);

interface Place {
  readonly view: ViewName;
  readonly imei: string | null;
  /** YYYY-MM-DD. */
  readonly day: string | null;
  /** The IMEI of a vehicle whose same day is shown beside it. */
  readonly other: string | null;
  readonly areaId: number | null;
  readonly eventId: number | null;
}

const IMEI = /^\d{1,20}$/;

/** `#map`, `#map/IMEI`, `#map/IMEI/DAY`, `#map/IMEI/DAY/IMEI`, `#area/ID`, `#event/ID`, `#devices` …; the map for any other. */
export function placeIn(hash: string): Place {
  const [path = ''] = hash.slice(1).split('?', 1);
  const [name = '', id = '', date = '', compared = ''] = path.split('/');
  const nothing = { imei: null, day: null, other: null, areaId: null, eventId: null };
  const number = /^\d{1,15}$/.test(id) ? Number(id) : null;
  if (name === 'area' && number !== null) return { ...nothing, view: 'Areas', areaId: number };
  if (name === 'event' && number !== null) return { ...nothing, view: 'Events', eventId: number };
  const view = VIEW_NAMES.find((one) => one.toLowerCase() === name) ?? 'Map';
  if (name !== 'map' || !IMEI.test(id)) return { ...nothing, view };
  const day = /^\d{4}-[01]\d-[0-3]\d$/.test(date) ? date : null;
  const other = day !== null && IMEI.test(compared) && compared !== id ? compared : null;
  return { ...nothing, view, imei: id, day, other };
}

/** Of a view, with what is chosen in it and the present filters. */
export function addressOf(view: ViewName): string {
  const address = `#${hashOf(pathOf(view), filters.value)}`;
  const own = queryOf(view);
  return own === '' ? address : `${address}${address.includes('?') ? '&' : '?'}${own}`;
}

/** Of a vehicle on the map, or of a day of it (YYYY-MM-DD). */
export function vehicleAddress(imei: string, date: string | null = null): string {
  return `#${hashOf(date === null ? `map/${imei}` : `map/${imei}/${date}`, filters.value)}`;
}

export function areaAddress(id: number): string {
  return `#${hashOf(`area/${id}`, filters.value)}`;
}

/** What only this view has. */
function queryOf(view: ViewName): string {
  if (view === 'Events') return eventQuery(eventFilters.value);
  const span = view === 'Areas' && chosenArea.value !== null ? askedPresence.value : null;
  return span === null ? '' : eventQuery({ ...NO_EVENT_FILTERS, ...span });
}

function pathOf(view: ViewName): string {
  if (view === 'Map' && chosen.value !== null)
    return ['map', chosen.value, askedDay.value, comparedWith.value]
      .filter((part) => part !== null)
      .join('/');
  if (view === 'Areas' && chosenArea.value !== null) return `area/${chosenArea.value}`;
  if (view === 'Events' && askedEvent.value !== null) return `event/${askedEvent.value}`;
  return view.toLowerCase();
}

/** What one person has chosen is not the next person's. */
export function forgetChoices(): void {
  batch(() => {
    clearFilters();
    choose(null);
    seekArea(null);
    askedPresence.value = null;
    askedEvent.value = null;
    eventFilters.value = NO_EVENT_FILTERS;
  });
}

/** Browsers refuse more than some changes of the address a second. */
const WRITTEN_AFTER_MS = 300;

/** Shows what the address says, now and when it changes, and writes what is shown into it. */
export function followAddress(): void {
  /** The address that was read or written last. */
  let known = location.hash;
  show(known);
  addEventListener('hashchange', () => {
    known = location.hash;
    show(known);
  });
  effect(() => {
    const address = addressOf(shownView.value);
    const timer = setTimeout(() => {
      // Another one has been opened, which is read when its event comes.
      if (location.hash !== known || (known === '' && address === '#map')) return;
      history.replaceState(null, '', address);
      known = location.hash;
    }, WRITTEN_AFTER_MS);
    return () => clearTimeout(timer);
  });
}

function show(hash: string): void {
  const { view, imei, day, other, areaId, eventId } = placeIn(hash);
  const shown = filtersIn(hash);
  batch(() => {
    shownView.value = view;
    if (hashOf('', shown) !== hashOf('', filters.peek())) filters.value = shown;
    if (view === 'Map' && imei === null) choose(null);
    if (imei !== null && imei !== chosen.peek()) seek(imei);
    if (imei !== null) {
      askedDay.value = day;
      comparedWith.value = other;
    }
    if (view === 'Areas') {
      if (areaId !== chosenArea.peek()) seekArea(areaId);
      askedPresence.value = spanIn(hash);
    }
    if (view !== 'Events') return;
    askedEvent.value = eventId;
    const asked = eventFiltersIn(hash);
    if (eventQuery(asked) !== eventQuery(eventFilters.peek())) eventFilters.value = asked;
  });
}

/** The time that an address names with `from` and `to`; null: it names none. */
export function spanIn(hash: string): TimeSpan | null {
  const { fromMs, toMs } = eventFiltersIn(hash);
  return fromMs === null || toMs === null ? null : { fromMs, toMs };
}
