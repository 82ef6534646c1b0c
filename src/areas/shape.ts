import { corridorParts } from '../geo/corridorParts.ts';
import { buildEdgeIndex, buildRingIndex, type EdgeIndex, type RingIndex } from '../geo/edgeIndex.ts';
import {
  type Bounds,
  circleBounds,
  corridorBounds,
  type IndexBox,
  indexBoxes,
  ringBounds,
} from '../geo/measure.ts';
import { nearestEdgeM, nearestEdgeWithinM } from '../geo/nearestEdge.ts';
import { type Path, type Ring, unwrapLine, unwrapRing } from '../geo/path.ts';
import { ringSide } from '../geo/ringSide.ts';
import { distanceM } from '../geo/wgs84.ts';
import { NumberPages } from '../lib/numberPages.ts';
import { type AreaGeometry, type Circle, type Polygon, type Polyline, toLatLngs } from './area.ts';
import { CompiledEdges } from './compiledEdges.memory.ts';

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
  /** One or two new boxes, which together contain every position inside, under each of its longitudes, and a little more. */
  boxes(): IndexBox[];
  /** The same for an index of many areas: a long polyline has more and smaller ones, at most sixteen. */
  parts(): IndexBox[];
}

/**
 * The shape of a geometry. Its edges are compiled when it is first asked: some tenths of a microsecond per vertex, so a
 * millisecond at most. `stored`: of an area in memory, the world that it is in and the bounds of its areaMeasures, which
 * need not be computed again. The compiled edges of all of these have a limit; see CompiledEdges. Those of another shape
 * live as long as it does.
 */
export function toShape(geometry: AreaGeometry, stored: StoredShape | null = null): Shape {
  switch (geometry.type) {
    case 'circle':
    case 'point':
      return new CircleShape(geometry);
    case 'polygon':
      return new PolygonShape(geometry, stored);
    case 'polyline':
      return new PolylineShape(geometry, stored);
  }
}

export interface StoredShape {
  readonly worldId: number;
  readonly bounds: Bounds;
}

/** All positions within the radius of the centre. */
class CircleShape implements Shape {
  readonly #circle: Circle;

  constructor(circle: Circle) {
    this.#circle = circle;
  }

  contains(lat: number, lng: number): boolean {
    return this.signedDistanceM(lat, lng) <= 0;
  }

  signedDistanceM(lat: number, lng: number): number {
    const { center, radiusM } = this.#circle;
    return distanceM(center.lat, center.lng, lat, lng) - radiusM;
  }

  insideDistanceM(lat: number, lng: number): number {
    const signedM = this.signedDistanceM(lat, lng);
    return signedM <= 0 ? signedM : Number.POSITIVE_INFINITY;
  }

  boxes(): IndexBox[] {
    return indexBoxes(circleBounds(this.#circle.center, this.#circle.radiusM));
  }

  parts(): IndexBox[] {
    return this.boxes();
  }
}

/** The exact test of ringSide gives the sign, the nearest edge the amount. */
class PolygonShape implements Shape {
  readonly #polygon: Polygon;
  // Not as one object, which every area in memory would need.
  readonly #worldId: number | null;
  readonly #bounds: Bounds | null;
  #compiled: RingIndex | null = null;

  constructor(polygon: Polygon, stored: StoredShape | null) {
    this.#polygon = polygon;
    this.#worldId = stored?.worldId ?? null;
    this.#bounds = stored?.bounds ?? null;
  }

  contains(lat: number, lng: number): boolean {
    return ringSide(this.#compiled ?? this.#compile(), lat, lng) !== 'out';
  }

  signedDistanceM(lat: number, lng: number): number {
    const index = this.#compiled ?? this.#compile();
    const side = ringSide(index, lat, lng);
    if (side === 'on') return 0;
    return side === 'out' ? boundaryM(index, lat, lng) : -boundaryM(index, lat, lng);
  }

  insideDistanceM(lat: number, lng: number): number {
    const index = this.#compiled ?? this.#compile();
    const side = ringSide(index, lat, lng);
    if (side === 'on') return 0;
    return side === 'out' ? Number.POSITIVE_INFINITY : -boundaryM(index, lat, lng);
  }

  boxes(): IndexBox[] {
    return indexBoxes(this.#bounds ?? ringBounds(this.#ring()));
  }

  parts(): IndexBox[] {
    return this.boxes();
  }

  #ring(): Ring {
    return unwrapRing(toLatLngs(this.#polygon.points));
  }

  #compile(): RingIndex {
    const compiled = buildRingIndex(this.#ring(), pagesOf(this.#worldId));
    this.#compiled = compiled;
    if (this.#worldId !== null) compiledEdges.keep(this.#worldId, this, compiled.edges);
    return compiled;
  }

  forgetEdges(): void {
    this.#compiled = null;
  }
}

/** An amount that rounds to 0 beside the boundary must not turn outside into inside. */
function boundaryM({ edges }: RingIndex, lat: number, lng: number): number {
  return Math.max(nearestEdgeM(edges, lat, lng), SMALLEST_M);
}

/** All positions within the buffer of the edges. */
class PolylineShape implements Shape {
  readonly #polyline: Polyline;
  readonly #worldId: number | null;
  #compiled: EdgeIndex | null = null;

  constructor(polyline: Polyline, stored: StoredShape | null) {
    this.#polyline = polyline;
    this.#worldId = stored?.worldId ?? null;
  }

  contains(lat: number, lng: number): boolean {
    return this.insideDistanceM(lat, lng) <= 0;
  }

  signedDistanceM(lat: number, lng: number): number {
    const insideM = this.insideDistanceM(lat, lng);
    if (insideM <= 0) return insideM;
    const edges = this.#compiled ?? this.#compile();
    // Both searches are exact to 1e-5, and outside must stay outside.
    return Math.max(nearestEdgeM(edges, lat, lng) - this.#polyline.bufferM, SMALLEST_M);
  }

  insideDistanceM(lat: number, lng: number): number {
    const { bufferM } = this.#polyline;
    const edges = this.#compiled ?? this.#compile();
    const signedM = nearestEdgeWithinM(edges, lat, lng, bufferM) - bufferM;
    return signedM <= 0 ? signedM : Number.POSITIVE_INFINITY;
  }

  boxes(): IndexBox[] {
    const path = this.#path();
    const parts = corridorParts(path, this.#polyline.bufferM);
    const bounds = parts.length === 1 ? parts[0]! : corridorBounds(path, this.#polyline.bufferM);
    return indexBoxes(bounds);
  }

  parts(): IndexBox[] {
    const parts = corridorParts(this.#path(), this.#polyline.bufferM);
    return parts.flatMap(indexBoxes);
  }

  #path(): Path {
    return unwrapLine(toLatLngs(this.#polyline.points));
  }

  #compile(): EdgeIndex {
    const compiled = buildEdgeIndex(this.#path(), pagesOf(this.#worldId));
    this.#compiled = compiled;
    if (this.#worldId !== null) compiledEdges.keep(this.#worldId, this, compiled);
    return compiled;
  }

  forgetEdges(): void {
    this.#compiled = null;
  }
}

const SMALLEST_M = 1e-9;

function pagesOf(worldId: number | null): NumberPages {
  return worldId === null ? new NumberPages() : compiledEdges.pages(worldId);
}

/** The edges of fifty thousand areas of twenty vertices, or of a thousand of two thousand. */
const COMPILED_MAX_BYTES = 160e6;

const compiledEdges = new CompiledEdges(COMPILED_MAX_BYTES);
