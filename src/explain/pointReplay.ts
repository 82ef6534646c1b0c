import type { Stay } from '../devices/stays/packedStays.ts';
import { distanceM } from '../geo/wgs84.ts';
import type { PointColumns } from '../history/codec/pointColumns.ts';
import type { ARRIVAL } from '../history/points.sql.ts';
import { stepStay } from '../ingest/geofences.ts';
import { MINUTE_MS } from '../lib/time.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';
import { crosses, mayCross } from './areaCrossing.ts';
import { type Decision, type RecordedEvent, ReplayFindings, StepLog, VisitLog } from './replayFindings.ts';
import { indexAt, type PastShape, type WatchPeriod } from './watchPeriods.ts';

type ReplayedColumns = Pick<PointColumns, 'count' | (typeof ARRIVAL)[number]>;

/** A change that was committed so near to a point may have held for it, or not. */
const UNCERTAIN_MS = MINUTE_MS;
/** Bounds of distances, which add up only to 0.34 %. */
const SHORTEST = 0.99;
const LONGEST = 1.01;

/** A point as it is evaluated. */
interface Point {
  readonly atMs: number;
  readonly lat: number;
  readonly lng: number;
  /** NaN: not recorded. */
  readonly receivedAtMs: number;
  /** Null: not recorded. */
  readonly late: boolean | null;
}

/** A point against one period. */
interface Evaluated {
  readonly index: number;
  /** At most this, where it is certain to be outside and far; else exact. */
  readonly distanceM: number;
  readonly stay: Stay | null;
  readonly transition: 'entry' | 'exit' | null;
  /** False: the point is passed over, and nothing of the state changes. */
  readonly counts: boolean;
}

/** The last evaluated point. */
interface Before extends Point {
  readonly distanceM: number;
  readonly shape: PastShape;
}

interface ReplayOptions {
  readonly areaId: number;
  readonly periods: readonly WatchPeriod[];
  /** Points before it only show who was inside. */
  readonly fromMs: number;
  /** Known before the first point. */
  readonly stay: Stay | null;
  /** Between which points stays of the device did not begin for want of room; null: none is known. */
  readonly refused: { readonly fromMs: number; readonly untilMs: number } | null;
  readonly withSteps: boolean;
}

/**
 * Replays the stored points of one device against one area as it was when they came, by the step that also decided on
 * them (stepStay), and notes what it decides. What was recorded counts: where the replay has something else, the state
 * continues from the record. That happens where the past is not known exactly (see `unexplained`).
 */
export class PointReplay {
  readonly log: VisitLog;
  readonly steps: StepLog | null;
  readonly findings = new ReplayFindings();
  readonly #options: ReplayOptions;
  readonly #pace = new Pace();
  readonly #recorded: RecordedEvent[] = [];
  #stay: Stay | null;
  #nextRecorded = 0;
  #before: Before | null = null;

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#stay = options.stay;
    this.log = new VisitLog(options.fromMs);
    if (options.stay !== null) {
      const { confirmedAtMs, insideSinceMs } = options.stay;
      this.log.inside(options.stay, confirmedAtMs ?? insideSinceMs, null, 0);
    }
    this.steps = options.withSteps ? new StepLog() : null;
  }

  /** Adds what is recorded of the points that are taken next, by time. */
  expect(recorded: readonly RecordedEvent[]): void {
    for (const event of recorded) this.#recorded.push(event);
  }

  /** The next points, in the order of their times. NaN as lateness or time of receipt: not recorded. */
  *take(points: ReplayedColumns): Steps<void> {
    const { count, recordedAtMs, lats, lngs, receivedAtMs, lates } = points;
    this.#pace.begin();
    for (let n = 0; n < count; n++) {
      const late = lates[n]!;
      const point: Point = {
        atMs: recordedAtMs[n]!,
        lat: lats[n]!,
        lng: lngs[n]!,
        receivedAtMs: receivedAtMs[n]!,
        late: Number.isNaN(late) ? null : late === 1,
      };
      const isMarked = point.late !== null && !Number.isNaN(point.receivedAtMs);
      if (this.#isInWindow(point.atMs)) this.findings.arrive(point.atMs, isMarked);
      this.#applyRecordedBefore(point.atMs);
      if (point.late === true) this.#passOver(point);
      else yield* this.#evaluate(point);
      if (this.#pace.isDue()) yield* this.#pace.pause();
    }
  }

  end(): void {
    this.#applyRecordedBefore(Number.POSITIVE_INFINITY);
    this.log.end();
  }

  #isInWindow(atMs: number): boolean {
    return atMs >= this.#options.fromMs;
  }

  #periodOf({ receivedAtMs, atMs }: Point): number {
    return indexAt(this.#options.periods, Number.isNaN(receivedAtMs) ? atMs : receivedAtMs);
  }

  /** A late point: stored, and nothing else. */
  #passOver(point: Point): void {
    if (!this.#isInWindow(point.atMs)) return;
    const period = this.#options.periods[this.#periodOf(point)] as WatchPeriod;
    const metres = period.shape.compiled().signedDistanceM(point.lat, point.lng);
    this.findings.passOver(point.atMs, metres);
    this.#addStep(point, metres, 'late');
  }

  *#evaluate(point: Point): Steps<void> {
    const { periods } = this.#options;
    const before = this.#stay;
    const next = this.#recorded[this.#nextRecorded];
    const event = next?.occurredAtMs === point.atMs ? next : null;
    if (event !== null) this.#nextRecorded++;
    const wayM =
      this.#before === null ? 0 : distanceM(this.#before.lat, this.#before.lng, point.lat, point.lng);
    const evaluated = yield* this.#explained(point, event, wayM);
    const { index, stay, counts } = evaluated;
    const period = periods[index] as WatchPeriod;
    this.#stay = stay;

    if (event !== null && stay === null) this.log.record(event);
    if (stay === null) this.log.close(point.atMs);
    else if (counts) this.log.inside(stay, point.atMs, -evaluated.distanceM, period.dwellSeconds);
    if (event !== null && stay !== null) this.log.record(event);

    if (this.#isInWindow(point.atMs)) {
      this.findings.evaluate(point.atMs, evaluated.distanceM, index, period);
      const decision = counts ? decisionOf(period, before, stay, event) : 'late';
      this.#addStep(point, evaluated.distanceM, decision);
      yield* this.#lookBetween(point, evaluated, wayM);
    }
    this.#before = { ...point, distanceM: evaluated.distanceM, shape: period.shape };
  }

  /** The point against what was in force, or might have been, so that it produces what is recorded. */
  *#explained(point: Point, event: RecordedEvent | null, wayM: number): Steps<Evaluated> {
    const expected = event?.direction ?? null;
    const index = this.#periodOf(point);
    const first = this.#against(index, point, wayM);
    if (first.transition === expected) return first;
    // A late point of which nobody knows that it was late.
    if (point.late === null && event === null) return { ...first, stay: this.#stay, counts: false };
    if (event === null && this.#isRefused(point.atMs, first.stay)) {
      if (this.#isInWindow(point.atMs)) this.findings.refused.add(point.atMs);
      return { ...first, stay: this.#stayAfter(null, first.stay) };
    }
    for (const other of this.#possible(index, point)) {
      const evaluated = this.#against(other, point, wayM);
      if (evaluated.transition === expected) return evaluated;
      if (this.#pace.isDue()) yield* this.#pace.pause();
    }
    if (this.#isInWindow(point.atMs)) this.findings.unexplained.add(point.atMs);
    return { ...first, stay: this.#stayAfter(event, first.stay) };
  }

  /** Other periods that may have been in force when the point came. */
  *#possible(index: number, { receivedAtMs }: Point): Generator<number, void, undefined> {
    const { periods } = this.#options;
    const isNear = (n: number) =>
      Number.isNaN(receivedAtMs) ||
      Math.abs((periods[n] as WatchPeriod).sinceMs - receivedAtMs) <= UNCERTAIN_MS;
    for (let n = index; n > 0 && isNear(n); n--) yield n - 1;
    for (let n = index + 1; n < periods.length && isNear(n); n++) yield n;
  }

  #against(index: number, point: Point, wayM: number): Evaluated {
    const period = this.#options.periods[index] as WatchPeriod;
    const metres = this.#distance(period, point, wayM);
    if (period.state !== 'watched')
      return { index, distanceM: metres, stay: null, transition: null, counts: true };
    const area = { id: this.#options.areaId, definition: period };
    const { stay, transition } = stepStay(this.#stay, area, metres <= 0, point.atMs);
    return { index, distanceM: metres, stay, transition, counts: true };
  }

  /** Exact, unless the device cannot have come so near that it matters. */
  #distance({ shape, state }: WatchPeriod, { lat, lng, atMs }: Point, wayM: number): number {
    const before = this.#before;
    if (before?.shape === shape && this.steps === null) {
      const leastM = before.distanceM * SHORTEST - wayM * LONGEST - 1;
      const mayBeClosest = this.#isInWindow(atMs) && state === 'watched';
      const nearestM = mayBeClosest ? (this.findings.closest?.distanceM ?? Number.POSITIVE_INFINITY) : 0;
      if (leastM > Math.max(0, nearestM)) return leastM;
    }
    return shape.compiled().signedDistanceM(lat, lng);
  }

  /** Whether an entry was not made because its stay could not begin when the device came. */
  #isRefused(atMs: number, evaluated: Stay | null): boolean {
    const { refused } = this.#options;
    if (refused === null || evaluated === null) return false;
    return evaluated.insideSinceMs <= refused.untilMs && atMs >= refused.fromMs;
  }

  /** The state after a point whose evaluation is not what is recorded. */
  #stayAfter(event: RecordedEvent | null, evaluated: Stay | null): Stay | null {
    const { areaId } = this.#options;
    if (event?.direction === 'entry') {
      return { areaId, insideSinceMs: event.enteredAtMs, confirmedAtMs: event.occurredAtMs };
    }
    // An entry that is not recorded was not made.
    return event === null && evaluated !== null ? { ...evaluated, confirmedAtMs: null } : null;
  }

  /** Recorded events whose points are not stored. */
  #applyRecordedBefore(atMs: number): void {
    for (;;) {
      const event = this.#recorded[this.#nextRecorded];
      if (event === undefined || event.occurredAtMs >= atMs) return;
      this.#nextRecorded++;
      this.findings.unexplained.add(event.occurredAtMs);
      this.#stay = this.#stayAfter(event, null);
      this.log.record(event);
      if (this.#stay === null) this.log.close(event.occurredAtMs);
      else this.log.inside(this.#stay, event.occurredAtMs, null, 0);
    }
  }

  /** Looks once for a way through the area, where no point was inside so far. */
  *#lookBetween(point: Point, { index, distanceM: metres }: Evaluated, wayM: number): Steps<void> {
    const before = this.#before;
    const { shape, state } = this.#options.periods[index] as WatchPeriod;
    if (before === null || !this.#isInWindow(before.atMs) || state !== 'watched') return;
    if (this.findings.crossing !== null || this.log.hasVisits || before.shape !== shape) return;
    // A point inside is not a way through, even if the area did not watch the device.
    if (before.distanceM <= 0 || metres <= 0) return;
    if (!mayCross(before.distanceM, metres, wayM)) return;
    const compiled = shape.compiled();
    const outside = ({ lat, lng }: Point) => {
      const distanceM = Math.max(0, compiled.signedDistanceM(lat, lng));
      return { lat, lng, distanceM };
    };
    if (yield* crosses(compiled, outside(before), outside(point), wayM, this.#pace)) {
      this.findings.crossing = { fromMs: before.atMs, toMs: point.atMs };
    }
  }

  #addStep(point: Point, metres: number, decision: Decision): void {
    const { atMs: recordedAtMs, receivedAtMs, late } = point;
    this.steps?.add({ recordedAtMs, receivedAtMs, late, distanceM: metres, decision });
  }
}

function decisionOf(
  { state }: WatchPeriod,
  before: Stay | null,
  after: Stay | null,
  event: RecordedEvent | null,
): Decision {
  if (event !== null) return event.direction;
  if (state !== 'watched') return state;
  if (after !== null) return after.confirmedAtMs === null ? 'pending' : 'inside';
  return before !== null && before.confirmedAtMs === null ? 'passed' : 'outside';
}
