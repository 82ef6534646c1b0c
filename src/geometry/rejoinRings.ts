import type { LatLng } from './latLng.ts';
import { ringAreaM2 } from './measure.ts';
import { doublePlanarArea } from './planarArea.ts';
import { unwrapRing } from './ring.ts';
import { seamLat } from './seam.ts';
import { buildSeamMesh, findJoints, type SeamJoint, type SeamMesh } from './seamMesh.ts';

export interface RejoinedRings {
  readonly rings: readonly (readonly LatLng[])[];
  /** Whether joining closed around something that is not part of the area; it is filled. */
  readonly holesDropped: boolean;
}

/**
 * Undoes cutRing: the exterior rings of a GeoJSON (Multi)Polygon, without their closing repetition, are joined where
 * a side on 180 lies against one on -180, of another ring or of the same. Points that only the cut had put in are
 * taken out again. Rings that meet no other so come back as they are, and so do all when joining would not keep the
 * area: parts that overlap, or a band around the Earth, which no single ring can bound.
 */
export function rejoinRings(parts: readonly (readonly LatLng[])[]): RejoinedRings {
  const untouched = { rings: parts, holesDropped: false };
  const mesh = buildSeamMesh(parts);
  const joints = findJoints(mesh);
  if (!joints || joints.length === 0) return untouched;

  const touched = new Set(
    joints.flatMap((joint) => [mesh.part[joint.westSouth]!, mesh.part[joint.eastSouth]!]),
  );
  let areaBefore = 0;
  for (const part of touched) areaBefore += Math.abs(signedAreaM2(parts[part]!));
  const joined = walkRings(mesh, joints, touched);
  const areaAfter = joined.reduce((sum, ring) => sum + ring.areaM2, 0);
  if (!(Math.abs(areaAfter - areaBefore) <= SAME_AREA_SHARE * areaBefore)) return untouched;

  const outer = joined.filter((ring) => ring.areaM2 > 0);
  const others = parts.map((points, part) => ({ points, part })).filter(({ part }) => !touched.has(part));
  const rings = [...others, ...outer].sort((a, b) => a.part - b.part).map(({ points }) => points);
  return { rings, holesDropped: outer.length < joined.length };
}

interface JoinedRing {
  readonly points: readonly LatLng[];
  /** The first of the parts that it is made of. */
  readonly part: number;
  /** Negative for a hole. */
  readonly areaM2: number;
}

/** Follows the rings through the joints, where the way in on one side goes on along the other. */
function walkRings(mesh: SeamMesh, joints: readonly SeamJoint[], touched: ReadonlySet<number>): JoinedRing[] {
  const crossing = new Map<number, number>();
  for (const { westSouth, eastSouth, westNorth, eastNorth } of joints) {
    crossing.set(westSouth, eastSouth);
    crossing.set(eastNorth, westNorth);
  }
  const seen = new Set<number>();
  const rings: JoinedRing[] = [];
  for (const [start, point] of mesh.points.entries()) {
    const onFrame = Math.abs(point.lng) === 180 || Math.abs(point.lat) === 90;
    if (onFrame || seen.has(start) || !touched.has(mesh.part[start]!)) continue;
    const nodes: number[] = [];
    const joined = new Set<number>();
    for (let node = start; !seen.has(node); ) {
      seen.add(node);
      nodes.push(node);
      node = mesh.next[node]!;
      // Two joints can meet in a point.
      for (let over = crossing.get(node); over !== undefined; over = crossing.get(node)) {
        node = over;
        joined.add(node);
      }
    }
    const points = withoutCuts(mesh, nodes, joined);
    const part = nodes.reduce((least, node) => Math.min(least, mesh.part[node]!), mesh.part[start]!);
    rings.push({ points, part, areaM2: signedAreaM2(points) });
  }
  return rings;
}

/** The vertices of a ring but for those that lie on the straight line from the one before to the one after the seam. */
function withoutCuts(mesh: SeamMesh, nodes: readonly number[], joined: ReadonlySet<number>): LatLng[] {
  const points = nodes.map((node) => mesh.points[node]!);
  return points.filter((point, i) => {
    if (!joined.has(nodes[i]!)) return true;
    const before = points[(i + points.length - 1) % points.length]!;
    const after = points[(i + 1) % points.length]!;
    if (before.lng > 0 && after.lng < 0) return seamLat(before, after) !== point.lat;
    return !(before.lng < 0 && after.lng > 0) || seamLat(after, before) !== point.lat;
  });
}

function signedAreaM2(points: readonly LatLng[]): number {
  const ring = unwrapRing(points);
  const areaM2 = ringAreaM2(ring);
  return ring.pole || doublePlanarArea(ring.lngs, ring.lats) > 0 ? areaM2 : -areaM2;
}

const SAME_AREA_SHARE = 1e-9;
