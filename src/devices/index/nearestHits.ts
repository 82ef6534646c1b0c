import { distanceM, EQUATORIAL_RADIUS_M, POLAR_RADIUS_M } from '../../geo/wgs84.ts';
import { invariant } from '../../lib/errors.ts';
import { type SlotPositions, STEPS_PER_M } from './trie.ts';

/** A device found near a position. */
export interface NearHit {
  readonly slot: number;
  readonly distanceM: number;
}

/** Whether the first of two slots that are equally far away comes first. */
export type Precedes = (slot: number, other: number) => boolean;

/**
 * The `limit` nearest hits of several indexes, by distance, then in the order of slots. `search` returns the nearest hits of
 * one index, no farther away than `reachM`. The indexes are searched in turn, and once `limit` hits are found, the distance of
 * the last one is the `reachM` of the next search. Returns null as soon as a search does.
 */
export function nearestOfSeveral<Index>(
  slots: { compare(slot: number, other: number): number },
  indexes: readonly Index[],
  limit: number,
  maxM: number,
  search: (index: Index, reachM: number) => NearHit[] | null,
): NearHit[] | null {
  let found: NearHit[] = [];
  for (const index of indexes) {
    const last = found[limit - 1];
    const hits = search(index, last === undefined ? maxM : Math.min(maxM, last.distanceM));
    if (hits === null) return null;
    if (found.length === 0) found = hits;
    else {
      found = [...found, ...hits]
        .sort((a, b) => a.distanceM - b.distanceM || slots.compare(a.slot, b.slot))
        .slice(0, limit);
    }
  }
  return found;
}

/**
 * The nearest devices that one search has met so far. Squared chords are in lattice steps.
 *
 * `distanceM` costs more than the rest of a search, so it is called for hardly more devices than are found. At first
 * devices are candidates, gathered by their chords alone: nearby, chords bound geodesics from below and from above
 * within millimetres (`maxChordM`, `maxGeodesicM`). From `measureCandidates` on every device is measured as it is met.
 *
 * Where thousands are equally far, all of them would have to be measured. So a search ends after a limited amount of
 * work and is then `isCut`.
 */
export class NearestHits {
  /** Nothing beyond this squared chord can be a hit. */
  reachSq = 0;
  /** The search ended early: what it found is there, but devices that are nearer may be missing. */
  isCut = false;
  private readonly heap = new HitHeap();
  /** Squared chords of the best candidates: the worst of them bounds the search until devices are measured. */
  private readonly chords = new HitHeap();
  private readonly candidates = new Int32Array(MAX_CANDIDATES);
  private readonly candidateChordsSq = new Float64Array(MAX_CANDIDATES);
  private candidateCount = 0;
  /** Devices are measured as they are met, instead of being gathered first. */
  private isMeasuring = false;
  private slots: SlotPositions = NOWHERE;
  /** The query, in degrees. */
  lat = 0;
  lng = 0;
  /** From a pole, longitudes make no difference: see distanceM. */
  private isAtPole = false;
  private measuredLat = 0;
  private measuredLng = 0;
  private measuredM = 0;
  /** In units of one distance on the ellipsoid, 0.2 to 0.5 µs. */
  private work = 0;

  /** Starts over for a query at (lat, lng). `slots` knows where they are. */
  reset(
    slots: SlotPositions,
    lat: number,
    lng: number,
    limit: number,
    maxM: number,
    precedes: Precedes,
    isMeasuring: boolean,
  ): void {
    this.heap.reset(limit, maxM, precedes);
    this.chords.reset(limit, Infinity, anyOrder);
    this.candidateCount = 0;
    this.isMeasuring = isMeasuring;
    this.slots = slots;
    this.lat = lat;
    this.lng = lng;
    this.isAtPole = Math.abs(lat) === 90;
    this.measuredLat = Number.NaN;
    this.work = 0;
    this.isCut = false;
    this.reachSq = reachSqOf(maxM);
  }

  /** No device farther away than this can be a hit any more. */
  get reachM(): number {
    return this.heap.reach;
  }

  /** The hits, nearest first. Call it once, at the end of the search. */
  drain(): NearHit[] {
    this.measureCandidates();
    return this.heap.drain();
  }

  /** Takes a device that is within reach by its chord. */
  meet(slot: number, chordSq: number): void {
    if (this.candidateCount === MAX_CANDIDATES) this.measureCandidates();
    if (this.isMeasuring) {
      this.measure(slot);
      return;
    }
    this.candidates[this.candidateCount] = slot;
    this.candidateChordsSq[this.candidateCount++] = chordSq;
    const worstSq = this.chords.reach;
    this.chords.offer(chordSq, slot);
    if (this.chords.reach === worstSq) return;
    // `limit` devices are at most this far away, so nothing farther can be a hit.
    const farthestM = maxGeodesicM((Math.sqrt(this.chords.reach) + 1) / STEPS_PER_M);
    this.reachSq = Math.min(this.reachSq, reachSqOf(farthestM));
  }

  /** Measures the candidates that are still within reach. From then on every device is measured. */
  measureCandidates(): void {
    if (this.isMeasuring) return;
    this.isMeasuring = true;
    for (let i = 0; i < this.candidateCount; i++) {
      if (this.candidateChordsSq[i]! <= this.reachSq) this.measure(this.candidates[i]!);
    }
  }

  /** Narrows the reach by chord for a part of the search; `widen` ends that. */
  narrow(chord: number): void {
    this.reachSq = Math.min(this.reachSq, chord * chord);
  }

  /** Goes back to the reach before `narrow`, or what the hits found since have made of it. */
  widen(beforeSq: number): void {
    this.reachSq = this.isCut ? NOTHING_SQ : Math.min(beforeSq, reachSqOf(this.heap.reach));
  }

  /** Counts work. Once all is spent nothing is within reach any more, which ends the search. */
  spend(work: number): void {
    this.work += work;
    if (this.work > MAX_WORK) this.cut();
  }

  private measure(slot: number): void {
    const lat = this.slots.lat(slot);
    const lng = this.slots.lng(slot);
    // Thousands of devices may report the same position, or be on one parallel around a pole.
    if (lat !== this.measuredLat || (lng !== this.measuredLng && !this.isAtPole)) {
      this.measuredLat = lat;
      this.measuredLng = lng;
      this.measuredM = distanceM(this.lat, this.lng, lat, lng);
      this.spend(workOfDistance(this.measuredM));
    } else {
      this.spend(KNOWN_WORK);
    }
    const reachM = this.heap.reach;
    this.heap.offer(this.measuredM, slot);
    if (this.heap.reach < reachM) this.reachSq = Math.min(this.reachSq, reachSqOf(this.heap.reach));
  }

  private cut(): void {
    this.isCut = true;
    this.reachSq = NOTHING_SQ;
    this.heap.reach = NOTHING_M;
  }
}

const NOWHERE: SlotPositions = { lat: () => 0, lng: () => 0 };

/** The work of one distance. Near the antipode it is computed in another way, which takes longer. */
export function workOfDistance(geodesicM: number): number {
  return geodesicM > NEARLY_ANTIPODAL_M ? 6 : 1;
}

const NEARLY_ANTIPODAL_M = 19_700_000;
/** A reach that excludes everything. */
const NOTHING_M = -1;
const NOTHING_SQ = -1;
/** The work of a device whose distance is already known. */
const KNOWN_WORK = 0.4;
/** About a millisecond. An ordinary search takes a hundredth of it. */
const MAX_WORK = 2_000;
/** More devices than this within reach are measured as they are met. */
const MAX_CANDIDATES = 4096;

/**
 * The nearest slots so far, by a distance of any kind and then by `precedes`. A binary heap with the worst on top,
 * reused for every search.
 */
class HitHeap {
  /** Nothing beyond this distance is accepted any more. */
  reach = 0;
  private limit = 0;
  private count = 0;
  private precedes: Precedes = (slot, other) => slot < other;
  private readonly distances = new Float64Array(MAX_LIMIT);
  private readonly slots = new Int32Array(MAX_LIMIT);

  /** Starts over, for the best `limit` (1 to 1000) of the slots no farther than `reach`. */
  reset(limit: number, reach: number, precedes: Precedes): void {
    invariant(
      Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT,
      'position index: limit out of range',
    );
    invariant(reach >= 0, 'position index: maxM is not a distance');
    this.limit = limit;
    this.count = 0;
    this.reach = reach;
    this.precedes = precedes;
  }

  offer(distance: number, slot: number): void {
    if (distance > this.reach) return;
    if (this.count < this.limit) this.siftUp(this.count++, distance, slot);
    else if (this.isWorse(0, distance, slot)) this.siftDown(distance, slot);
    if (this.count === this.limit) this.reach = this.distances[0]!;
  }

  /** Empties the heap into a list, best first; distances are metres. */
  drain(): NearHit[] {
    const hits = new Array<NearHit>(this.count);
    while (this.count > 0) {
      const last = --this.count;
      hits[last] = { slot: this.slots[0]!, distanceM: this.distances[0]! };
      this.siftDown(this.distances[last]!, this.slots[last]!);
    }
    return hits;
  }

  private siftUp(from: number, distance: number, slot: number): void {
    let hole = from;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (this.isWorse(parent, distance, slot)) break;
      this.fill(hole, this.distances[parent]!, this.slots[parent]!);
      hole = parent;
    }
    this.fill(hole, distance, slot);
  }

  /** Replaces the top. */
  private siftDown(distance: number, slot: number): void {
    let hole = 0;
    for (let child = 1; child < this.count; child = 2 * hole + 1) {
      const right = child + 1;
      if (right < this.count && this.isWorse(right, this.distances[child]!, this.slots[child]!))
        child = right;
      if (!this.isWorse(child, distance, slot)) break;
      this.fill(hole, this.distances[child]!, this.slots[child]!);
      hole = child;
    }
    this.fill(hole, distance, slot);
  }

  private isWorse(at: number, distance: number, slot: number): boolean {
    const present = this.distances[at]!;
    return present > distance || (present === distance && this.precedes(slot, this.slots[at]!));
  }

  private fill(at: number, distance: number, slot: number): void {
    this.distances[at] = distance;
    this.slots[at] = slot;
  }
}

/** Bounds the memory of a search; far more than any page of results. */
const MAX_LIMIT = 1000;

/**
 * The squared chord beyond which nothing is within this geodesic distance. The step allows for the rounding to the
 * lattice (0.9 steps), the factor for the error of distanceM (1e-9).
 */
function reachSqOf(geodesicM: number): number {
  const reach = maxChordM(geodesicM) * (1 + 1e-7) * STEPS_PER_M + 1;
  return reach * reach;
}

/** Candidates with equal chords need no order: it says nothing about which is a hit. */
const anyOrder: Precedes = () => false;

/** The distance along one axis from the query to a cell, given by its centre as seen from the query, squared. */
export function gapSq(centre: number, half: number): number {
  const gap = Math.max(0, Math.abs(centre) - half);
  return gap * gap;
}

/**
 * The longest straight line, in metres, between two positions whose geodesic is at most this long. Positions farther
 * apart by chord are farther apart by geodesic too.
 *
 * First, no chord is longer than its arc. Second, divide x and y by a and z by b: the ellipsoid becomes the unit
 * sphere of reduced latitudes u, on which ds² = a² cos²u dlng² + (a² sin²u + b² cos²u) du² is nowhere below b² times
 * the sphere's own metric. So a geodesic s covers at most the angle s / b there, a chord of at most 2 sin(s / 2b),
 * which stretches back to at most a times that. The second rule is the tighter one from about 1800 km.
 */
export function maxChordM(geodesicM: number): number {
  const halfAngle = geodesicM / (2 * POLAR_RADIUS_M);
  const limitM = 2 * EQUATORIAL_RADIUS_M * (halfAngle < Math.PI / 2 ? Math.sin(halfAngle) : 1);
  return Math.min(geodesicM, limitM);
}

/**
 * The longest geodesic, in metres, between two positions that are this far apart in a straight line. The bound is
 * nearly tight: arc and chord themselves differ by 1 mm at 10 km and by 28 m at 300 km.
 *
 * The plane through both positions and the Earth's centre cuts an ellipse with half axes between a and b, whose
 * curvature is at most a / b². Of two convex arcs over the same chord, the one that is nowhere more curved is not
 * longer (Schur's theorem). So the path along that ellipse, and with it the geodesic, is at most an arc of the circle
 * with radius b² / a.
 */
export function maxGeodesicM(chordM: number): number {
  const sine = chordM / (2 * LEAST_RADIUS_M);
  return sine < 1 ? 2 * LEAST_RADIUS_M * Math.asin(sine) : Infinity;
}

const LEAST_RADIUS_M = (POLAR_RADIUS_M * POLAR_RADIUS_M) / EQUATORIAL_RADIUS_M;
