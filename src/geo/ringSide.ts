import { orient2d } from 'robust-predicates';
import type { EdgeIndex, RingIndex } from './edgeIndex.ts';
import { FANOUT_BITS, RUN_STRIDE, runsAt, STRIP_STRIDE, VERTEX_STRIDE } from './edgeIndex.ts';
import type { Pole } from './path.ts';

export type Side = 'in' | 'on' | 'out';

/**
 * Where a position is: inside, on an edge or vertex, or outside. Degrees, lat -90 to 90, lng -180 to 180. Exact:
 * orientation is decided by J. R. Shewchuk's adaptive predicates, not within a tolerance. O(log n) when only a few
 * edges cross the position's meridian to the south of it; see buildEdgeIndex.
 *
 * Counts the edges due south of the position: the crossing rule, with a ray to the south pole. An edge includes its
 * western end but not its eastern one. The ray stays on its meridian, so a ring around a pole needs no cut; if the
 * south pole is inside, odd and even change places.
 */
export function ringSide(ring: RingIndex, lat: number, lng: number): Side {
  if (Math.abs(lat) === 90) return poleSide(ring, lat > 0 ? 'north' : 'south');
  let inside = ring.pole === 'south';
  const at = ring.pole === null ? lng : countedLng(ring, lng);
  // The ring starts in [-180, 180) and is less than two turns wide: it may contain up to three copies of a position.
  let turn = at - 360 >= ring.west ? -1 : at >= ring.west ? 0 : 1;
  for (let x = at + 360 * turn; x <= ring.east; x = at + 360 * ++turn) {
    const crossings = crossingsSouth(ring.edges, x, lat);
    if (crossings === ON_EDGE) return 'on';
    if (crossings === ODD) inside = !inside;
  }
  return inside ? 'in' : 'out';
}

/**
 * The longitude itself, but for one so little to the west of where a ring around a pole begins that 360° further it is
 * rounded to the end of the ring, where no edge is counted: it counts as the beginning, some nanometres away.
 */
function countedLng({ edges: { vertices, edgeCount } }: RingIndex, lng: number): number {
  const [from, to] = [vertices[0]!, vertices[edgeCount * VERTEX_STRIDE]!];
  const west = Math.min(from, to);
  return lng < west && lng + 360 >= Math.max(from, to) ? west : lng;
}

function poleSide(ring: RingIndex, pole: Pole): Side {
  if (ring.poleVertices.includes(pole)) return 'on';
  return ring.pole === pole ? 'in' : 'out';
}

const EVEN = 0;
const ODD = 1;
const ON_EDGE = -1;

/** Where a point is, as seen from a run. If it is north, only the ends of the run matter. */
const [NORTH, BESIDE, SOUTH] = [1, 0, -1] as const;

/**
 * EVEN or ODD crossings, or ON_EDGE. Only runs whose box holds the point are opened. A run that is south as a whole
 * crosses the meridian an odd number of times exactly when its ends are on different sides of it.
 */
function crossingsSouth(edges: EdgeIndex, x: number, y: number): number {
  const { edgeCount, vertices, runs, levels } = edges;
  let odd = EVEN;
  let depth = 0;
  let level = levels.length;
  let from = 0;
  let to = runsAt(edgeCount, level);
  for (;;) {
    if (level === 0) {
      const crossings = edgeCrossings(vertices, from, to, x, y);
      if (crossings === ON_EDGE) return ON_EDGE;
      odd ^= crossings;
    } else {
      const bits = FANOUT_BITS * level;
      for (let k = from; k < to; k++) {
        const at = (levels[level - 1]! + k) * RUN_STRIDE;
        if (x < runs[at]! || x > runs[at + 2]! || y < runs[at + 1]!) continue;
        const side =
          y > runs[at + 3]! ? NORTH : edges.isLong ? stripSide(edges, levels[level - 1]! + k, x, y) : BESIDE;
        if (side === SOUTH) continue;
        if (side === BESIDE) {
          stackRuns[depth] = k;
          stackLevels[depth++] = level;
        } else {
          const end = Math.min((k + 1) << bits, edgeCount);
          odd ^= crosses(vertices[(k << bits) * VERTEX_STRIDE]!, vertices[end * VERTEX_STRIDE]!, x);
        }
      }
    }
    if (depth === 0) return odd;
    depth--;
    level = stackLevels[depth]! - 1;
    from = stackRuns[depth]! << FANOUT_BITS;
    to = Math.min(from + (1 << FANOUT_BITS), runsAt(edgeCount, level));
  }
}

/** Where a point is, as seen from the strip of a run: outside of the strip, the whole run is on one side of it. */
function stripSide({ strips }: EdgeIndex, run: number, x: number, y: number): number {
  const at = run * STRIP_STRIDE;
  const across = strips[at]! * x + strips[at + 1]! * y;
  if (across >= strips[at + 2]! && across <= strips[at + 3]!) return BESIDE;
  return across > strips[at + 3]! === strips[at + 1]! > 0 ? NORTH : SOUTH;
}

function edgeCrossings(vertices: Float64Array, from: number, to: number, x: number, y: number): number {
  let odd = EVEN;
  for (let a = from * VERTEX_STRIDE; a < to * VERTEX_STRIDE; a += VERTEX_STRIDE) {
    const ax = vertices[a]!;
    const bx = vertices[a + VERTEX_STRIDE]!;
    if ((x < ax && x < bx) || (x > ax && x > bx)) continue;
    const ay = vertices[a + 1]!;
    const by = vertices[a + VERTEX_STRIDE + 1]!;
    if (y < ay && y < by) continue;
    if (y <= ay || y <= by) {
      // Negative: the position is to the left of the edge.
      const turn = orient2d(ax, ay, bx, by, x, y);
      if (turn === 0) return ON_EDGE;
      if (turn < 0 !== ax < bx) continue;
    }
    odd ^= crosses(ax, bx, x);
  }
  return odd;
}

function crosses(fromX: number, toX: number, x: number): number {
  return fromX <= x === toX <= x ? EVEN : ODD;
}

/** A level leaves at most four runs open; 31 bits of edges have 15 levels. */
const STACK_SIZE = 64;
const stackRuns = new Int32Array(STACK_SIZE);
const stackLevels = new Int32Array(STACK_SIZE);
