import type { Shape } from '../../areas/shape.ts';
import type { Stay } from '../../devices/stays/packedStays.ts';
import type { GeofenceEvent } from '../../events/fleetEvent.ts';
import type { IndexBox } from '../../geo/measure.ts';
import type { PointColumns } from '../../history/codec/pointColumns.ts';
import { stepStay } from '../../ingest/geofences.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';

/** Points column by column. `lates`: 1 late, NaN not recorded. */
export type EvaluatedColumns = Pick<PointColumns, 'count' | 'recordedAtMs' | 'lats' | 'lngs' | 'lates'>;

/** Recorded events of one device and one area, by eventKey. */
export type RecordedEvents = ReadonlySet<number>;

/** A number for an event. One point produces at most one event of one device and one area. */
export function eventKey(direction: 'entry' | 'exit', occurredAtMs: number): number {
  return 2 * occurredAtMs + (direction === 'entry' ? 0 : 1);
}

/** Points outside the box of the area between two pauses: a tenth of a millisecond. */
const POINTS_PER_STEP = 4_096;

/**
 * Replays stored points of devices against one area, for several minimum stays at once, by the step that also decides
 * on new points (stepStay). Points before `fromMs` only show who was inside already. For each device: `begin`, its
 * points in the order of their times by one or more `take`, then `end`.
 */
export class AreaReplay {
  readonly tallies: readonly DwellTally[];
  readonly #shape: Pick<Shape, 'contains'>;
  readonly #boxes: readonly IndexBox[];
  readonly #fromMs: number;
  /** Points in the window, without those that came late. */
  points = 0;
  /** Some points do not say whether they came late; they were replayed. */
  hasUnmarked = false;
  readonly #pace = new Pace();
  #untilPause = POINTS_PER_STEP;
  #imei = '';
  #isInside = false;
  #lastMs = Number.NEGATIVE_INFINITY;

  /** `dwellSeconds`: each value once. */
  constructor(shape: Pick<Shape, 'contains' | 'boxes'>, dwellSeconds: readonly number[], fromMs: number) {
    this.#shape = shape;
    this.#boxes = shape.boxes();
    this.#fromMs = fromMs;
    this.tallies = dwellSeconds.map((each) => new DwellTally(each));
  }

  begin(imei: string): void {
    this.#imei = imei;
    this.#isInside = false;
    this.#lastMs = Number.NEGATIVE_INFINITY;
    for (const tally of this.tallies) {
      tally.stay = null;
      tally.isVisitor = false;
    }
  }

  /** The next points, and the events that they produced when they came. Late points were not evaluated, and are left out. */
  *take({ count, recordedAtMs, lats, lngs, lates }: EvaluatedColumns, recorded: RecordedEvents): Steps<void> {
    this.#pace.begin();
    for (let n = 0; n < count; n++) {
      const late = lates[n]!;
      if (late === 1) continue;
      if (late !== 0) this.hasUnmarked = true;
      const atMs = recordedAtMs[n]!;
      this.#lastMs = atMs;
      const lat = lats[n]!;
      const lng = lngs[n]!;
      const isNear = this.#isNear(lat, lng);
      if (isNear || this.#isInside) {
        const isInside = isNear && this.#shape.contains(lat, lng);
        if (isInside || this.#isInside) this.#step(isInside, atMs, lat, lng, recorded);
        this.#isInside = isInside;
        if (this.#pace.isDue()) yield* this.#pace.pause();
      }
      if (atMs >= this.#fromMs) this.points++;
      if (--this.#untilPause <= 0) {
        this.#untilPause = POINTS_PER_STEP;
        yield* this.#pace.pause();
      }
    }
  }

  /** A stay that is not over counts up to the last point. */
  end(): void {
    if (!this.#isInside || this.#lastMs < this.#fromMs) return;
    for (const tally of this.tallies)
      if (tally.stay !== null && tally.stay.confirmedAtMs !== null)
        this.#count(tally, tally.stay, this.#lastMs);
  }

  #isNear(lat: number, lng: number): boolean {
    for (const { minX, minY, maxX, maxY } of this.#boxes) {
      if (lat >= minY && lat <= maxY && lng >= minX && lng <= maxX) return true;
    }
    return false;
  }

  #step(isInside: boolean, atMs: number, lat: number, lng: number, recorded: RecordedEvents): void {
    for (const tally of this.tallies) {
      const before = tally.stay;
      const { stay, transition } = stepStay(before, tally, isInside, atMs);
      tally.stay = stay;
      if (transition === null || atMs < this.#fromMs) continue;
      tally.add({ imei: this.#imei, direction: transition, lat, lng, occurredAtMs: atMs });
      if (recorded.has(eventKey(transition, atMs))) tally.same++;
      if (transition === 'exit' && before !== null) this.#count(tally, before, atMs);
    }
  }

  #count(tally: DwellTally, stay: Stay, untilMs: number): void {
    tally.insideMs += untilMs - Math.max(stay.insideSinceMs, this.#fromMs);
    if (!tally.isVisitor) tally.devices++;
    tally.isVisitor = true;
  }
}

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

/** What a replay found for one minimum stay. To stepStay it is an area. */
export class DwellTally {
  readonly id = 0;
  readonly dwellSeconds: number;
  readonly definition: { readonly dwellSeconds: number };
  /** Of the device that is replayed now, and whether it counts as one with a confirmed stay already. */
  stay: Stay | null = null;
  isVisitor = false;
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
    this.definition = { dwellSeconds };
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
