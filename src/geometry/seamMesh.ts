import type { LatLng } from './latLng.ts';
import { doublePlanarArea } from './planarArea.ts';

type Points = readonly LatLng[];

/** The vertices of some rings as linked nodes: what lies on the seam can be split, and bypassed. */
export interface SeamMesh {
  readonly points: LatLng[];
  readonly next: number[];
  /** The ring that a node comes from, by its place in the input. */
  readonly part: number[];
  /** Sides on 180 with the inside to their west, and on -180 with the inside to their east; each from south to north. */
  readonly western: SeamSide[];
  readonly eastern: SeamSide[];
}

/** A side on the seam. Nodes are counter-clockwise: western sides run from south to north, eastern ones back. */
export interface SeamSide {
  southLat: number;
  northLat: number;
  southNode: number;
  northNode: number;
}

/** Where a western and an eastern side lie against each other: the nodes at both ends of the common stretch. */
export interface SeamJoint {
  readonly westSouth: number;
  readonly eastSouth: number;
  readonly westNorth: number;
  readonly eastNorth: number;
}

/** Links the rings that have sides on the seam; the others are left out. */
export function buildSeamMesh(parts: readonly Points[]): SeamMesh {
  const mesh: SeamMesh = { points: [], next: [], part: [], western: [], eastern: [] };
  for (const [index, part] of parts.entries()) {
    if (part.some((point, i) => onOneSide(point, part[(i + 1) % part.length]!))) addRing(mesh, part, index);
  }
  const northward = (a: SeamSide, b: SeamSide) => a.southLat - b.southLat;
  mesh.western.sort(northward);
  mesh.eastern.sort(northward);
  return mesh;
}

function addRing(mesh: SeamMesh, part: Points, index: number): void {
  const lngs = part.map((point) => point.lng);
  const lats = part.map((point) => point.lat);
  const ring = doublePlanarArea(lngs, lats) < 0 ? part.toReversed() : part;
  const first = mesh.points.length;
  for (const [i, from] of ring.entries()) {
    const to = ring[(i + 1) % ring.length]!;
    const [node, nextNode] = [first + i, first + ((i + 1) % ring.length)];
    mesh.points.push(from);
    mesh.next.push(nextNode);
    mesh.part.push(index);
    if (!onOneSide(from, to)) continue;
    if (from.lng === 180 && from.lat < to.lat) {
      mesh.western.push({ southLat: from.lat, northLat: to.lat, southNode: node, northNode: nextNode });
    } else if (from.lng === -180 && from.lat > to.lat) {
      mesh.eastern.push({ southLat: to.lat, northLat: from.lat, southNode: nextNode, northNode: node });
    }
  }
}

function onOneSide(a: LatLng, b: LatLng): boolean {
  return Math.abs(a.lng) === 180 && a.lng === b.lng && a.lat !== b.lat;
}

/** The common stretches, from south to north, their ends made nodes on both sides. Null where sides overlap. */
export function findJoints(mesh: SeamMesh): SeamJoint[] | null {
  const { western, eastern } = mesh;
  if (overlapping(western) || overlapping(eastern)) return null;
  const joints: SeamJoint[] = [];
  for (let i = 0, j = 0; i < western.length && j < eastern.length; ) {
    const west = western[i]!;
    const east = eastern[j]!;
    const south = Math.max(west.southLat, east.southLat);
    const north = Math.min(west.northLat, east.northLat);
    if (south < north) {
      joints.push({
        westSouth: nodeAt(mesh, west, south, true),
        eastSouth: nodeAt(mesh, east, south, false),
        westNorth: nodeAt(mesh, west, north, true),
        eastNorth: nodeAt(mesh, east, north, false),
      });
    }
    if (west.northLat <= east.northLat) i++;
    else j++;
  }
  return joints;
}

function overlapping(sides: readonly SeamSide[]): boolean {
  return sides.some((side, i) => i > 0 && side.southLat < sides[i - 1]!.northLat);
}

/** The node of a side at a latitude, put in where there is none; latitudes must be asked for from south to north. */
function nodeAt(mesh: SeamMesh, side: SeamSide, lat: number, western: boolean): number {
  if (lat === side.southLat) return side.southNode;
  if (lat === side.northLat) return side.northNode;
  const node = mesh.points.length;
  mesh.points.push({ lat, lng: western ? 180 : -180 });
  mesh.part.push(mesh.part[side.southNode]!);
  mesh.next.push(western ? side.northNode : side.southNode);
  mesh.next[western ? side.southNode : side.northNode] = node;
  side.southLat = lat;
  side.southNode = node;
  return node;
}
