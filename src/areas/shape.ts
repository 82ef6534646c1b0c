import { circleBounds, corridorBounds, type IndexBox, indexBoxes, ringBounds } from '../geo/bounds.ts';
import { corridorParts } from '../geo/corridorParts.ts';
import { buildEdgeIndex } from '../geo/edgeIndex.ts';
import { unwrapLine } from '../geo/path.ts';
import { unwrapRing } from '../geo/ring.ts';
import { buildRingIndex, ringSide } from '../geo/ringSide.ts';
import {
  circleDistanceM,
  corridorDistanceM,
  corridorInsideDistanceM,
  ringDistanceM,
  ringInsideDistanceM,
} from '../geo/signedDistance.ts';
import { inOneGo, type Steps } from '../lib/workTurns.ts';
import {
  type AreaDefinition,
  type AreaGeometry,
  type Disc,
  type Polygon,
  type Track,
  toLatLngs,
} from './area.ts';

/**
 * THE geometric rule: what an area contains and how far its boundary is, for the contains route, the engine and the
 * index alike. A position is inside exactly when its signed distance is 0 or less: the boundary belongs to the area.
 * Positions are degrees, lat -90 to 90, lng -180 to 180.
 */
export interface Shape {
  contains(lat: number, lng: number): boolean;
  /** Metres to the boundary: negative inside, 0 on it, positive outside. */
  signedDistanceM(lat: number, lng: number): number;
  /** The same where the position is inside. Outside it is Infinity, which nothing has to be measured for. */
  insideDistanceM(lat: number, lng: number): number;
  /** One or two, which together hold every position inside, under each of its names, and a little more. */
  readonly boxes: readonly IndexBox[];
  /** The same for an index of many areas: a long track is divided into more and smaller ones, at most sixteen. */
  readonly parts: readonly IndexBox[];
}

/** Once for each version of an area: some tenths of a microsecond per vertex. */
export function compileShape({ geometry }: AreaDefinition): Shape {
  return shapeOf(geometry);
}

/** The same, of what its shape depends on. */
export function shapeOf(geometry: AreaGeometry): Shape {
  return inOneGo(shapeInSteps(geometry));
}

/** The same in steps of some tenths of a millisecond, for the largest areas. */
export function* shapeInSteps(geometry: AreaGeometry): Steps<Shape> {
  switch (geometry.type) {
    case 'circle':
    case 'point':
      return discShape(geometry);
    case 'polygon':
      return yield* polygonShape(geometry);
    case 'polyline':
      return yield* trackShape(geometry);
  }
}

function discShape({ center, radiusM }: Disc): Shape {
  const boxes = indexBoxes(circleBounds(center, radiusM));
  const signedDistanceM = (lat: number, lng: number) => circleDistanceM(center, radiusM, lat, lng);
  return {
    contains: (lat, lng) => signedDistanceM(lat, lng) <= 0,
    signedDistanceM,
    insideDistanceM: (lat, lng) => {
      const distanceM = signedDistanceM(lat, lng);
      return distanceM <= 0 ? distanceM : Number.POSITIVE_INFINITY;
    },
    boxes,
    parts: boxes,
  };
}

function* polygonShape({ points }: Polygon): Steps<Shape> {
  const ring = unwrapRing(toLatLngs(points));
  const boxes = indexBoxes(ringBounds(ring));
  yield;
  const index = buildRingIndex(ring);
  return {
    contains: (lat, lng) => ringSide(index, lat, lng) !== 'out',
    signedDistanceM: (lat, lng) => ringDistanceM(index, lat, lng),
    insideDistanceM: (lat, lng) => ringInsideDistanceM(index, lat, lng),
    boxes,
    parts: boxes,
  };
}

function* trackShape({ points, bufferM }: Track): Steps<Shape> {
  const path = unwrapLine(toLatLngs(points));
  const parts = corridorParts(path, bufferM);
  const boxes = indexBoxes(parts.length === 1 ? parts[0]! : corridorBounds(path, bufferM));
  yield;
  const edges = buildEdgeIndex(path);
  return {
    contains: (lat, lng) => corridorInsideDistanceM(edges, bufferM, lat, lng) <= 0,
    signedDistanceM: (lat, lng) => corridorDistanceM(edges, bufferM, lat, lng),
    insideDistanceM: (lat, lng) => corridorInsideDistanceM(edges, bufferM, lat, lng),
    boxes,
    parts: parts.length > 1 ? parts.flatMap(indexBoxes) : boxes,
  };
}
