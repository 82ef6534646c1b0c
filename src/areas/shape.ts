import {
  circleBounds,
  corridorBounds,
  corridorParts,
  type IndexBox,
  indexBoxes,
  ringBounds,
} from '../geo/bounds.ts';
import { buildEdgeIndex } from '../geo/edgeIndex.ts';
import { nearestEdgeM, nearestEdgeWithinM } from '../geo/nearestEdge.ts';
import { unwrapLine, unwrapRing } from '../geo/path.ts';
import { buildRingIndex, ringSide } from '../geo/ringSide.ts';
import { distanceM } from '../geo/wgs84.ts';
import { inOneGo, type Steps } from '../lib/workTurns.ts';
import { type AreaGeometry, type Circle, type Polygon, type Polyline, toLatLngs } from './area.ts';

/**
 * THE geometric rule: what an area contains and how far its boundary is, for the contains route, the engine and the
 * index alike. A position is inside exactly when its signed distance is 0 or less: the boundary belongs to the area.
 * Positions are degrees, lat -90 to 90, lng -180 to 180.
 */
export interface Shape {
  contains(lat: number, lng: number): boolean;
  /** Metres to the boundary: negative inside, 0 on it, positive outside. */
  signedDistanceM(lat: number, lng: number): number;
  /** The signed distance of a position inside; Infinity outside, which takes less time than the distance. */
  insideDistanceM(lat: number, lng: number): number;
  /** One or two, which together hold every position inside, under each of its names, and a little more. */
  readonly boxes: readonly IndexBox[];
  /** The same for an index of many areas: a long polyline has more and smaller ones, at most sixteen. */
  readonly parts: readonly IndexBox[];
}

/** Once for each version of an area: some tenths of a microsecond per vertex. */
export function compileShape(geometry: AreaGeometry): Shape {
  return inOneGo(shapeInSteps(geometry));
}

/** The same in steps of some tenths of a millisecond, for the largest areas. */
export function* shapeInSteps(geometry: AreaGeometry): Steps<Shape> {
  switch (geometry.type) {
    case 'circle':
    case 'point':
      return circleShape(geometry);
    case 'polygon':
      return yield* polygonShape(geometry);
    case 'polyline':
      return yield* polylineShape(geometry);
  }
}

/** All positions within the radius of the centre. */
function circleShape({ center, radiusM }: Circle): Shape {
  const boxes = indexBoxes(circleBounds(center, radiusM));
  const signedDistanceM = (lat: number, lng: number) => distanceM(center.lat, center.lng, lat, lng) - radiusM;
  return {
    contains: (lat, lng) => signedDistanceM(lat, lng) <= 0,
    signedDistanceM,
    insideDistanceM: (lat, lng) => {
      const signedM = signedDistanceM(lat, lng);
      return signedM <= 0 ? signedM : Number.POSITIVE_INFINITY;
    },
    boxes,
    parts: boxes,
  };
}

/** The exact test of ringSide gives the sign, the nearest edge the amount. */
function* polygonShape({ points }: Polygon): Steps<Shape> {
  const ring = unwrapRing(toLatLngs(points));
  const boxes = indexBoxes(ringBounds(ring));
  yield;
  const index = buildRingIndex(ring);
  // An amount that rounds to 0 beside the boundary must not turn outside into inside.
  const boundaryM = (lat: number, lng: number) => Math.max(nearestEdgeM(index.edges, lat, lng), SMALLEST_M);
  const signedDistanceM = (lat: number, lng: number) => {
    const side = ringSide(index, lat, lng);
    if (side === 'on') return 0;
    return side === 'out' ? boundaryM(lat, lng) : -boundaryM(lat, lng);
  };
  return {
    contains: (lat, lng) => ringSide(index, lat, lng) !== 'out',
    signedDistanceM,
    insideDistanceM: (lat, lng) => {
      const side = ringSide(index, lat, lng);
      if (side === 'on') return 0;
      return side === 'out' ? Number.POSITIVE_INFINITY : -boundaryM(lat, lng);
    },
    boxes,
    parts: boxes,
  };
}

/** All positions within the buffer of the edges. */
function* polylineShape({ points, bufferM }: Polyline): Steps<Shape> {
  const path = unwrapLine(toLatLngs(points));
  const parts = corridorParts(path, bufferM);
  const boxes = indexBoxes(parts.length === 1 ? parts[0]! : corridorBounds(path, bufferM));
  yield;
  const edges = buildEdgeIndex(path);
  const insideDistanceM = (lat: number, lng: number) => {
    const signedM = nearestEdgeWithinM(edges, lat, lng, bufferM) - bufferM;
    return signedM <= 0 ? signedM : Number.POSITIVE_INFINITY;
  };
  return {
    contains: (lat, lng) => insideDistanceM(lat, lng) <= 0,
    signedDistanceM: (lat, lng) => {
      const insideM = insideDistanceM(lat, lng);
      // Both searches are exact to 1e-5, and outside must stay outside.
      return insideM <= 0 ? insideM : Math.max(nearestEdgeM(edges, lat, lng) - bufferM, SMALLEST_M);
    },
    insideDistanceM,
    boxes,
    parts: parts.length > 1 ? parts.flatMap(indexBoxes) : boxes,
  };
}

const SMALLEST_M = 1e-9;
