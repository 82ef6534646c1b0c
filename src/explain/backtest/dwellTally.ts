import type { GeofenceEvent } from '../../events/fleetEvent.ts';

/** An event as a replay produces it. */
export interface ReplayedEvent {
  readonly imei: string;
  readonly direction: GeofenceEvent['direction'];
  readonly lat: number;
  readonly lng: number;
  readonly occurredAtMs: number;
}

/** The earliest events of a replay are listed, up to this number; all are counted. */
export const LISTED_EVENTS_MAX = 1_000;

/** What a replay found for one minimum stay. */
export class DwellTally {
  readonly dwellSeconds: number;
  entries = 0;
  exits = 0;
  /** With a confirmed stay. */
  devices = 0;
  insideMs = 0;
  /** Events that are recorded as well. */
  same = 0;
  #listed: ReplayedEvent[] = [];
  /** Events after this time are not among the first. */
  #lastMs = Number.POSITIVE_INFINITY;

  constructor(dwellSeconds: number) {
    this.dwellSeconds = dwellSeconds;
  }

  add(event: ReplayedEvent): void {
    if (event.direction === 'entry') this.entries++;
    else this.exits++;
    if (event.occurredAtMs > this.#lastMs) return;
    this.#listed.push(event);
    if (this.#listed.length >= 2 * LISTED_EVENTS_MAX) this.#cut();
  }

  /** The first events by time, then by IMEI. */
  get listed(): readonly ReplayedEvent[] {
    this.#cut();
    return this.#listed;
  }

  #cut(): void {
    this.#listed.sort((a, b) => a.occurredAtMs - b.occurredAtMs || (a.imei < b.imei ? -1 : 1));
    if (this.#listed.length < LISTED_EVENTS_MAX) return;
    this.#listed.length = LISTED_EVENTS_MAX;
    this.#lastMs = this.#listed[LISTED_EVENTS_MAX - 1]?.occurredAtMs ?? this.#lastMs;
  }
}
