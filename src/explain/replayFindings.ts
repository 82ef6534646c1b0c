import type { Stay } from '../devices/stays/packedStays.ts';
import { MINUTE_MS } from '../lib/time.ts';
import type { WatchPeriod } from './watchPeriods.ts';

/** A recorded event of the area and the device. */
export interface RecordedEvent {
  readonly id: number;
  readonly direction: 'entry' | 'exit';
  readonly occurredAtMs: number;
  /** The first inside point of its stay. */
  readonly enteredAtMs: number;
  /** False: the caller may not read it. It happened nevertheless. */
  readonly isReadable: boolean;
}

export const OUTCOMES = ['entry', 'entry_and_exit', 'too_short', 'pending'] as const;

/** One time inside. */
export interface Visit {
  /** May be before the window. */
  readonly firstInsideMs: number;
  readonly lastInsideMs: number;
  /** Points inside, in the window. */
  readonly points: number;
  /** Metres from the boundary of the point furthest in; null when none was in the window. */
  readonly deepestM: number | null;
  readonly outcome: (typeof OUTCOMES)[number];
  /** The threshold at the last point. */
  readonly dwellSeconds: number;
  /** Where they are in the window. */
  readonly entryAtMs: number | null;
  readonly exitAtMs: number | null;
  /** Recorded events of the window that the caller may read. */
  readonly eventIds: readonly number[];
}

export interface Gap {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A device that says nothing for longer has a gap. */
export const GAP_MS = 10 * MINUTE_MS;

/** How often something was found, and when first. */
class Found {
  count = 0;
  firstMs = 0;

  add(atMs: number): void {
    if (this.count++ === 0) this.firstMs = atMs;
  }
}

/** What a replay finds in the points of its window, besides visits. */
export class ReplayFindings {
  readonly gaps: Gap[] = [];
  points = 0;
  /** Of them, those that were evaluated while the area existed, watched the device, or neither. */
  readonly evaluated = { watched: 0, not_watched: 0, no_area: 0 };
  /** Of them, those inside an area that did not watch the device. */
  insideUnwatched = 0;
  /** Of the points that were evaluated while the area watched the device. */
  closest: { readonly distanceM: number; readonly atMs: number } | null = null;
  /** Two points, one after the other, between which the way leads through the area. */
  crossing: { readonly fromMs: number; readonly toMs: number } | null = null;
  /** Points that came late, and those of them that lie inside. */
  readonly late = Object.assign(new Found(), { inside: 0 });
  /** Points whose lateness or time of receipt was not stored. */
  readonly unmarked = new Found();
  /** Points of a time for which the area is not known. */
  readonly unknownArea = new Found();
  /** Points at which a stay did not begin for want of room. */
  readonly refused = new Found();
  /** Where the record has more or less than the replay, also before the window. */
  readonly unexplained = new Found();
  /** The periods that were in force for points: from the first to the last. */
  periodsUsed: { readonly first: number; readonly last: number } | null = null;
  #lastMs = Number.NaN;

  /** Any point, in the order of their times. */
  arrive(atMs: number, isMarked: boolean): void {
    this.points++;
    if (atMs - this.#lastMs > GAP_MS) this.gaps.push({ fromMs: this.#lastMs, toMs: atMs });
    this.#lastMs = atMs;
    if (!isMarked) this.unmarked.add(atMs);
  }

  /** A late point: stored, and nothing else. */
  passOver(atMs: number, distanceM: number): void {
    this.late.add(atMs);
    if (distanceM <= 0) this.late.inside++;
  }

  /** An evaluated point. `index`: of the period. */
  evaluate(atMs: number, distanceM: number, index: number, { state, isKnown }: WatchPeriod): void {
    this.evaluated[state]++;
    if (state !== 'watched' && distanceM <= 0) this.insideUnwatched++;
    if (!isKnown) this.unknownArea.add(atMs);
    this.periodsUsed = { first: this.periodsUsed?.first ?? index, last: index };
    if (state !== 'watched') return;
    if (this.closest === null || distanceM < this.closest.distanceM) this.closest = { distanceM, atMs };
  }
}

type OpenVisit = { -readonly [Field in keyof Visit]: Visit[Field] } & {
  readonly eventIds: number[];
  isConfirmed: boolean;
  /** Something of it is in the window. */
  isInWindow: boolean;
};

/** The visits of a device as its points come; those of which nothing is in the window are left out. */
export class VisitLog {
  readonly visits: Visit[] = [];
  readonly #fromMs: number;
  #open: OpenVisit | null = null;

  constructor(fromMs: number) {
    this.#fromMs = fromMs;
  }

  /** True when a visit has something in the window. */
  get hasVisits(): boolean {
    return this.visits.length > 0 || this.#open?.isInWindow === true;
  }

  /** A device that is inside, after its point or a recorded entry at `atMs`. depthM null: the place is not known. */
  inside(stay: Stay, atMs: number, depthM: number | null, dwellSeconds: number): void {
    this.#open ??= newVisit(0);
    const visit = this.#open;
    if (stay.insideSinceMs !== visit.firstInsideMs) this.#beginAt(visit, stay.insideSinceMs);
    visit.lastInsideMs = atMs;
    visit.dwellSeconds = dwellSeconds;
    visit.isConfirmed ||= stay.confirmedAtMs !== null;
    if (atMs < this.#fromMs || depthM === null) return;
    visit.isInWindow = true;
    visit.points++;
    visit.deepestM = Math.max(visit.deepestM ?? 0, depthM);
  }

  /** The record may say that a visit began earlier: then what seemed to be visits since then belongs to it. */
  #beginAt(visit: OpenVisit, firstInsideMs: number): void {
    visit.firstInsideMs = firstInsideMs;
    for (;;) {
      const last = this.visits.at(-1);
      if (last === undefined || last.outcome !== 'too_short' || last.firstInsideMs < firstInsideMs) return;
      this.visits.pop();
      visit.points += last.points;
      visit.deepestM = last.deepestM === null ? visit.deepestM : Math.max(visit.deepestM ?? 0, last.deepestM);
    }
  }

  /** The event that the device's point produced. An exit still has the visit that it ends. */
  record({ direction, occurredAtMs, enteredAtMs, isReadable, id }: RecordedEvent): void {
    this.#open ??= newVisit(enteredAtMs);
    const visit = this.#open;
    visit.isConfirmed = true;
    if (occurredAtMs < this.#fromMs) return;
    visit.isInWindow = true;
    if (direction === 'entry') visit.entryAtMs = occurredAtMs;
    else visit.exitAtMs = occurredAtMs;
    if (isReadable) visit.eventIds.push(id);
  }

  /** The device is not inside any more, after its point at `atMs`. */
  close(atMs: number): void {
    this.#finish(true, atMs >= this.#fromMs);
  }

  /** To be called once, after the last point. */
  end(): void {
    this.#finish(false, false);
  }

  #finish(isOver: boolean, isEndInWindow: boolean): void {
    if (this.#open === null) return;
    const { isConfirmed, isInWindow, ...visit } = this.#open;
    this.#open = null;
    if (!isInWindow && !isEndInWindow) return;
    if (isConfirmed) visit.outcome = visit.exitAtMs === null ? 'entry' : 'entry_and_exit';
    else visit.outcome = isOver ? 'too_short' : 'pending';
    this.visits.push(visit);
  }
}

const newVisit = (insideMs: number): OpenVisit => ({
  ...{ firstInsideMs: insideMs, lastInsideMs: insideMs, points: 0, deepestM: null, dwellSeconds: 0 },
  ...{ outcome: 'pending' as const, entryAtMs: null, exitAtMs: null, eventIds: [] },
  ...{ isConfirmed: false, isInWindow: false },
});

const CHUNK_POINTS = 4_096;

/**
 * What became of a point, in the order of DECISIONS:
 * - `outside`, `inside`: nothing changed; inside after the entry.
 * - `pending`: inside, and not for the minimum stay yet. `passed`: outside again before that.
 * - `entry`, `exit`: the point produced this event.
 * - `late`: stored only. `not_watched`, `no_area`: not evaluated against this area.
 */
export const DECISIONS = [
  'outside',
  'pending',
  'entry',
  'inside',
  'passed',
  'exit',
  'late',
  'not_watched',
  'no_area',
] as const;

export type Decision = (typeof DECISIONS)[number];

/** As they are kept: by their places. */
const LATENESS = [false, true, null] as const;

/** What became of one point. */
export interface Step {
  readonly recordedAtMs: number;
  /** NaN: not recorded. */
  readonly receivedAtMs: number;
  /** Null: not recorded. */
  readonly late: boolean | null;
  readonly distanceM: number;
  readonly decision: Decision;
}

/** Every point of a window: 26 bytes for each, outside of the heap. */
export class StepLog {
  count = 0;
  readonly #chunks: Chunk[] = [];

  add({ recordedAtMs, receivedAtMs, late, distanceM, decision }: Step): void {
    const n = this.count % CHUNK_POINTS;
    if (n === 0) this.#chunks.push(newChunk());
    const chunk = this.#chunks.at(-1) as Chunk;
    chunk.recordedAtMs[n] = recordedAtMs;
    chunk.receivedAtMs[n] = receivedAtMs;
    chunk.late[n] = LATENESS.indexOf(late);
    chunk.distanceM[n] = distanceM;
    chunk.decisions[n] = DECISIONS.indexOf(decision);
    this.count++;
  }

  /** Point `n`, from 0, in the order of their times. */
  at(n: number): Step {
    const chunk = this.#chunks[Math.floor(n / CHUNK_POINTS)] as Chunk;
    const at = n % CHUNK_POINTS;
    return {
      recordedAtMs: chunk.recordedAtMs[at]!,
      receivedAtMs: chunk.receivedAtMs[at]!,
      late: LATENESS[chunk.late[at]!] as boolean | null,
      distanceM: chunk.distanceM[at]!,
      decision: DECISIONS[chunk.decisions[at]!] as Decision,
    };
  }
}

type Chunk = ReturnType<typeof newChunk>;

const newChunk = () => ({
  recordedAtMs: new Float64Array(CHUNK_POINTS),
  receivedAtMs: new Float64Array(CHUNK_POINTS),
  distanceM: new Float64Array(CHUNK_POINTS),
  late: new Uint8Array(CHUNK_POINTS),
  decisions: new Uint8Array(CHUNK_POINTS),
});
