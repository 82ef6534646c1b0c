import {
  TILE_EXTENT,
  type Tile,
  type TileGeometry,
  type TilePath,
  TilePlane,
  VectorTile,
} from '../../geo/vectorTile.ts';
import { radixOrder } from '../../lib/radixOrder.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import type { AreaGeometry, StoredArea } from '../area.ts';
import { circleOnPlane, polygonOnPlane, turnsInto } from './boundary.ts';
import {
  clipLine,
  clipRing,
  doubleArea,
  lineMeets,
  type PlaneBox,
  type PlanePath,
  reversed,
  ringMeets,
  rounded,
  simplifyPath,
  widened,
} from './tilePaths.ts';
import { type TileWork, trackOnPlane } from './track.ts';

/** What a tile holds at most; what is left out is the smallest. */
export const AREA_TILE_LIMITS = {
  areas: 2_000,
  /** Of all areas together. */
  points: 100_000,
} as const;

/** Less than a second of TileWork: four million vertices of polygons. */
const WORK_MAX = 8_000_000;
/** Numbers of a 53-bit key for a size from 0 to 1. */
const SIZE_STEPS = 2 ** 50;

export const AREAS_LAYER = 'areas';

/**
 * The tile with those of these areas that have a point in it, largest first, so that small ones are drawn above; null
 * where none has. It depends on nothing but the areas and the tile: neither on their order nor on how long it takes.
 */
export function* areaTile(areas: readonly StoredArea[], tile: Tile): Steps<Buffer | null> {
  const plane = new TilePlane(tile);
  const layer = new VectorTile(AREAS_LAYER);
  const work: TileWork = { pace: new Pace(), done: 0 };
  let [count, points] = [0, 0];
  for (const area of yield* largestFirst(areas)) {
    if (count === AREA_TILE_LIMITS.areas || points >= AREA_TILE_LIMITS.points || work.done >= WORK_MAX) break;
    const geometry = yield* geometryOf(area, plane, work);
    if (geometry !== null) {
      const { name, color, externalId } = area.definition;
      const properties = { id: area.id, name, type: area.definition.geometry.type, color };
      layer.add(area.id, { ...properties, external_id: externalId }, geometry);
      count++;
      for (const path of geometry.paths) points += path.length / 2;
    }
    if (work.pace.isDue()) yield* work.pace.pause();
  }
  return count === 0 ? null : layer.finish();
}

/** By the larger side of their bounds on the map; equal ones by id. */
function* largestFirst(areas: readonly StoredArea[]): Steps<StoredArea[]> {
  const world = new TilePlane({ z: 0, x: 0, y: 0 });
  const byId = yield* radixOrder(areas.length, (n) => areas[n]!.id);
  const ordered = Array.from(byId, (n) => areas[n]!);
  const bySize = yield* radixOrder(ordered.length, (n) => {
    const { left, top, right, bottom } = boundsOnPlane(ordered[n]!, world);
    const size = Math.max(right - left, bottom - top) / world.turn;
    return Math.round(SIZE_STEPS * (4 - Math.min(4, size)));
  });
  return Array.from(bySize, (n) => ordered[n]!);
}

/** Longitudes continue beyond 180. */
function boundsOnPlane({ measures: { bounds } }: StoredArea, plane: TilePlane): PlaneBox {
  const { south, west, north } = bounds;
  const east = west <= bounds.east ? bounds.east : bounds.east + 360;
  return { left: plane.x(west), top: plane.y(north), right: plane.x(east), bottom: plane.y(south) };
}

/** An area whose bounds are less than a unit wide and high is a square of one, without a look at its shape. */
function* geometryOf(area: StoredArea, plane: TilePlane, work: TileWork): Steps<TileGeometry | null> {
  const { left, top, right, bottom } = boundsOnPlane(area, plane);
  if (right - left >= 1 || bottom - top >= 1)
    return yield* areaGeometry(area.definition.geometry, plane, work);
  const [turns] = turnsInto(left, right, plane, TILE);
  if (turns === undefined || bottom < TILE.top || top > TILE.bottom) return null;
  return unitSquare((left + right) / 2 + turns * plane.turn, (top + bottom) / 2);
}

/** The tile itself, its sides included. */
const TILE: PlaneBox = { left: 0, top: 0, right: TILE_EXTENT, bottom: TILE_EXTENT };

/** Areas are cut so far outside of their tile that the cut is not seen. */
const MARGIN_UNITS = 64;
const AROUND_TILE: PlaneBox = widened(TILE, MARGIN_UNITS);

/** See TileWork. */
const WORK = { circle: 500, polygonPoint: 2 };

/**
 * What an area has of a tile and its margin; null where it has no point of the tile. Edges are within a unit of the
 * area's. What is thinner than a unit is a line, and what is smaller than a unit a square of one.
 */
function* areaGeometry(area: AreaGeometry, plane: TilePlane, work: TileWork): Steps<TileGeometry | null> {
  switch (area.type) {
    case 'circle':
    case 'point':
      work.done += WORK.circle;
      return drawnRings(circleOnPlane(area, plane, AROUND_TILE));
    case 'polygon':
      work.done += (WORK.polygonPoint * area.points.length) / 2;
      return drawnRings(polygonOnPlane(area, plane, AROUND_TILE));
    case 'polyline': {
      const track = yield* trackOnPlane(area, plane, AROUND_TILE, TILE, work);
      if (track.kind === 'lines') {
        const nearTile = widened(TILE, track.bufferUnits);
        if (!track.lines.some((line) => lineMeets(line, nearTile))) return null;
        return drawnLines(track.lines.flatMap((line) => clipLine(line, AROUND_TILE)));
      }
      if (!track.meets) return null;
      return drawn(track.rings.map(({ path, isHole }) => ({ clipped: path, isHole })));
    }
  }
}

/** Where an area of less than a unit is: a square of one. */
function unitSquare(x: number, y: number): TileGeometry {
  const [left, top] = [Math.floor(x), Math.floor(y)];
  return { kind: 'polygon', paths: [[left, top, left + 1, top, left + 1, top + 1, left, top + 1]] };
}

/** Exterior rings, one for each copy of the world. */
function drawnRings(rings: readonly PlanePath[]): TileGeometry | null {
  if (!rings.some((ring) => ringMeets(ring, TILE))) return null;
  return drawn(rings.map((ring) => ({ clipped: clipRing(ring, AROUND_TILE), isHole: false })));
}

interface ClippedRing {
  readonly clipped: PlanePath;
  readonly isHole: boolean;
}

/** Rings in whole units. One without an area is left out, or is a line if no other remains. */
function drawn(rings: readonly ClippedRing[]): TileGeometry {
  const paths: TilePath[] = [];
  const thin: PlanePath[] = [];
  let hasExterior = false;
  for (const { clipped, isHole } of rings) {
    if (clipped.length === 0 || (isHole && !hasExterior)) continue;
    const ring = rounded(simplifyPath(clipped), true);
    const area = doubleArea(ring);
    if (area !== 0) paths.push(area > 0 === isHole ? reversed(ring) : ring);
    if (isHole) continue;
    hasExterior = area !== 0;
    if (area === 0) thin.push(clipped);
  }
  return paths.length > 0 ? { kind: 'polygon', paths } : drawnLines(thin);
}

function drawnLines(lines: readonly PlanePath[]): TileGeometry {
  const paths = lines.map((line) => rounded(simplifyPath(line), false)).filter(({ length }) => length > 2);
  if (paths.length > 0) return { kind: 'line', paths };
  const [x = 0, y = 0] = lines[0] ?? [];
  return unitSquare(x, y);
}
