import { orient2d } from 'robust-predicates';
import { extentOf } from './measure.ts';
import type { Ring } from './path.ts';
import type { Edges } from './wgs84.ts';

/**
 * True when the ring is not a valid exterior ring by OGC Simple Features (06-103r4, 6.1.11.1) and PostGIS' ST_IsValid:
 * sides cross or overlap, a vertex is on another side, two vertices coincide (a figure of eight), it has spikes or no
 * area. The winding is free. Works on unwrapped longitudes, in O(n log n) with exact predicates.
 *
 * On that map a ring around a pole repeats itself 360° further. It must not touch its repetition, nor reach the pole
 * inside more than once. Other rings may be 360° wide, as the frame of a world map is; a wider one would overlap
 * itself.
 */
export function isSelfIntersecting(ring: Ring): boolean {
  const edgeCount = ring.lngs.length - 1;
  const { west, east } = extentOf(ring);
  const width = east - west;
  if (ring.turns === 0) return edgeCount < 3 || width > 360 || !isSimpleChain(ring.lngs, ring.lats, true);
  if (Math.abs(ring.turns) > 1 || width >= 720) return true;
  const poleLat = ring.pole === 'north' ? 90 : -90;
  if (ring.points.filter(({ lat }) => lat === poleLat).length > 1) return true;
  const twice = repeatOnce(ring);
  return !isSimpleChain(twice.lngs, twice.lats, false);
}

function repeatOnce(ring: Ring): Edges {
  const n = ring.lngs.length - 1;
  const lngs: number[] = [];
  const lats: number[] = [];
  for (let i = 0; i <= 2 * n; i++) {
    const lap = Math.floor(i / n);
    lngs.push(ring.lngs[i % n]! + 360 * ring.turns * lap);
    lats.push(ring.lats[i % n]!);
  }
  return { lngs, lats };
}

/**
 * True when the edges of a planar chain meet only in the vertices that consecutive edges share, and no edge runs back
 * over the previous one. No two consecutive vertices may be equal; a closed chain repeats its first vertex.
 *
 * The plane sweep of M. I. Shamos and D. Hoey ("Geometric intersection problems", FOCS 1976): a meridian sweeps east
 * and the edges that it meets are sorted from south to north. Before two edges touch, they are neighbours in that
 * order. The first contact ends the sweep, so the order never has to be repaired. Orientation tests are exact, without
 * a tolerance. O(n log n) for every shape; comparing bounding boxes would be slower for many long slanting sides, which
 * all overlap.
 */
export function isSimpleChain(xs: readonly number[], ys: readonly number[], closed: boolean): boolean {
  if (hasSpike(xs, ys, closed)) return false;
  const vertexCount = closed ? xs.length - 1 : xs.length;
  const order = Uint32Array.from({ length: vertexCount }, (_, i) => i);
  order.sort((a, b) => xs[a]! - xs[b]! || ys[a]! - ys[b]!);
  for (let k = 1; k < vertexCount; k++) {
    const a = order[k - 1]!;
    const b = order[k]!;
    if (xs[a] === xs[b] && ys[a] === ys[b]) return false;
  }
  const sweep = new Sweep(xs, ys, closed);
  return order.every((vertex) => sweep.pass(vertex));
}

/** True where an edge runs back over the one before it. */
function hasSpike(xs: readonly number[], ys: readonly number[], closed: boolean): boolean {
  const edgeCount = xs.length - 1;
  for (let i = closed ? 0 : 1; i < edgeCount; i++) {
    const before = i > 0 ? i - 1 : edgeCount - 1;
    const straight = orient2d(xs[before]!, ys[before]!, xs[i]!, ys[i]!, xs[i + 1]!, ys[i + 1]!) === 0;
    const back = opposite(xs[before]!, xs[i]!, xs[i + 1]!) || opposite(ys[before]!, ys[i]!, ys[i + 1]!);
    if (straight && back) return true;
  }
  return false;
}

const opposite = (a: number, b: number, c: number) => (a < b && c < b) || (a > b && c > b);

/** The edges that the sweeping meridian meets, from south to north. Edge i runs from vertex i to vertex i + 1. */
class Sweep {
  readonly #xs: readonly number[];
  readonly #ys: readonly number[];
  readonly #closed: boolean;
  readonly #edgeCount: number;
  readonly #status: Int32Array;
  #size = 0;

  constructor(xs: readonly number[], ys: readonly number[], closed: boolean) {
    this.#xs = xs;
    this.#ys = ys;
    this.#closed = closed;
    this.#edgeCount = xs.length - 1;
    this.#status = new Int32Array(this.#edgeCount);
  }

  /** Moves the sweep to the next vertex; false when edges touch that must not. */
  pass(vertex: number): boolean {
    const before = vertex > 0 ? vertex - 1 : this.#closed ? this.#edgeCount - 1 : NONE;
    const after = vertex < this.#edgeCount ? vertex : NONE;
    const ending: number[] = [];
    const starting: number[] = [];
    for (const edge of [before, after]) {
      if (edge !== NONE) (this.#eastEnd(edge) === vertex ? ending : starting).push(edge);
    }
    const at = this.#firstNotBelow(vertex);
    for (let k = 0; k < ending.length; k++) {
      if (at + k >= this.#size || !ending.includes(this.#status[at + k]!)) return false;
    }
    if (starting.length === 2 && this.#isAbove(starting[0]!, starting[1]!, vertex)) starting.reverse();
    this.#replace(at, ending.length, starting);
    const upper = at + starting.length;
    if (starting.length === 0) return !this.#meet(at - 1, at);
    return !this.#meet(at - 1, at) && !this.#meet(upper - 1, upper);
  }

  /** The index of the first edge that runs through the vertex or north of it. */
  #firstNotBelow(vertex: number): number {
    let low = 0;
    let high = this.#size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#side(this.#status[middle]!, vertex) > 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #replace(at: number, removed: number, added: readonly number[]): void {
    this.#status.copyWithin(at + added.length, at + removed, this.#size);
    this.#size += added.length - removed;
    for (let k = 0; k < added.length; k++) this.#status[at + k] = added[k]!;
  }

  /**
   * Whether the edges at two indexes of the order have a point in common, other than the vertex of consecutive edges.
   */
  #meet(indexA: number, indexB: number): boolean {
    if (indexA < 0 || indexB >= this.#size) return false;
    const a = this.#status[indexA]!;
    const b = this.#status[indexB]!;
    const gap = Math.abs(a - b);
    if (gap === 1 || (this.#closed && gap === this.#edgeCount - 1)) return false;
    const a1 = this.#side(b, a);
    const a2 = this.#side(b, this.#head(a));
    if (a1 * a2 > 0) return false;
    const b1 = this.#side(a, b);
    const b2 = this.#side(a, this.#head(b));
    // Also true for edges on one line: both meet the meridian, so they overlap.
    return b1 * b2 <= 0;
  }

  /** 1 for a vertex north of the edge's line, -1 south of it, 0 on it. */
  #side(edge: number, vertex: number): number {
    const xs = this.#xs;
    const ys = this.#ys;
    const west = this.#westEnd(edge);
    const east = this.#eastEnd(edge);
    const turn = orient2d(xs[west]!, ys[west]!, xs[east]!, ys[east]!, xs[vertex]!, ys[vertex]!);
    return turn < 0 ? 1 : turn > 0 ? -1 : 0;
  }

  /** Whether edge a runs north of edge b, both starting at the vertex. */
  #isAbove(a: number, b: number, vertex: number): boolean {
    return this.#side(b, a === vertex ? this.#head(a) : a) > 0;
  }

  #westEnd(edge: number): number {
    const head = this.#head(edge);
    return this.#precedes(head, edge) ? head : edge;
  }

  #eastEnd(edge: number): number {
    const head = this.#head(edge);
    return this.#precedes(head, edge) ? edge : head;
  }

  /** The vertex where an edge ends, in the chain's own direction. */
  #head(edge: number): number {
    return this.#closed && edge === this.#edgeCount - 1 ? 0 : edge + 1;
  }

  #precedes(a: number, b: number): boolean {
    const xs = this.#xs;
    return xs[a]! < xs[b]! || (xs[a]! === xs[b]! && this.#ys[a]! < this.#ys[b]!);
  }
}

const NONE = -1;
