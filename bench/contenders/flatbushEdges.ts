import Flatbush from 'flatbush';
import { orient2d } from 'robust-predicates';
import { buildEdgeIndex, VERTEX_STRIDE } from '../../src/geo/edgeIndex.ts';
import { improveProjection, type Projection, ReachBox } from '../../src/geo/edgeProjection.ts';
import { circleBounds } from '../../src/geo/measure.ts';
import type { Ring } from '../../src/geo/path.ts';
import { distanceM, RADIANS_PER_DEGREE, writeSurfacePoint } from '../../src/geo/wgs84.ts';

/**
 * The contender of our edge index: the boxes of the edges in Flatbush. Both questions are answered exactly, with the
 * same arithmetic for a single edge, so only the choice of edges differs. For rings that are less than 180° wide and
 * not around a pole, and distances up to 200 km.
 */
export class FlatbushEdges {
  readonly #ring: Ring;
  readonly #index: Flatbush;
  /** lng, lat, x, y, z and the tolerance of each edge, as in our index. */
  readonly #vertices: Float64Array;
  /** Longitudes are multiplied by it, so that boxes have about the shape that they have on the ground. */
  readonly #scale: number;
  readonly #middle: number;

  constructor(ring: Ring) {
    const { lngs, lats } = ring;
    this.#ring = ring;
    this.#vertices = buildEdgeIndex(ring).vertices;
    this.#scale = Math.cos(lats[0]! * RADIANS_PER_DEGREE);
    this.#middle = (Math.min(...lngs) + Math.max(...lngs)) / 2;
    this.#index = indexEdges(ring, this.#scale);
  }

  /** Whether a position is inside or on the boundary: the crossing rule with a ray to the south. */
  contains(lat: number, lng: number): boolean {
    const { lngs, lats } = this.#ring;
    const x = this.#lngBeside(lng);
    let isInside = false;
    for (const edge of this.#index.search(x * this.#scale, -90, x * this.#scale, lat)) {
      const [ax, bx] = [lngs[edge]!, lngs[edge + 1]!];
      const [ay, by] = [lats[edge]!, lats[edge + 1]!];
      const turn = orient2d(ax, ay, bx, by, x, lat);
      const isLevel = lat <= Math.max(ay, by);
      if (turn === 0 && isLevel && x >= Math.min(ax, bx) && x <= Math.max(ax, bx)) return true;
      if (ax <= x !== bx <= x && turn < 0 === ax < bx) isInside = !isInside;
    }
    return isInside;
  }

  /** Metres to the nearest edge: first that of the nearest box, then all whose box is at most as far away. */
  nearestM(lat: number, lng: number): number {
    const x = this.#lngBeside(lng);
    writeSurfacePoint(lat, lng, ecef, 0);
    box.reset(lat, lng, Number.POSITIVE_INFINITY);
    nearest.distanceM = Number.POSITIVE_INFINITY;
    nearest.halvings = 0;
    const [first = 0] = this.#index.neighbors(x * this.#scale, lat, 1);
    this.#improve(first);
    const boundM = distanceM(lat, lng, nearest.lat, nearest.lng);
    const { south, north, west, east } = circleBounds({ lat, lng }, boundM);
    const half = ((east - west + 360) % 360) / 2;
    const [from, to] = [(x - half) * this.#scale, (x + half) * this.#scale];
    for (const edge of this.#index.search(from, south, to, north)) this.#improve(edge);
    return distanceM(lat, lng, nearest.lat, nearest.lng);
  }

  #improve(edge: number): void {
    const point = { x: ecef[0]!, y: ecef[1]!, z: ecef[2]!, zScale: 1 };
    improveProjection(this.#vertices, edge * VERTEX_STRIDE, point, nearest, box);
  }

  #lngBeside(lng: number): number {
    return lng + 360 * Math.round((this.#middle - lng) / 360);
  }
}

/** The boxes of all edges of a ring, longitudes multiplied by `scale`. */
export function indexEdges({ lngs, lats }: Ring, scale: number): Flatbush {
  const index = new Flatbush(lngs.length - 1);
  for (let i = 1; i < lngs.length; i++) {
    const [ax, bx] = [lngs[i - 1]! * scale, lngs[i]! * scale];
    const [ay, by] = [lats[i - 1]!, lats[i]!];
    index.add(Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by));
  }
  index.finish();
  return index;
}

// Scratch of one search.
const ecef = new Float64Array(3);
const box = new ReachBox();
const nearest: Projection = { distanceM: 0, isFound: false, lat: 0, lng: 0, halvings: 0 };
