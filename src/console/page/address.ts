import { batch, effect, signal } from '@preact/signals';
import { clearFilters, filters, filtersIn, hashOf } from './filters.ts';
import { askedDay, choose, chosen, chosenArea, comparedWith, seek } from './map/mapState.ts';

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
  return `#${hashOf(pathOf(view), filters.value)}`;
}

/** Of a vehicle on the map. */
export function vehicleAddress(imei: string): string {
  return `#${hashOf(`map/${imei}`, filters.value)}`;
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
    chosenArea.value = null;
    askedEvent.value = null;
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
  const asked = filtersIn(hash);
  batch(() => {
    shownView.value = view;
    if (hashOf('', asked) !== hashOf('', filters.peek())) filters.value = asked;
    if (view === 'Map' && imei === null) choose(null);
    if (imei !== null && imei !== chosen.peek()) seek(imei);
    if (imei !== null) {
      askedDay.value = day;
      comparedWith.value = other;
    }
    if (view === 'Areas') chosenArea.value = areaId;
    if (view === 'Events') askedEvent.value = eventId;
  });
}
