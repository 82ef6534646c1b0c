import { writeSurfacePoint } from '../../geo/surfacePoint.ts';
import { type Cell, WHOLE_EARTH } from './cell.ts';
import { FarSearch, gapSq, isFar } from './farSearch.ts';
import type { NearHit, Precedes } from './hitHeap.ts';
import { LeafScan } from './leafScan.ts';
import { HALVES, LATTICE_CENTRE, MAX_DEPTH, NearestHits, STEPS_PER_M } from './nearestHits.ts';
import { EMPTY, type Trie } from './trie.ts';

/** What a search is confined to. */
export interface SearchPart {
  readonly cell: Cell;
  /** Slots that are left out; null: none. */
  readonly skipped: ReadonlySet<number> | null;
}

export const EVERYTHING: SearchPart = { cell: WHOLE_EARTH, skipped: null };

/**
 * Finds the devices nearest to a position, exactly by `distanceM`. Nearby, cells are visited by their chords (`visit`);
 * far away, where chords are poor bounds, by geodesics to groups of devices (FarSearch). What is found goes to
 * NearestHits, which also limits the work: a search that `isCut` can be repeated on smaller parts. Lengths without a
 * unit in their name are lattice steps. One instance serves all tries, one call at a time.
 */
export class Search {
  private readonly query = new Float64Array(3);
  private readonly hits = new NearestHits();
  private readonly leaves = new LeafScan(this.hits, this.query);
  private readonly far = new FarSearch(this.hits, this.leaves, this.query);
  private readonly stack = new Float64Array(STACK_FIELDS * MAX_DEPTH);

  /** `positions` holds lat and lng of slot s at 2s and 2s + 1. */
  run(
    trie: Trie,
    positions: Float64Array<ArrayBuffer>,
    lat: number,
    lng: number,
    limit: number,
    maxM: number,
    precedes: Precedes,
    { cell, skipped }: SearchPart,
  ): NearHit[] {
    // In a single lattice point devices are measured at once, so that each position is finished before the next.
    const isPoint = cell.depth === MAX_DEPTH;
    this.hits.reset(positions, lat, lng, limit, maxM, precedes, isPoint);
    this.leaves.reset(trie, limit, skipped, cell.afterPosition);
    this.far.reset(trie, lat, lng);
    writeSurfacePoint(lat, lng, this.query, 0);
    for (let axis = 0; axis < 3; axis++) this.query[axis] = this.query[axis]! * STEPS_PER_M + LATTICE_CENTRE;
    this.visit(trie, cell);
    return this.hits.drain();
  }

  /** True when the last run ended before it was complete. */
  get isCut(): boolean {
    return this.hits.isCut;
  }

  /** Where the query of the last run was, in lattice steps. */
  get queryPoint(): Float64Array {
    return this.query;
  }

  /** The key of the last finished position in a run on a single lattice point. */
  get lastPosition(): string | null {
    return this.leaves.lastPosition;
  }

  /** Depth first, the nearer half first; the other halves wait on the stack with their squared chord to the query. */
  private visit(trie: Trie, cell: Cell): void {
    const { stack, hits } = this;
    const { children } = trie;
    let depth = cell.depth;
    let ref = trie.refAt(depth, cell.x, cell.y, cell.z);
    // The cell's centre seen from the query: the axis that is halved next, then the other two in turn.
    const turn = depth % 3;
    const half0 = HALVES[depth]!;
    const half1 = HALVES[depth + 1]!;
    const half2 = HALVES[depth + 2]!;
    const x = cell.x - this.query[0]!;
    const y = cell.y - this.query[1]!;
    const z = cell.z - this.query[2]!;
    let c0 = (turn === 0 ? x : turn === 1 ? y : z) + half0;
    let c1 = (turn === 0 ? y : turn === 1 ? z : x) + half1;
    let c2 = (turn === 0 ? z : turn === 1 ? x : y) + half2;
    let chordSq = gapSq(c0, half0) + gapSq(c1, half1) + gapSq(c2, half2);
    if (chordSq > hits.reachSq) return;
    let top = 0;
    for (;;) {
      if (isFar(chordSq, depth)) {
        this.far.visit(ref, depth, c0, c1, c2);
      } else if (ref < 0) {
        this.leaves.scan(ref);
      } else if (ref > 0) {
        const toNear = c0 < 0 ? HALVES[depth]! / 2 : -HALVES[depth]! / 2;
        const near = c0 < 0 ? 2 * ref + 1 : 2 * ref;
        const farRef = children[near ^ 1]!;
        const outside = Math.max(0, Math.abs(c0) - HALVES[depth]!);
        const farSq = chordSq - outside * outside + c0 * c0;
        depth++;
        if (farRef !== EMPTY && farSq <= hits.reachSq) {
          stack[top] = farRef;
          stack[top + 1] = depth;
          stack[top + 2] = c1;
          stack[top + 3] = c2;
          stack[top + 4] = c0 - toNear;
          stack[top + 5] = farSq;
          top += STACK_FIELDS;
        }
        ref = children[near]!;
        const turned = c0 + toNear;
        c0 = c1;
        c1 = c2;
        c2 = turned;
        continue;
      }
      do {
        if (top === 0) return;
        top -= STACK_FIELDS;
        chordSq = stack[top + 5]!;
      } while (chordSq > hits.reachSq);
      ref = stack[top]!;
      depth = stack[top + 1]!;
      c0 = stack[top + 2]!;
      c1 = stack[top + 3]!;
      c2 = stack[top + 4]!;
    }
  }
}

/** Reference, depth, centre, squared chord. */
const STACK_FIELDS = 6;
