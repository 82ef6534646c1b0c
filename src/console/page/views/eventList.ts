import type { IconName } from '../icons.ts';
import type { AreaEvent, FleetEvent } from '../types.ts';
import { type Before, EVENTS_PAGE, typeOf } from './eventFilters.ts';

/** One line of the list. */
export interface ListedEvent {
  readonly id: number;
  /** As the filter calls it. */
  readonly type: string;
  readonly imei: string;
  /** ISO 8601. */
  readonly at: string;
  /** The list of an area has less of it. */
  readonly event: FleetEvent | AreaEvent;
}

export function listedEvent(event: FleetEvent | AreaEvent): ListedEvent {
  if ('occurred_at' in event) {
    const { id, device_imei: imei, occurred_at: at } = event;
    return { id, type: typeOf(event), imei, at, event };
  }
  const { id, device: imei, timestamp: at } = event;
  return { id, type: event.event === 'entry' ? 'geofence_enter' : 'geofence_exit', imei, at, event };
}

/** A sentence. `device` and `area`: what people call them. */
export function messageOf({ event }: ListedEvent, device: string, area: string): string {
  if ('message' in event) return event.message;
  return `${device} ${event.event === 'entry' ? 'entered' : 'left'} ${area}`;
}

const ICON_OF: Readonly<Record<string, IconName>> = {
  geofence_enter: 'enter',
  geofence_exit: 'leave',
  ignition_on: 'ignition',
  ignition_off: 'ignition',
  parking_start: 'park',
  parking_end: 'drive',
  tamper_alert: 'tamper',
  rfid: 'tag',
  alarm: 'alarm',
};

export function iconOfEvent(type: string): IconName {
  return ICON_OF[type] ?? 'events';
}

/** More lines than people read; other filters lead further back. */
export const LISTED_MAX = 1_000;

/** Events by when they happened, newest first: pages of earlier ones, and those that happen now, which may be told late. */
export class EventList {
  readonly #byId = new Map<number, ListedEvent>();
  /** The last of the pages; null: the newest ones have not been read. */
  #last: ListedEvent | null = null;
  /** True when the oldest event has been read. */
  isComplete = false;

  get listed(): readonly ListedEvent[] {
    return [...this.#byId.values()].sort(newestFirst).slice(0, LISTED_MAX);
  }

  get isFull(): boolean {
    return this.#byId.size >= LISTED_MAX;
  }

  /** Whether no page has been read. */
  get isNew(): boolean {
    return this.#last === null && !this.isComplete;
  }

  has(id: number): boolean {
    return this.#byId.has(id);
  }

  add(events: readonly ListedEvent[]): void {
    for (const event of events) this.#byId.set(event.id, event);
    if (this.#byId.size <= 2 * LISTED_MAX) return;
    const kept = this.listed;
    this.#byId.clear();
    this.add(kept);
  }

  /** The next page, which was asked for with `before`. */
  addPage(page: readonly ListedEvent[]): void {
    this.add(page);
    this.#last = page.at(-1) ?? this.#last;
    this.isComplete = page.length < EVENTS_PAGE;
  }

  /** Where the next page begins. */
  get before(): Before | null {
    if (this.#last === null) return null;
    const { at } = this.#last;
    const held = [...this.#byId.values()].filter((event) => event.at === at).length;
    return { at, held };
  }
}

/** In the order of the API. */
function newestFirst(a: ListedEvent, b: ListedEvent): number {
  return Date.parse(b.at) - Date.parse(a.at) || b.id - a.id;
}
