import { signal } from '@preact/signals';
import { fitting, type KnownDevice } from './fleet.ts';

export type Status = KnownDevice['status'];
export const STATUSES = ['moving', 'parked', 'offline', 'unknown'] as const satisfies readonly Status[];

/** How many devices have each status. */
export type StatusCounts = Readonly<Record<Status, number>>;

/** Which devices are shown. */
export interface Filters {
  /** Those of these statuses; none: of any. */
  readonly statuses: readonly Status[];
  /** Names, separated by commas, of which a device has one at least; '': whatever its groups. */
  readonly group: string;
  /** A part of name, plate or IMEI; '': any. */
  readonly text: string;
}

const NONE: Filters = { statuses: [], group: '', text: '' };

/** All views share them. The address of the page has them too, so a link or a reload keeps them. */
export const filters = signal<Filters>(filtersIn(globalThis.location?.hash ?? ''));

export function changeFilters(change: Partial<Filters>): void {
  filters.value = { ...filters.peek(), ...change };
}

export function clearFilters(): void {
  filters.value = NONE;
}

/** The fragment of the address (what follows #) of a view with these filters. */
export function hashOf(view: string, { statuses, group, text }: Filters): string {
  const query = new URLSearchParams();
  if (statuses.length > 0) query.set('status', statuses.join());
  if (group !== '') query.set('group', group);
  if (text !== '') query.set('q', text);
  return query.size === 0 ? view : `${view}?${query}`;
}

export function filtersIn(hash: string): Filters {
  const at = hash.indexOf('?');
  if (at === -1) return NONE;
  const query = new URLSearchParams(hash.slice(at + 1));
  const named = query.get('status')?.split(',') ?? [];
  return {
    statuses: STATUSES.filter((status) => named.includes(status)),
    group: query.get('group') ?? '',
    text: query.get('q') ?? '',
  };
}

/** The filters that the routes of many devices know, as a query; '': none. */
export function filterQuery({ statuses, group }: Filters): string {
  const query = new URLSearchParams();
  if (statuses.length > 0) query.set('status', statuses.join());
  const names = namesIn(group);
  if (names.length > 0) query.set('group', names.join());
  return String(query);
}

function namesIn(group: string): string[] {
  return group
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** Whether a device passes all filters but that of its status. */
export function passesBesideStatus({ group, text }: Filters): (device: KnownDevice) => boolean {
  const names = namesIn(group);
  const fits = fitting(text);
  return (device) =>
    (names.length === 0 || names.some((name) => device.groups.includes(name))) && fits(device);
}

export function hasStatus({ statuses }: Filters, { status }: KnownDevice): boolean {
  return statuses.length === 0 || statuses.includes(status);
}

/** Those that pass, in their order; the same list where nothing is filtered. */
export function passing(asked: Filters, devices: readonly KnownDevice[]): readonly KnownDevice[] {
  if (hashOf('', asked) === '') return devices;
  const passes = passesBesideStatus(asked);
  return devices.filter((device) => hasStatus(asked, device) && passes(device));
}
