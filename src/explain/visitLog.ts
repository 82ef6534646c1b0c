import type { Stay } from '../devices/stays/stays.ts';
import type { Outcome, RecordedEvent, Visit } from './explanation.ts';

interface OpenVisit {
  firstInsideMs: number;
  lastInsideMs: number;
  points: number;
  deepestM: number | null;
  dwellSeconds: number;
  isConfirmed: boolean;
  entryAtMs: number | null;
  exitAtMs: number | null;
  readonly eventIds: number[];
  /** Something of it is in the window. */
  isInWindow: boolean;
}

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
    this.#open ??= newVisit();
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
  record(event: RecordedEvent): void {
    const { direction, occurredAtMs, enteredAtMs, isReadable, id } = event;
    if (this.#open === null) {
      this.#open = newVisit();
      this.#open.firstInsideMs = enteredAtMs;
      this.#open.lastInsideMs = enteredAtMs;
    }
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
    const visit = this.#open;
    if (visit === null) return;
    this.#open = null;
    if (visit.isInWindow || atMs >= this.#fromMs) this.visits.push(finished(visit, true));
  }

  /** There are no more points. */
  end(): void {
    if (this.#open?.isInWindow) this.visits.push(finished(this.#open, false));
    this.#open = null;
  }
}

function newVisit(): OpenVisit {
  return {
    firstInsideMs: 0,
    lastInsideMs: 0,
    points: 0,
    deepestM: null,
    dwellSeconds: 0,
    isConfirmed: false,
    entryAtMs: null,
    exitAtMs: null,
    eventIds: [],
    isInWindow: false,
  };
}

function finished({ isConfirmed, isInWindow: _, ...visit }: OpenVisit, isOver: boolean): Visit {
  return { ...visit, outcome: outcomeOf(isConfirmed, visit.exitAtMs !== null, isOver) };
}

function outcomeOf(isConfirmed: boolean, hasExit: boolean, isOver: boolean): Outcome {
  if (isConfirmed) return hasExit ? 'entry_and_exit' : 'entry';
  return isOver ? 'too_short' : 'pending';
}
