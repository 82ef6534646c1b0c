import { orient2d } from 'robust-predicates';
import type { LatLng } from './latLng.ts';
import { placePath } from './path.ts';
import { doublePlanarArea } from './planarArea.ts';
import type { Ring } from './ring.ts';
import { panelOf, pointInPanel, seamLat } from './seam.ts';

/**
 * A polygon's ring as GeoJSON rings that do not cross the antimeridian (RFC 7946, 3.1.9 and 3.1.6): cut there into
 * parts, each counter-clockwise and without its closing repetition. A ring around a pole becomes one part or more
 * that run along the antimeridian to the pole, along it, and back. The ring must be valid (isSelfIntersecting).
 */
export function cutRing(given: Ring): LatLng[][] {
  const ring = openAtPole(isCounterClockwise(given) ? given : reversed(given));
  if (!ring.pole && ring.lngs.every((lng) => lng <= 180)) {
    return [ring.points.map((_, i) => pointInPanel(ring, i, 0))];
  }
  const seam = seamCrossings(ring);
  const used = new Set<Crossing>();
  const parts: LatLng[][] = [];
  for (const crossing of seam.alongRing) {
    if (used.has(crossing)) continue;
    const part = followPart(ring, seam, crossing, used);
    // A side along the seam leaves nothing but a line west of it.
    if (part.some((point) => Math.abs(point.lng) !== 180)) parts.push(part);
  }
  return parts;
}

interface Crossing {
  /** The edge that crosses, by its first vertex. */
  readonly edge: number;
  readonly lat: number;
  readonly eastward: boolean;
  /** The end of the edge that is not on the seam, or either; degrees east of the seam and north. */
  readonly beside: { readonly x: number; readonly y: number };
}

interface Seam {
  readonly panels: Int32Array;
  readonly alongRing: readonly Crossing[];
  readonly northward: readonly Crossing[];
}

function seamCrossings(ring: Ring): Seam {
  const panels = vertexPanels(ring);
  const alongRing: Crossing[] = [];
  for (let i = 0; i < ring.points.length; i++) {
    const from = panels[i]!;
    const to = panels[i + 1]!;
    if (from === to) continue;
    const eastward = to > from;
    const west = pointInPanel(ring, eastward ? i : i + 1, Math.min(from, to));
    const east = pointInPanel(ring, eastward ? i + 1 : i, Math.max(from, to));
    const beside =
      east.lng === -180 ? { x: west.lng - 180, y: west.lat } : { x: east.lng + 180, y: east.lat };
    alongRing.push({ edge: i, lat: seamLat(west, east), eastward, beside });
  }
  return { panels, alongRing, northward: alongRing.toSorted(northward) };
}

/** From south to north; two edges from one point of the seam by what lies north beside it, where both go. */
function northward(a: Crossing, b: Crossing): number {
  if (a.lat !== b.lat) return a.lat - b.lat;
  const turn = orient2d(0, a.lat, a.beside.x, a.beside.y, b.beside.x, b.beside.y);
  return a.beside.x > 0 ? turn : -turn;
}

/**
 * The panel of each vertex. On the seam, vertices in a row belong where the inside is: west of it when they go north,
 * east of it when they go south. A single one that the ring touches from one side is taken as lying beyond: so a
 * part is divided where its ring touches the seam, instead of meeting itself there.
 */
function vertexPanels(ring: Ring): Int32Array {
  const n = ring.points.length;
  const westerly = Int32Array.from(ring.lngs, (_, i) => panelOf(ring, i));
  const panels = westerly.slice();
  const panelAt = (i: number) => westerly[i % n]! + ring.turns * Math.floor(i / n);
  const onSeam = (i: number) => Math.abs(ring.points[i % n]!.lng) === 180;
  const start = ring.points.findIndex((_, i) => !onSeam(i));
  for (let i = start + 1, before = start; i <= start + n; i++) {
    if (onSeam(i)) continue;
    const first = before + 1;
    const rise = ring.lats[(i - 1) % n]! - ring.lats[first % n]!;
    const touching = panelAt(before) === panelAt(first) && panelAt(i) === panelAt(first);
    const easterly = rise < 0 || (first === i - 1 && touching);
    for (let k = first; easterly && k < i; k++) panels[k % n] = westerly[k % n]! + 1;
    before = i;
  }
  panels[n] = panels[0]! + ring.turns;
  return panels;
}

/**
 * One part, starting with the stretch of ring after a crossing. Where a stretch comes back to the seam the inside is
 * on its left, so the part goes on along the seam, northward if it came from the west, southward if from the east,
 * to the next crossing; or to the pole, where there is none.
 */
function followPart(ring: Ring, seam: Seam, start: Crossing, used: Set<Crossing>): LatLng[] {
  const part: LatLng[] = [];
  let at = start;
  while (!used.has(at)) {
    used.add(at);
    const end = seam.alongRing[(seam.alongRing.indexOf(at) + 1) % seam.alongRing.length]!;
    append(part, { lat: at.lat, lng: at.eastward ? -180 : 180 });
    for (const point of stretch(ring, seam.panels, at.edge, end.edge)) append(part, point);
    const edge = end.eastward ? 180 : -180;
    append(part, { lat: end.lat, lng: edge });

    const next = seam.northward[seam.northward.indexOf(end) + (end.eastward ? 1 : -1)];
    if (!next) {
      const pole = end.eastward ? 90 : -90;
      append(part, { lat: pole, lng: edge });
      append(part, { lat: pole, lng: -edge });
    }
    at = next ?? end;
  }
  if (samePosition(part[0]!, part[part.length - 1]!)) part.pop();
  return part;
}

/** The vertices after one edge, up to the first of another. */
function stretch(ring: Ring, panels: Int32Array, afterEdge: number, toEdge: number): LatLng[] {
  const n = ring.points.length;
  const count = ((toEdge - afterEdge - 1 + n) % n) + 1;
  return Array.from({ length: count }, (_, k) => {
    const vertex = (afterEdge + 1 + k) % n;
    return pointInPanel(ring, vertex, panels[vertex]!);
  });
}

function append(part: LatLng[], point: LatLng): void {
  const last = part[part.length - 1];
  if (!last || !samePosition(last, point)) part.push(point);
}

function samePosition(a: LatLng, b: LatLng): boolean {
  return a.lat === b.lat && a.lng === b.lng;
}

function isCounterClockwise(ring: Ring): boolean {
  if (ring.pole) return ring.turns === (ring.pole === 'north' ? 1 : -1);
  return doublePlanarArea(ring.lngs, ring.lats) > 0;
}

/** The same ring the other way round, from the same vertex. */
function reversed(ring: Ring): Ring {
  const [first, ...rest] = ring.points;
  return {
    lngs: ring.lngs.toReversed(),
    lats: ring.lats.toReversed(),
    points: first ? [first, ...rest.reverse()] : [],
    turns: -ring.turns,
    pole: ring.pole,
  };
}

/** A ring that runs around a pole and through it is a flat one, if it starts there and returns along the pole. */
function openAtPole(ring: Ring): Ring {
  const at = ring.pole ? ring.lats.indexOf(ring.pole === 'north' ? 90 : -90) : -1;
  if (at < 0) return ring;
  const n = ring.points.length;
  const points = Array.from({ length: n + 1 }, (_, k) => ring.points[(at + k) % n]!);
  const turnsAt = (k: number) => {
    const i = (at + k) % n;
    return Math.round((ring.lngs[i]! - ring.points[i]!.lng) / 360) + ring.turns * Math.floor((at + k) / n);
  };
  const turns = Array.from({ length: n + 2 }, (_, k) => turnsAt(k <= n ? k : 0));
  return { ...placePath([...points, points[0]!], turns), points, turns: 0, pole: null };
}
