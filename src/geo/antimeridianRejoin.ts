import { crossesAntimeridian } from './antimeridianCut.ts';
import { ringAreaM2, ringMeasures } from './measure.ts';
import { doublePlanarArea, type Ring, unwrapRing } from './path.ts';
import type { LatLng } from './wgs84.ts';

type Line = readonly LatLng[];

export interface RejoinedRings {
  readonly rings: readonly Line[];
  /** Whether the joined parts enclose something that is not part of the area. It is filled. */
  readonly holesDropped: boolean;
}

/**
 * Undoes cutRing. The exterior rings of a GeoJSON (Multi)Polygon, without their closing repetition, are joined where a
 * side on 180 lies against one on -180, of another ring or of the same. Points that only the cut has added are removed.
 *
 * Rings that meet no other come back as they are. So do all rings when joining would change the area: where parts
 * overlap, and for a band around the Earth, which no single ring can bound.
 */
export function rejoinRings(parts: readonly Line[]): RejoinedRings {
  const untouched = { rings: parts, holesDropped: false };
  const graph = buildCrossingGraph(parts);
  const crossings = findCrossings(graph);
  if (!crossings || crossings.length === 0) return untouched;

  const touched = new Set(
    crossings.flatMap(({ westSouth, eastSouth }) => [graph.part[westSouth]!, graph.part[eastSouth]!]),
  );
  const joined = walkRings(graph, crossings, touched);
  const joinedM2 = joined.reduce((sum, ring) => sum + ring.areaM2, 0);
  const before = Array.from(touched, (part) => unwrapRing(parts[part]!));
  if (!isSameArea(before, joinedM2)) return untouched;

  const outer = joined.filter((ring) => ring.areaM2 > 0);
  const others = parts.map((points, part) => ({ points, part })).filter(({ part }) => !touched.has(part));
  const rings = [...others, ...outer].sort((a, b) => a.part - b.part).map(({ points }) => points);
  return { rings, holesDropped: outer.length < joined.length };
}

/**
 * Whether the rings have this area together, within the accuracy of their measures and of their vertices: rounding
 * moves a boundary by some nanometres, which counts where a ring is long and thin.
 */
function isSameArea(rings: readonly Ring[], areaM2: number): boolean {
  let sumM2 = 0;
  let toleranceM2 = 0;
  for (const ring of rings) {
    const measures = ringMeasures(ring);
    sumM2 += measures.areaM2;
    toleranceM2 += AREA_TOLERANCE * measures.areaM2 + ROUNDING_M * measures.perimeterM;
  }
  return Math.abs(areaM2 - sumM2) <= toleranceM2;
}

const AREA_TOLERANCE = 1e-9;
/** 180 degrees are rounded to 3 nm, and so may be each vertex and each crossing. */
const ROUNDING_M = 1e-8;

interface JoinedRing {
  readonly points: readonly LatLng[];
  /** The first of the parts from which it is made. */
  readonly part: number;
  /** Negative for a hole. */
  readonly areaM2: number;
}

/** Follows the rings. At each crossing the walk changes to the other side of the antimeridian. */
function walkRings(
  graph: CrossingGraph,
  crossings: readonly Crossing[],
  touched: ReadonlySet<number>,
): JoinedRing[] {
  const across = new Map<number, number>();
  for (const { westSouth, eastSouth, westNorth, eastNorth } of crossings) {
    across.set(westSouth, eastSouth);
    across.set(eastNorth, westNorth);
  }
  const seen = new Set<number>();
  const rings: JoinedRing[] = [];
  for (const [start, point] of graph.points.entries()) {
    if (Math.abs(point.lng) === 180 || seen.has(start) || !touched.has(graph.part[start]!)) continue;
    const corners: Corner[] = [];
    let part = graph.part[start]!;
    for (let reached = start, left = start; !seen.has(left); ) {
      seen.add(left);
      part = Math.min(part, graph.part[left]!);
      corners.push({ reached: graph.points[reached]!, left: graph.points[left]! });
      reached = graph.next[left]!;
      left = reached;
      // Two crossings can meet in a point.
      for (let other = across.get(left); other !== undefined; other = across.get(left)) left = other;
    }
    const points = withoutCuts(corners);
    // This is the rest of a cut that ran along the pole.
    if (points.every(({ lat }) => Math.abs(lat) === 90 && lat === point.lat)) continue;
    rings.push({ points, part, areaM2: signedAreaM2(points) });
  }
  return rings;
}

/**
 * A vertex as the end of the edge that reaches it, and as the start of the edge that leaves it. At a crossing one is
 * written with 180 and the other with -180.
 */
interface Corner {
  readonly reached: LatLng;
  readonly left: LatLng;
}

/** The vertices of a ring, without those that cutting has added on edges across the antimeridian or along a pole. */
function withoutCuts(corners: readonly Corner[]): LatLng[] {
  const points: LatLng[] = [];
  for (const [i, { reached, left }] of corners.entries()) {
    const before = corners[(i + corners.length - 1) % corners.length]!.left;
    const after = corners[(i + 1) % corners.length]!.reached;
    if (reached.lng === left.lng || !isCut(before, reached, left, after)) {
      // The longitudes of an edge of exactly 180° decide which way it goes, so the vertex is written as on its longer
      // edge.
      points.push(Math.abs(reached.lng - before.lng) > Math.abs(after.lng - left.lng) ? reached : left);
    }
  }
  return points.filter(({ lat, lng }, i) => lat !== points.at(i - 1)!.lat || lng !== points.at(i - 1)!.lng);
}

function isCut(before: LatLng, reached: LatLng, left: LatLng, after: LatLng): boolean {
  if (Math.abs(left.lat) === 90) {
    // Between other vertices on the pole, or a repetition of one of them.
    if (before.lat === left.lat && after.lat === left.lat) return true;
    if (isTurnedFrom(before, reached) || isTurnedFrom(after, left)) return true;
  }
  return reached.lng > 0
    ? crossesAntimeridian(before, left.lat, after)
    : crossesAntimeridian(after, left.lat, before);
}

function isTurnedFrom(a: LatLng, b: LatLng): boolean {
  return a.lat === b.lat && Math.abs(a.lng - b.lng) === 360;
}

function signedAreaM2(points: readonly LatLng[]): number {
  const ring = unwrapRing(points);
  const areaM2 = ringAreaM2(ring);
  return ring.pole || doublePlanarArea(ring.lngs, ring.lats) > 0 ? areaM2 : -areaM2;
}

/**
 * The vertices of some rings as linked nodes, all rings counter-clockwise. Nodes can be inserted into sides on the
 * antimeridian, and links can lead across it.
 */
interface CrossingGraph {
  readonly points: LatLng[];
  readonly next: number[];
  /** The index of the ring that a node comes from. */
  readonly part: number[];
  /** Sides on 180 with the inside to their west, sorted from south to north. */
  readonly western: CrossingSide[];
  /** Sides on -180 with the inside to their east, sorted from south to north. */
  readonly eastern: CrossingSide[];
}

/**
 * A side on the antimeridian. Counter-clockwise rings run along western sides northward, along eastern ones southward.
 */
interface CrossingSide {
  southLat: number;
  northLat: number;
  southNode: number;
  northNode: number;
}

/** The part that a western and an eastern side have in common, by the nodes at both of its ends. */
interface Crossing {
  readonly westSouth: number;
  readonly eastSouth: number;
  readonly westNorth: number;
  readonly eastNorth: number;
}

/** Links the rings that have sides on the antimeridian; the others are left out. */
function buildCrossingGraph(parts: readonly Line[]): CrossingGraph {
  const graph: CrossingGraph = { points: [], next: [], part: [], western: [], eastern: [] };
  for (const [index, part] of parts.entries()) {
    if (part.some((point, i) => isOnAntimeridian(point, part[(i + 1) % part.length]!))) {
      addRing(graph, part, index);
    }
  }
  const northward = (a: CrossingSide, b: CrossingSide) => a.southLat - b.southLat;
  graph.western.sort(northward);
  graph.eastern.sort(northward);
  return graph;
}

function addRing(graph: CrossingGraph, part: Line, index: number): void {
  const lngs = part.map((point) => point.lng);
  const lats = part.map((point) => point.lat);
  const ring = doublePlanarArea(lngs, lats) < 0 ? part.toReversed() : part;
  const first = graph.points.length;
  for (const [i, from] of ring.entries()) {
    const to = ring[(i + 1) % ring.length]!;
    const [node, nextNode] = [first + i, first + ((i + 1) % ring.length)];
    graph.points.push(from);
    graph.next.push(nextNode);
    graph.part.push(index);
    if (!isOnAntimeridian(from, to)) continue;
    if (from.lng === 180 && from.lat < to.lat) {
      graph.western.push({ southLat: from.lat, northLat: to.lat, southNode: node, northNode: nextNode });
    } else if (from.lng === -180 && from.lat > to.lat) {
      graph.eastern.push({ southLat: to.lat, northLat: from.lat, southNode: nextNode, northNode: node });
    }
  }
}

function isOnAntimeridian(a: LatLng, b: LatLng): boolean {
  return Math.abs(a.lng) === 180 && a.lng === b.lng && a.lat !== b.lat;
}

/**
 * Finds the common parts, from south to north, and makes their ends nodes of both sides. Null where sides overlap.
 */
function findCrossings(graph: CrossingGraph): Crossing[] | null {
  const { western, eastern } = graph;
  if (isOverlapping(western) || isOverlapping(eastern)) return null;
  const crossings: Crossing[] = [];
  for (let i = 0, j = 0; i < western.length && j < eastern.length; ) {
    const west = western[i]!;
    const east = eastern[j]!;
    const south = Math.max(west.southLat, east.southLat);
    const north = Math.min(west.northLat, east.northLat);
    if (south < north) {
      crossings.push({
        westSouth: nodeAt(graph, west, south, true),
        eastSouth: nodeAt(graph, east, south, false),
        westNorth: nodeAt(graph, west, north, true),
        eastNorth: nodeAt(graph, east, north, false),
      });
    }
    if (west.northLat <= east.northLat) i++;
    else j++;
  }
  return crossings;
}

function isOverlapping(sides: readonly CrossingSide[]): boolean {
  return sides.some((side, i) => i > 0 && side.southLat < sides[i - 1]!.northLat);
}

/** The node of a side at a latitude, inserted where there is none. Latitudes must come from south to north. */
function nodeAt(graph: CrossingGraph, side: CrossingSide, lat: number, isWestern: boolean): number {
  if (lat === side.southLat) return side.southNode;
  if (lat === side.northLat) return side.northNode;
  const node = graph.points.length;
  graph.points.push({ lat, lng: isWestern ? 180 : -180 });
  graph.part.push(graph.part[side.southNode]!);
  graph.next.push(isWestern ? side.northNode : side.southNode);
  graph.next[isWestern ? side.southNode : side.northNode] = node;
  side.southLat = lat;
  side.southNode = node;
  return node;
}

/**
 * Undoes cutLine. Lines of a GeoJSON MultiLineString are joined where one ends on 180 and another starts on -180 at the
 * same latitude, or the other way round. Points that only the cut has added are removed. The order of the lines is
 * free; where several start at the same position, the one that follows in the list is joined. Directions are kept.
 */
export function rejoinLines(parts: readonly Line[]): Line[] {
  const following = linkEnds(parts);
  const followers = new Set(following.values());
  const used = new Set<number>();
  const lines: Line[] = [];
  // First the lines that continue no other. The rest are closed loops, which may start anywhere.
  const all = [...parts.keys()];
  for (const start of [...all.filter((k) => !followers.has(k)), ...all]) {
    if (used.has(start)) continue;
    used.add(start);
    const line = [...parts[start]!];
    for (let k = following.get(start); k !== undefined && !used.has(k); k = following.get(k)) {
      used.add(k);
      append(line, parts[k]!);
    }
    lines.push(line);
  }
  return lines;
}

/** For each line that ends on the antimeridian, the line that continues it on the other side. */
function linkEnds(parts: readonly Line[]): Map<number, number> {
  const waiting = new Map<string, Set<number>>();
  for (const [k, line] of parts.entries()) {
    const start = line[0];
    if (!start || Math.abs(start.lng) !== 180) continue;
    const key = positionKey(start.lat, start.lng);
    waiting.set(key, (waiting.get(key) ?? new Set()).add(k));
  }
  const links = new Map<number, number>();
  for (const [k, line] of parts.entries()) {
    const end = line[line.length - 1];
    const starters = end && waiting.get(positionKey(end.lat, -end.lng));
    if (!starters) continue;
    const follower = starters.has(k + 1) ? k + 1 : starters.values().next().value;
    if (follower === undefined || follower === k) continue;
    starters.delete(follower);
    links.set(k, follower);
  }
  return links;
}

const positionKey = (lat: number, lng: number): string => `${lng} ${lat}`;

/** Both lines have the point on the antimeridian. It is dropped if cutting has added it to an edge. */
function append(line: LatLng[], next: Line): void {
  const shared = line[line.length - 1]!;
  const before = line[line.length - 2];
  const after = next[1];
  if (before && after) {
    const [west, east] = shared.lng > 0 ? [before, after] : [after, before];
    if (crossesAntimeridian(west, shared.lat, east)) line.pop();
  }
  for (let i = 1; i < next.length; i++) line.push(next[i]!);
}
