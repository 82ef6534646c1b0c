import { MOVING_FROM_KMH, PARKING_MS } from '../../devices/device.ts';
import { distanceM } from '../../geo/wgs84.ts';

/** A point of a track, as a summary needs it. */
export interface TrackPoint {
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
  readonly speedKmh: number;
}

/** A part of a track, column by column, in the order of time. */
export type TrackColumns = { readonly count: number } & Readonly<
  Record<'recordedAtMs' | 'lats' | 'lngs' | 'speedsKmh', ArrayLike<number>>
>;

export function pointAt({ recordedAtMs, lats, lngs, speedsKmh }: TrackColumns, n: number): TrackPoint {
  return {
    recordedAtMs: recordedAtMs[n] as number,
    lat: lats[n] as number,
    lng: lngs[n] as number,
    speedKmh: speedsKmh[n] as number,
  };
}

/** From one point of a track to the next. */
export interface Way {
  readonly from: TrackPoint;
  readonly to: TrackPoint;
  /** So long that nobody knows what the vehicle did. */
  readonly isGap: boolean;
}

export type Motion = 'moving' | 'parked';

/** Adds up ways. `Sums` holds what is not decided yet. */
export interface Ledger<Sums> {
  /** The points in order, each after the way that leads to it. */
  addPoint(point: TrackPoint): void;
  noSums(): Sums;
  /** Adds a way whose motion is not known yet. Ways come in order. */
  hold(sums: Sums, way: Way): void;
  /** Adds to `sums` what is in `later`, which follows it. */
  join(sums: Sums, later: Sums): void;
  /** Adds what was held, now that its motion is known. */
  book(sums: Sums, motion: Motion): void;
  /** Adds a way whose motion is known. */
  bookWay(way: Way, motion: Motion): void;
}

/** A longer way is a gap: it belongs to neither moving nor parked. */
export const GAP_MS = 600_000;
/** Fast points that stay this near to where the vehicle came to a stand are noise of its receiver. */
export const NOISE_RADIUS_M = 50;

/** Points from the first slow one on, of a vehicle that has not left yet. */
interface Stand {
  readonly sinceMs: number;
  lat: number;
  lng: number;
  /** Begins with the first point of the track, and has slow points only. */
  isWholeTrack: boolean;
  isParked: boolean;
}

/**
 * Separates moving from parked along a track, point after point in the order of time, and books each way in a ledger.
 *
 * A stand begins with the first point of the track or with a slow one (under 5 km/h) and lasts with slow points, and
 * with fast ones within NOISE_RADIUS_M of its beginning. A fast point farther away ends it: the fast points before that
 * belong to the drive. A stand is a parking when its last slow point is at least 120 s after its beginning, as for
 * the events parking_start and parking_end. Ways inside a parking are parked, all others moving. A track that has slow
 * points only is a parking whatever its length.
 *
 * So a stand of less than 120 s is not decided at its points, and neither are the fast points at the end of a stand:
 * they are held as sums, never as points.
 */
export class MotionWalk<Sums> {
  readonly #ledger: Ledger<Sums>;
  #last: TrackPoint | null = null;
  #stand: Stand | null = null;
  /** Ways up to the last slow point of a stand that is not a parking yet. */
  #undecided: Sums;
  /** Ways after the last slow point of a stand. */
  #tail: Sums;
  #hasTail = false;

  constructor(ledger: Ledger<Sums>) {
    this.#ledger = ledger;
    this.#undecided = ledger.noSums();
    this.#tail = ledger.noSums();
  }

  step(point: TrackPoint): void {
    const from = this.#last;
    this.#last = point;
    const isSlow = point.speedKmh < MOVING_FROM_KMH;
    if (from === null) this.#stand = standAt(point, isSlow);
    else this.#go({ from, to: point, isGap: point.recordedAtMs - from.recordedAtMs > GAP_MS }, isSlow);
    this.#ledger.addPoint(point);
  }

  /**
   * What the vehicle does for certain: it moves until the next slow point or gap, or is parked until the next fast one. null:
   * that is not decided yet.
   */
  get steadyMotion(): Motion | null {
    if (this.#stand === null) return this.#last === null ? null : 'moving';
    return this.#stand.isParked && !this.#hasTail ? 'parked' : null;
  }

  /** Goes on behind points of the steady motion, without a gap, that the ledger has. `last`: the last of them. */
  goOnFrom(last: TrackPoint): void {
    this.#last = last;
  }

  /** To be called once, after the last point. A vehicle that has not left its stand by then is still there. */
  finish(): void {
    const stand = this.#stand;
    if (stand === null) return;
    const motion = stand.isParked || stand.isWholeTrack ? 'parked' : 'moving';
    this.#decide(motion);
    this.#bookTail(motion);
  }

  #go(way: Way, isSlow: boolean): void {
    const stand = this.#stand;
    if (stand === null) {
      this.#ledger.bookWay(way, 'moving');
      if (isSlow) this.#stand = standAt(way.to, false);
    } else if (isSlow) {
      this.#stay(stand, way);
    } else if (distanceM(stand.lat, stand.lng, way.to.lat, way.to.lng) <= NOISE_RADIUS_M) {
      stand.isWholeTrack = false;
      this.#holdTail(way);
    } else {
      this.#leave(stand, way);
    }
  }

  #stay(stand: Stand, way: Way): void {
    if (stand.isParked && !this.#hasTail) {
      this.#ledger.bookWay(way, 'parked');
    } else {
      this.#holdTail(way);
      this.#ledger.join(this.#undecided, this.#tail);
      this.#clearTail();
      stand.isParked ||= way.to.recordedAtMs - stand.sinceMs >= PARKING_MS;
      if (stand.isParked) this.#decide('parked');
    }
    // Whatever happened in a gap, this is where the vehicle stands now.
    if (way.isGap) Object.assign(stand, { lat: way.to.lat, lng: way.to.lng });
  }

  #leave(stand: Stand, way: Way): void {
    if (!stand.isParked) this.#decide('moving');
    this.#bookTail('moving');
    this.#ledger.bookWay(way, 'moving');
    this.#stand = null;
  }

  #holdTail(way: Way): void {
    this.#ledger.hold(this.#tail, way);
    this.#hasTail = true;
  }

  #bookTail(motion: Motion): void {
    this.#ledger.book(this.#tail, motion);
    this.#clearTail();
  }

  #clearTail(): void {
    this.#tail = this.#ledger.noSums();
    this.#hasTail = false;
  }

  #decide(motion: Motion): void {
    this.#ledger.book(this.#undecided, motion);
    this.#undecided = this.#ledger.noSums();
  }
}

function standAt({ recordedAtMs, lat, lng }: TrackPoint, isWholeTrack: boolean): Stand {
  return { sinceMs: recordedAtMs, lat, lng, isWholeTrack, isParked: false };
}
