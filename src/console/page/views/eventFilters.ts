import { signal } from '@preact/signals';
import type { FleetEvent } from '../types.ts';

/** Which events are listed. */
export interface EventFilters {
  /** One of EVENT_TYPES; '': any. */
  readonly type: string;
  /** An IMEI; '': any device. */
  readonly device: string;
  /** Entries and exits of this area; null: of any, and all other events. */
  readonly areaId: number | null;
  readonly fromMs: number | null;
  /** The last minute that is wanted, as its beginning. */
  readonly toMs: number | null;
}

export const NO_EVENT_FILTERS: EventFilters = {
  type: '',
  device: '',
  areaId: null,
  fromMs: null,
  toMs: null,
};

/** The address of the view has them too. */
export const eventFilters = signal<EventFilters>(NO_EVENT_FILTERS);

/** What is asked for, by the `type` that the API takes. */
export const EVENT_TYPES: Readonly<Record<string, string>> = {
  geofence: 'Entries and exits',
  geofence_enter: 'Entries',
  geofence_exit: 'Exits',
  ignition_on: 'Ignition on',
  ignition_off: 'Ignition off',
  parking_start: 'Parking',
  parking_end: 'End of parking',
  tamper_alert: 'Tampering',
  rfid: 'RFID tags',
  alarm: 'Alarms',
};
/** Types that an area has, with what its list calls them. */
const OF_AREAS: Readonly<Record<string, string>> = { geofence_enter: 'entry', geofence_exit: 'exit' };

/** The types that can be asked for beside the other filters. */
export function typesBeside({ areaId }: EventFilters): string[] {
  return Object.keys(EVENT_TYPES).filter((type) => areaId === null || type in OF_AREAS);
}

/** The filters in the address of the page. An empty text means no filter. */
export function eventQuery({ type, device, areaId, fromMs, toMs }: EventFilters): string {
  return queryOf({ type, device, area: areaId, from: isoOf(fromMs), to: isoOf(toMs) });
}

/** What an address asks for; what it cannot mean is left out. */
export function eventFiltersIn(hash: string): EventFilters {
  const at = hash.indexOf('?');
  const query = new URLSearchParams(at === -1 ? '' : hash.slice(at + 1));
  const text = (name: string): string => query.get(name) ?? '';
  const timeOf = (name: string): number | null => {
    const ms = /^\d{4}-/.test(text(name)) ? Date.parse(text(name)) : Number.NaN;
    return Number.isNaN(ms) ? null : ms;
  };
  const others = {
    device: /^\d{1,20}$/.test(text('device')) ? text('device') : '',
    areaId: /^\d{1,15}$/.test(text('area')) ? Number(text('area')) : null,
    fromMs: timeOf('from'),
    toMs: timeOf('to'),
  };
  const types = typesBeside({ ...others, type: '' });
  return { ...others, type: types.includes(text('type')) ? text('type') : '' };
}

const MINUTE_MS = 60_000;
/** Of one page of events. */
export const EVENTS_PAGE = 50;

/** Events that are listed already: as many of this time (ISO 8601), and all that happened later. */
export interface Before {
  readonly at: string;
  readonly held: number;
}

/** The call that has the newest events, or the newest of those that are not listed yet. */
export function eventsPath(
  { type, device, areaId, fromMs, toMs }: EventFilters,
  before: Before | null,
): string {
  const page = {
    device,
    from: isoOf(fromMs),
    to: before?.at ?? isoOf(toMs === null ? null : toMs + MINUTE_MS - 1),
    offset: before?.held ?? null,
    limit: EVENTS_PAGE,
  };
  return areaId === null
    ? `/api/v1/events?${queryOf({ type, ...page })}`
    : `/api/v1/areas/${areaId}/events?${queryOf({ event: OF_AREAS[type] ?? '', ...page })}`;
}

/** Without what is empty. */
function queryOf(parts: Readonly<Record<string, string | number | null>>): string {
  const told = Object.entries(parts).filter(([, value]) => value !== '' && value !== null);
  return String(new URLSearchParams(told.map(([name, value]) => [name, String(value)])));
}

function isoOf(ms: number | null): string {
  return ms === null ? '' : new Date(ms).toISOString();
}

/** Whether an event that happens now is one of those that are listed. */
export function passesEvent(
  { type, device, areaId, fromMs, toMs }: EventFilters,
  event: FleetEvent,
): boolean {
  const atMs = Date.parse(event.occurred_at);
  return (
    (type === '' || type === event.type || type === typeOf(event)) &&
    (device === '' || device === event.device_imei) &&
    (areaId === null || ('areaId' in event.data && event.data.areaId === areaId)) &&
    (fromMs === null || atMs >= fromMs) &&
    (toMs === null || atMs < toMs + MINUTE_MS)
  );
}

/** As the filter calls it. */
export function typeOf({ type, data }: FleetEvent): string {
  return 'areaId' in data ? `geofence_${data.event === 'entry' ? 'enter' : 'exit'}` : type;
}
