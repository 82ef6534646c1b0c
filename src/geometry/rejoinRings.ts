import type { LatLng } from './latLng.ts';
import { ringAreaM2 } from './measure.ts';
import { doublePlanarArea } from './planarArea.ts';
import { unwrapRing } from './ring.ts';
import { isSeamCrossing } from './seam.ts';
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
    if (Math.abs(point.lng) === 180 || seen.has(start) || !touched.has(mesh.part[start]!)) continue;
    const corners: Corner[] = [];
    let part = mesh.part[start]!;
    for (let reached = start, left = start; !seen.has(left); ) {
      seen.add(left);
      part = Math.min(part, mesh.part[left]!);
      corners.push({ reached: mesh.points[reached]!, left: mesh.points[left]! });
      reached = mesh.next[left]!;
      left = reached;
      // Two joints can meet in a point.
      for (let over = crossing.get(left); over !== undefined; over = crossing.get(left)) left = over;
    }
    const points = withoutCuts(corners);
    // What is left of a seam along the pole.
    if (points.every(({ lat }) => Math.abs(lat) === 90 && lat === point.lat)) continue;
    rings.push({ points, part, areaM2: signedAreaM2(points) });
  }
  return rings;
}

/** A vertex as it stands at the end of one edge and at the start of the next: beyond a joint it has another name. */
interface Corner {
  readonly reached: LatLng;
  readonly left: LatLng;
}

/** The vertices of a ring, but for those that only lie on the straight way over the seam, or repeat a pole. */
function withoutCuts(corners: readonly Corner[]): LatLng[] {
  const points: LatLng[] = [];
  for (const [i, { reached, left }] of corners.entries()) {
    const before = corners[(i + corners.length - 1) % corners.length]!.left;
    const after = corners[(i + 1) % corners.length]!.reached;
    if (reached.lng === left.lng || !isCut(before, reached, left, after)) {
      // An edge of exactly 180° goes the way that its ends are named.
      points.push(Math.abs(reached.lng - before.lng) > Math.abs(after.lng - left.lng) ? reached : left);
    }
  }
  return points.filter(({ lat, lng }, i) => lat !== points.at(i - 1)!.lat || lng !== points.at(i - 1)!.lng);
}

function isCut(before: LatLng, reached: LatLng, left: LatLng, after: LatLng): boolean {
  if (Math.abs(left.lat) === 90) {
    // On the way along the pole, or at an end of it that the pole itself repeats.
    if (before.lat === left.lat && after.lat === left.lat) return true;
    if (isTurnedFrom(before, reached) || isTurnedFrom(after, left)) return true;
  }
  return reached.lng > 0 ? isSeamCrossing(before, left.lat, after) : isSeamCrossing(after, left.lat, before);
}

function isTurnedFrom(a: LatLng, b: LatLng): boolean {
  return a.lat === b.lat && Math.abs(a.lng - b.lng) === 360;
}

function signedAreaM2(points: readonly LatLng[]): number {
  const ring = unwrapRing(points);
  const areaM2 = ringAreaM2(ring);
  return ring.pole || doublePlanarArea(ring.lngs, ring.lats) > 0 ? areaM2 : -areaM2;
}

const SAME_AREA_SHARE = 1e-9;
