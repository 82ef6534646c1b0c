import type { LatLng } from '../latLng.ts';
import { doublePlanarArea } from '../planarArea.ts';

type Points = readonly LatLng[];

/**
 * The vertices of some rings as linked nodes, all rings counter-clockwise. Nodes can be inserted into sides on the
 * antimeridian, and links can lead across it.
 */
export interface CrossingGraph {
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
export interface CrossingSide {
  southLat: number;
  northLat: number;
  southNode: number;
  northNode: number;
}

/** A stretch that a western and an eastern side have in common, by the nodes at both of its ends. */
export interface Crossing {
  readonly westSouth: number;
  readonly eastSouth: number;
  readonly westNorth: number;
  readonly eastNorth: number;
}

/** Links the rings that have sides on the antimeridian; the others are left out. */
export function buildCrossingGraph(parts: readonly Points[]): CrossingGraph {
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

function addRing(graph: CrossingGraph, part: Points, index: number): void {
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
 * Finds the common stretches, from south to north, and makes their ends nodes of both sides. Null where sides overlap.
 */
export function findCrossings(graph: CrossingGraph): Crossing[] | null {
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
