import type { Steps } from '../../lib/workTurns.ts';
import { CalendarLedger } from './calendarLedger.ts';
import type { LocalDays } from './localDays.ts';
import { MotionWalk } from './motionWalk.ts';
import { emptyPeriod, type Period } from './period.ts';
import { TripLedger } from './tripLedger.ts';

export const SUMMARY_PERIODS = ['total', 'day', 'trip'] as const;
export type SummaryPeriods = (typeof SUMMARY_PERIODS)[number];

/** A part of a track, column by column, in the order of time. */
export interface TrackColumns {
  readonly count: number;
  readonly recordedAtMs: ArrayLike<number>;
  readonly lats: ArrayLike<number>;
  readonly lngs: ArrayLike<number>;
  readonly speedsKmh: ArrayLike<number>;
}

export interface SummaryRequest {
  readonly by: SummaryPeriods;
  readonly days: LocalDays;
  /** The window, both ends included; null: open. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** Points between two looks at the clock: a fraction of a millisecond. */
const POINTS_PER_STEP = 256;

/** A summary of a track that comes in parts. Takes memory for its periods only. */
export class Summary {
  readonly #request: SummaryRequest;
  readonly #ledger: CalendarLedger | TripLedger;
  readonly #walk: Pick<MotionWalk<unknown>, 'step' | 'finish'>;
  #points = 0;

  constructor(request: SummaryRequest) {
    this.#request = request;
    if (request.by === 'trip') {
      const ledger = new TripLedger();
      this.#ledger = ledger;
      this.#walk = new MotionWalk(ledger);
    } else {
      const { by, days, fromMs, toMs } = request;
      const ledger = new CalendarLedger({
        fromMs: fromMs ?? Number.NEGATIVE_INFINITY,
        toMs: toMs ?? Number.POSITIVE_INFINITY,
        periodOf: by === 'day' ? (ms) => days.dayOf(ms) : () => ALWAYS,
      });
      this.#ledger = ledger;
      this.#walk = new MotionWalk(ledger);
    }
  }

  /** How many points it has taken. */
  get points(): number {
    return this.#points;
  }

  /** The periods that have ended, at least. */
  get periods(): number {
    return this.#ledger.count;
  }

  *take(track: TrackColumns): Steps<void> {
    for (let n = 0; n < track.count; n++) {
      this.#walk.step({
        recordedAtMs: track.recordedAtMs[n] as number,
        lat: track.lats[n] as number,
        lng: track.lngs[n] as number,
        speedKmh: track.speedsKmh[n] as number,
      });
      if (n % POINTS_PER_STEP === POINTS_PER_STEP - 1) yield;
    }
    this.#points += track.count;
  }

  /** To be called once, after the last part. Of a total there is one period, whatever the track. */
  finish(): readonly Period[] {
    this.#walk.finish();
    const periods = this.#ledger.result();
    return this.#request.by === 'total' ? [this.#total(periods[0])] : periods;
  }

  /** What the window leaves open is from the first point, or to the last. */
  #total(period: Period | undefined): Period {
    const { fromMs, toMs } = this.#request;
    if (period === undefined) return emptyPeriod(fromMs, toMs);
    return {
      ...period,
      fromMs: fromMs ?? period.first?.recordedAtMs ?? null,
      toMs: toMs ?? period.last?.recordedAtMs ?? null,
    };
  }
}

const ALWAYS = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
