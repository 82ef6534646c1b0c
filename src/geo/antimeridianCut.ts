import { orient2d } from 'robust-predicates';
import { doublePlanarArea, type Path, placePath, type Ring } from './path.ts';
import type { LatLng } from './wgs84.ts';

/**
 * A polygon's ring as GeoJSON rings that do not cross the antimeridian (RFC 7946, 3.1.9 and 3.1.6). The parts are
 * counter-clockwise and without the closing repetition. A ring around a pole is cut too: its parts run along the
 * antimeridian to the pole, along the pole, and back. The ring must be valid (isSelfIntersecting).
 */
export function cutRing(given: Ring): LatLng[][] {
  const ring = openAtPole(isCounterClockwise(given) ? given : reversed(given));
  if (!ring.pole && ring.lngs.every((lng) => lng <= 180)) {
    return [ring.points.map((_, i) => pointInWorldCopy(ring, i, 0))];
  }
  const worldCopies = vertexWorldCopies(ring);
  const crossings = findCrossings(ring, worldCopies);
  const northward = crossings.toSorted(fromSouthToNorth);
  const used = new Set<EdgeCrossing>();
  const parts: LatLng[][] = [];
  for (const crossing of crossings) {
    if (used.has(crossing)) continue;
    const part = followPart(ring, worldCopies, { crossings, northward }, crossing, used);
    // A side along the antimeridian has a part without an interior on its other side.
    if (part.some((point) => Math.abs(point.lng) !== 180)) parts.push(part);
  }
  return parts;
}

/** Where an edge of the ring crosses the antimeridian. */
interface EdgeCrossing {
  /** The edge, by its first vertex. */
  readonly edge: number;
  readonly lat: number;
  readonly isEastward: boolean;
  /** An end of the edge that is not on the antimeridian, in degrees east of the antimeridian and north. */
  readonly beside: { readonly x: number; readonly y: number };
}

/** In the order of the ring. */
function findCrossings(ring: Ring, worldCopies: Int32Array): EdgeCrossing[] {
  const crossings: EdgeCrossing[] = [];
  for (let i = 0; i < ring.points.length; i++) {
    const from = worldCopies[i]!;
    const to = worldCopies[i + 1]!;
    if (from === to) continue;
    const isEastward = to > from;
    const west = pointInWorldCopy(ring, isEastward ? i : i + 1, Math.min(from, to));
    const east = pointInWorldCopy(ring, isEastward ? i + 1 : i, Math.max(from, to));
    const beside =
      east.lng === -180 ? { x: west.lng - 180, y: west.lat } : { x: east.lng + 180, y: east.lat };
    crossings.push({ edge: i, lat: crossingLat(west, east), isEastward, beside });
  }
  return crossings;
}

/** Of two edges that cross at one point, the one further north beside it is later. */
function fromSouthToNorth(a: EdgeCrossing, b: EdgeCrossing): number {
  if (a.lat !== b.lat) return a.lat - b.lat;
  const turn = orient2d(0, a.lat, a.beside.x, a.beside.y, b.beside.x, b.beside.y);
  return a.beside.x > 0 ? turn : -turn;
}

/**
 * The world copy of each vertex. Vertices in a row on the antimeridian belong to the side where the inside is: west of
 * it when they go north, east of it when they go south. A single vertex with which the ring only touches the
 * antimeridian counts as beyond it. So a part is divided at such a vertex, instead of meeting itself there.
 */
function vertexWorldCopies(ring: Ring): Int32Array {
  const n = ring.points.length;
  const western = Int32Array.from(ring.lngs, (_, i) => worldCopyOf(ring, i));
  const worldCopies = western.slice();
  const copyAt = (i: number) => western[i % n]! + ring.turns * Math.floor(i / n);
  const isOnAntimeridian = (i: number) => Math.abs(ring.points[i % n]!.lng) === 180;
  const start = ring.points.findIndex((_, i) => !isOnAntimeridian(i));
  for (let i = start + 1, before = start; i <= start + n; i++) {
    if (isOnAntimeridian(i)) continue;
    const first = before + 1;
    const rise = ring.lats[(i - 1) % n]! - ring.lats[first % n]!;
    const isTouching = copyAt(before) === copyAt(first) && copyAt(i) === copyAt(first);
    const isEastern = rise < 0 || (first === i - 1 && isTouching);
    for (let k = first; isEastern && k < i; k++) worldCopies[k % n] = western[k % n]! + 1;
    before = i;
  }
  worldCopies[n] = worldCopies[0]! + ring.turns;
  return worldCopies;
}

/**
 * One part, starting with the vertices after a crossing. Where the ring comes back to the antimeridian, the inside is
 * on its left. So the part continues along the antimeridian, northward if it came from the west and southward if it came
 * from the east, to the next crossing, or to the pole when there is none.
 */
function followPart(
  ring: Ring,
  worldCopies: Int32Array,
  { crossings, northward }: Readonly<Record<'crossings' | 'northward', readonly EdgeCrossing[]>>,
  start: EdgeCrossing,
  used: Set<EdgeCrossing>,
): LatLng[] {
  const part: LatLng[] = [];
  let at = start;
  while (!used.has(at)) {
    used.add(at);
    const end = crossings[(crossings.indexOf(at) + 1) % crossings.length]!;
    append(part, { lat: at.lat, lng: at.isEastward ? -180 : 180 });
    for (const point of verticesBetween(ring, worldCopies, at.edge, end.edge)) append(part, point);
    const edge = end.isEastward ? 180 : -180;
    append(part, { lat: end.lat, lng: edge });

    const next = northward[northward.indexOf(end) + (end.isEastward ? 1 : -1)];
    if (!next) {
      const pole = end.isEastward ? 90 : -90;
      append(part, { lat: pole, lng: edge });
      append(part, { lat: pole, lng: -edge });
    }
    at = next ?? end;
  }
  if (samePosition(part[0]!, part[part.length - 1]!)) part.pop();
  return part;
}

function verticesBetween(ring: Ring, worldCopies: Int32Array, afterEdge: number, toEdge: number): LatLng[] {
  const n = ring.points.length;
  const count = ((toEdge - afterEdge - 1 + n) % n) + 1;
  return Array.from({ length: count }, (_, k) => {
    const vertex = (afterEdge + 1 + k) % n;
    return pointInWorldCopy(ring, vertex, worldCopies[vertex]!);
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

/** The same ring in the other direction, starting at the same vertex. */
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

/**
 * A ring around a pole that also passes through it, as an ordinary ring: it starts at the pole and returns along it.
 */
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

// GeoJSON writes the antimeridian as 180 when it is approached from the west and as -180 from the east. The unwrapped
// longitudes of a Path continue beyond it, so the map repeats itself: world copy 0 is -180..180, world copy 1 the next
// 360° to the east, and so on.

/** The world copy of a vertex. One on the antimeridian belongs to the copy west of it. */
export function worldCopyOf(path: Path, vertex: number): number {
  return Math.ceil((path.lngs[vertex]! - 180) / 360);
}

/** A vertex as GeoJSON writes it within a world copy: as it was given, except for the choice between 180 and -180. */
export function pointInWorldCopy(path: Path, vertex: number, worldCopy: number): LatLng {
  const { points, lngs } = path;
  const point = points[vertex % points.length]!;
  if (Math.abs(point.lng) !== 180) return point;
  const lng = lngs[vertex]! - 360 * worldCopy;
  return lng === point.lng ? point : { lat: point.lat, lng };
}

/**
 * The latitude at which an edge crosses the antimeridian, from its ends west and east of it as GeoJSON writes them. The
 * result for an edge is always the same number, so that crossesAntimeridian can recognize what cutting has added.
 */
export function crossingLat(west: LatLng, east: LatLng): number {
  const westward = 180 - west.lng;
  const eastward = east.lng + 180;
  if (eastward === 0) return east.lat;
  const lat = west.lat + (westward / (westward + eastward)) * (east.lat - west.lat);
  return Math.min(Math.max(lat, Math.min(west.lat, east.lat)), Math.max(west.lat, east.lat));
}

/** Whether a point on the antimeridian is only where the edge from `west` to `east` crosses it, and can be removed. */
export function crossesAntimeridian(west: LatLng, lat: number, east: LatLng): boolean {
  // An edge of 180° or more would go the other way.
  return 360 + east.lng - west.lng < 180 && crossingLat(west, east) === lat;
}

/**
 * A polyline as GeoJSON lines that do not cross the antimeridian (RFC 7946, 3.1.9): one line, plus one for each crossing.
 * A polyline that only touches the antimeridian is not cut there.
 */
export function cutLine(path: Path): LatLng[][] {
  const count = path.lngs.length;
  let worldCopy = firstWorldCopy(path);
  let part: LatLng[] = [pointInWorldCopy(path, 0, worldCopy)];
  const parts = [part];
  for (let i = 1; i < count; i++) {
    const isEastward = path.lngs[i]! > 180 + 360 * worldCopy;
    const isWestward = path.lngs[i]! < -180 + 360 * worldCopy;
    if (isEastward || isWestward) {
      const next = worldCopy + (isEastward ? 1 : -1);
      const from = part[part.length - 1]!;
      const to = pointInWorldCopy(path, i, next);
      const lat = isEastward ? crossingLat(from, to) : crossingLat(to, from);
      const edge = isEastward ? 180 : -180;
      if (from.lng !== edge) part.push({ lat, lng: edge });
      part = [{ lat, lng: -edge }];
      parts.push(part);
      worldCopy = next;
    }
    part.push(pointInWorldCopy(path, i, worldCopy));
  }
  return parts;
}

/** The world copy of the first vertex that is not on the antimeridian; those before it are on the border of that copy. */
function firstWorldCopy(path: Path): number {
  for (let i = 0; i < path.lngs.length; i++) {
    if ((path.lngs[i]! - 180) % 360 !== 0) return worldCopyOf(path, i);
  }
  return 0;
}
