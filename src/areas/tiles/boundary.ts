import { circleBounds, extentOf } from '../../geo/measure.ts';
import { type Ring, unwrapRing } from '../../geo/path.ts';
import type { TilePlane } from '../../geo/vectorTile.ts';
import { distanceM, type Edges, meridianRadiusM, RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import { type Circle, type Polygon, toLatLngs } from '../area.ts';
import { planarRing } from '../overlap/polygonOverlap.ts';
import type { PlaneBox, PlanePath } from './tilePaths.ts';

/** How far from the boundary a drawn edge may be, in units of the tile. */
const BEND_UNITS = 0.25;
/** An edge of less height bends by a hundredth of a unit at most. */
const STRAIGHT_UNITS = 2;

/** A polygon on the plane: one ring for each copy of the world on which it may meet the box. */
export function polygonOnPlane({ points }: Polygon, plane: TilePlane, box: PlaneBox): PlanePath[] {
  const ring = unwrapRing(toLatLngs(points));
  if (ring.pole !== null) return [edgesOnPlane(repeated(ring), 0, plane, box)];
  const edges = planarRing(ring);
  const { west, east } = extentOf(edges);
  return turnsInto(plane.x(west), plane.x(east), plane, box).map((turns) =>
    edgesOnPlane(edges, turns, plane, box),
  );
}

/** A ring around a pole, over all copies of the world at once, so that it is cut beyond every tile only. */
function repeated(ring: Ring): Edges {
  const lngs: number[] = [];
  const lats: number[] = [];
  const end = ring.lngs.length - 1;
  for (let copy = -POLAR_COPIES; copy <= POLAR_COPIES; copy++) {
    for (let n = 0; n < end; n++) {
      lngs.push(ring.lngs[n]! + 360 * copy * ring.turns);
      lats.push(ring.lats[n]!);
    }
  }
  lngs.push(ring.lngs[end]! + 360 * POLAR_COPIES * ring.turns);
  lats.push(ring.lats[end]!);
  return planarRing({ ...ring, lngs, lats });
}

/** On either side: the longitudes of a ring begin up to a turn and a half from those of the map. */
const POLAR_COPIES = 2;

/** How many turns further east something from `left` to `right` (units) may meet the box: whole numbers. */
export function turnsInto(
  left: number,
  right: number,
  { turn }: TilePlane,
  box: Pick<PlaneBox, 'left' | 'right'>,
): number[] {
  const first = Math.ceil((box.left - right) / turn);
  const last = Math.floor((box.right - left) / turn);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => first + n);
}

/**
 * Edges straight in longitude and latitude, some turns further east. The projection bends them, so near the box they have
 * points in between.
 */
export function edgesOnPlane(
  { lngs, lats }: Edges,
  turns: number,
  plane: TilePlane,
  box: PlaneBox,
): PlanePath {
  const path: number[] = [];
  let from: EdgePoint | null = null;
  for (let n = 0; n < lngs.length; n++) {
    const to: EdgePoint = { x: plane.x(lngs[n]! + 360 * turns), y: plane.y(lats[n]!), lat: lats[n]! };
    if (from !== null && from.x !== to.x) addBends(path, from, to, plane, box);
    path.push(to.x, to.y);
    from = to;
  }
  return path;
}

interface EdgePoint {
  readonly x: number;
  readonly y: number;
  readonly lat: number;
}

/** The points between two of an edge. It lies within the box of both: x and latitude change evenly. */
function addBends(path: number[], a: EdgePoint, b: EdgePoint, plane: TilePlane, box: PlaneBox): void {
  if (Math.abs(b.y - a.y) < STRAIGHT_UNITS || isApart(a, b, 0, box)) return;
  const isAcrossEquator = a.lat < 0 !== b.lat < 0;
  // Bends north and south of the equator are opposite, and might cancel out in the middle.
  const share = isAcrossEquator && a.lat !== 0 && b.lat !== 0 ? a.lat / (a.lat - b.lat) : 0.5;
  const lat = a.lat + share * (b.lat - a.lat);
  const middle = { x: a.x + share * (b.x - a.x), y: plane.y(lat), lat };
  if (share === 0.5 && offChord(a, b, middle) <= BEND_UNITS) return;
  if (middle.y === a.y || middle.y === b.y) return; // beyond the end of the map, or of the digits
  addBends(path, a, middle, plane, box);
  path.push(middle.x, middle.y);
  addBends(path, middle, b, plane, box);
}

type PlanePoint = Pick<EdgePoint, 'x' | 'y'>;

function isApart(a: PlanePoint, b: PlanePoint, margin: number, box: PlaneBox): boolean {
  return (
    Math.max(a.x, b.x) + margin < box.left ||
    Math.min(a.x, b.x) - margin > box.right ||
    Math.max(a.y, b.y) + margin < box.top ||
    Math.min(a.y, b.y) - margin > box.bottom
  );
}

function offChord(a: PlanePoint, b: PlanePoint, point: PlanePoint): number {
  const length = Math.hypot(b.x - a.x, b.y - a.y);
  if (length === 0) return Math.hypot(point.x - a.x, point.y - a.y);
  return Math.abs((b.x - a.x) * (point.y - a.y) - (b.y - a.y) * (point.x - a.x)) / length;
}

/** Before any is divided. */
const CIRCLE_POINTS = 8;

/** A circle on the plane, as polygonOnPlane. One around a pole is beyond the end of the map. */
export function circleOnPlane({ center, radiusM }: Circle, plane: TilePlane, box: PlaneBox): PlanePath[] {
  const { west, east } = circleBounds(center, radiusM);
  const pointAt = (bearing: number): PlanePoint => {
    const { lat, lng } = pointOfCircle(center.lat, radiusM, bearing);
    return { x: plane.x(center.lng + lng), y: plane.y(lat) };
  };
  const bearings = Array.from({ length: CIRCLE_POINTS + 1 }, (_, n) => (2 * Math.PI * n) / CIRCLE_POINTS);
  const corners = bearings.map(pointAt);
  const half = (west <= east ? east - west : east - west + 360) / 2;
  const [left, right] = [plane.x(center.lng - half), plane.x(center.lng + half)];
  return turnsInto(left, right, plane, box).map((turns) => {
    const shift = turns * plane.turn;
    const path: number[] = [];
    for (let n = 0; n < CIRCLE_POINTS; n++) {
      const [from, to] = [corners[n]!, corners[n + 1]!];
      path.push(from.x + shift, from.y);
      const at = (bearing: number) => shifted(pointAt(bearing), shift);
      addArc(path, bearings[n]!, shifted(from, shift), bearings[n + 1]!, shifted(to, shift), at, box);
    }
    return path;
  });
}

/** The points between two of a circle, which are an eighth of it apart or less. */
function addArc(
  path: number[],
  fromBearing: number,
  from: PlanePoint,
  toBearing: number,
  to: PlanePoint,
  at: (bearing: number) => PlanePoint,
  box: PlaneBox,
): void {
  // Such an arc is lower than half of its chord.
  const chord = Math.hypot(to.x - from.x, to.y - from.y);
  if (chord < 2 * BEND_UNITS || isApart(from, to, chord / 2, box)) return;
  const bearing = (fromBearing + toBearing) / 2;
  const middle = at(bearing);
  if (offChord(from, to, middle) <= BEND_UNITS) return;
  addArc(path, fromBearing, from, bearing, middle, at, box);
  path.push(middle.x, middle.y);
  addArc(path, bearing, middle, toBearing, to, at, box);
}

function shifted({ x, y }: PlanePoint, shift: number): PlanePoint {
  return { x: x + shift, y };
}

/**
 * The point of a circle in a direction (radians, clockwise from north): its latitude, and its longitude less that of the
 * centre. A sphere gives the point, and the distance on the ellipsoid corrects it twice, to a few millimetres.
 */
function pointOfCircle(lat: number, radiusM: number, bearing: number): { lat: number; lng: number } {
  let angle = radiusM / meridianRadiusM(lat);
  let point = destination(lat, angle, bearing);
  for (let round = 0; round < 2; round++) {
    angle *= radiusM / distanceM(lat, 0, point.lat, point.lng);
    point = destination(lat, angle, bearing);
  }
  return point;
}

function destination(fromLat: number, angle: number, bearing: number): { lat: number; lng: number } {
  const lat0 = fromLat * RADIANS_PER_DEGREE;
  const sin = Math.sin(lat0) * Math.cos(angle) + Math.cos(lat0) * Math.sin(angle) * Math.cos(bearing);
  const lat = Math.asin(Math.max(-1, Math.min(1, sin)));
  const lng = Math.atan2(
    Math.sin(bearing) * Math.sin(angle) * Math.cos(lat0),
    Math.cos(angle) - Math.sin(lat0) * sin,
  );
  return { lat: lat / RADIANS_PER_DEGREE, lng: lng / RADIANS_PER_DEGREE };
}
