import { PbfWriter } from 'pbf';
import type { IndexBox } from './measure.ts';
import { RADIANS_PER_DEGREE } from './wgs84.ts';

/** Whole units of a tile: x, y, x, y, … */
export type TilePath = readonly number[];

/**
 * Points, lines, or rings. A ring does not repeat its first point. An exterior one runs clockwise as one looks at the map,
 * and those of its holes, which run the other way, follow it.
 */
export interface TileGeometry {
  readonly kind: 'point' | 'line' | 'polygon';
  readonly paths: readonly TilePath[];
}

export type TileProperties = Readonly<Record<string, string | number | null>>;

const VERSION = 2;
const KINDS = { point: 1, line: 2, polygon: 3 };
const MOVE_TO = 1;
const LINE_TO = 2;
const CLOSE = (1 << 3) | 7;

/**
 * A tile with one layer, in the Mapbox Vector Tile Specification 2.1: the bytes that @maplibre/vt-pbf makes of it. That
 * encodes a tile in one piece, which takes 30 ms for two thousand features; here features are added one by one.
 */
export class VectorTile {
  readonly #layer = new PbfWriter();
  readonly #keys = new Map<string, number>();
  readonly #values = new Map<string | number, number>();

  constructor(layerName: string) {
    this.#layer.writeVarintField(15, VERSION);
    this.#layer.writeStringField(1, layerName);
    this.#layer.writeVarintField(5, TILE_EXTENT);
  }

  /** `id`: null for a feature without one. Properties that are null are left out. Numbers are not negative. */
  add(id: number | null, properties: TileProperties, geometry: TileGeometry): void {
    const tags: number[] = [];
    for (const name in properties) {
      const value = properties[name] ?? null;
      if (value !== null) tags.push(indexOf(this.#keys, name), indexOf(this.#values, value));
    }
    const commands = commandsOf(geometry);
    this.#layer.writeMessage(
      2,
      (_, feature) => {
        if (id !== null) feature.writeVarintField(1, id);
        feature.writePackedVarint(2, tags);
        feature.writeVarintField(3, KINDS[geometry.kind]);
        feature.writePackedVarint(4, commands);
      },
      null,
    );
  }

  /** The tile; nothing can be added any more. */
  finish(): Buffer {
    for (const key of this.#keys.keys()) this.#layer.writeStringField(3, key);
    for (const value of this.#values.keys()) this.#layer.writeMessage(4, writeValue, value);
    const tile = new PbfWriter();
    tile.writeBytesField(3, this.#layer.finish());
    const { buffer, byteOffset, byteLength } = tile.finish();
    return Buffer.from(buffer, byteOffset, byteLength);
  }
}

function indexOf<Key>(known: Map<Key, number>, key: Key): number {
  const index = known.get(key) ?? known.size;
  if (index === known.size) known.set(key, index);
  return index;
}

function writeValue(value: string | number, writer: PbfWriter): void {
  if (typeof value === 'string') writer.writeStringField(1, value);
  else if (Number.isInteger(value)) writer.writeVarintField(5, value);
  else writer.writeDoubleField(3, value);
}

/** Section 4.3: commands, and coordinates as differences from the point before. */
function commandsOf({ kind, paths }: TileGeometry): number[] {
  const commands: number[] = [];
  let x = 0;
  let y = 0;
  for (const path of paths) {
    for (let at = 0; at < path.length; at += 2) {
      if (at === 0) commands.push(((kind === 'point' ? path.length / 2 : 1) << 3) | MOVE_TO);
      else if (at === 2 && kind !== 'point') commands.push(((path.length / 2 - 1) << 3) | LINE_TO);
      const dx = path[at]! - x;
      const dy = path[at + 1]! - y;
      commands.push((dx << 1) ^ (dx >> 31), (dy << 1) ^ (dy >> 31));
      x += dx;
      y += dy;
    }
    if (kind === 'polygon') commands.push(CLOSE);
  }
  return commands;
}

/** A tile of the map in Web Mercator (EPSG:3857): the world is 2^z tiles wide and high, x goes east and y south. */
export interface Tile {
  readonly z: number;
  readonly x: number;
  readonly y: number;
}

/** The side of a tile in units (Mapbox Vector Tile Specification 2.1, section 4.1). */
export const TILE_EXTENT = 4096;
export const MAX_ZOOM = 22;

/** How far south a latitude (degrees) is from the north end of the map, in worlds. At most one world beyond either end. */
function worldY(lat: number): number {
  const sin = Math.sin(lat * RADIANS_PER_DEGREE);
  const y = 0.5 - Math.log((1 + sin) / (1 - sin)) / (4 * Math.PI);
  return Math.max(-1, Math.min(2, y));
}

const MAP_BITS = 30;
/** Steps across the map in each direction: 4 cm at the equator. */
const MAP_STEPS = 2 ** MAP_BITS;

// Each position has one step of the map, and so one tile of each zoom: the sides of a tile in the west and north are its
// own, those in the east and south are its neighbours'.

/** How many steps from 180° west a longitude (degrees) is. 180° is -180°. */
export function mapX(lng: number): number {
  const x = Math.floor((lng / 360 + 0.5) * MAP_STEPS);
  return x === MAP_STEPS ? 0 : x;
}

/** How many steps from the north end of the map a latitude (degrees) is. What is beyond an end is in the row there. */
export function mapY(lat: number): number {
  return Math.max(0, Math.min(MAP_STEPS - 1, Math.floor(worldY(lat) * MAP_STEPS)));
}

/** The column or row of tiles of a zoom that has this step. */
export function tileAt(step: number, zoom: number): number {
  return step >>> (MAP_BITS - zoom);
}

/** Where in its tile of a zoom a step (a fraction of one, too) is, in whole units from 0 to TILE_EXTENT - 1. */
export function unitAt(step: number, zoom: number): number {
  return Math.floor((step * TILE_EXTENT * 2 ** zoom) / MAP_STEPS) % TILE_EXTENT;
}

/** A tile as a plane: x and y in units of the tile, from its north-west corner east and south. */
export class TilePlane {
  /** Units around the world. */
  readonly turn: number;
  readonly #left: number;
  readonly #top: number;

  constructor({ z, x, y }: Tile) {
    this.turn = TILE_EXTENT * 2 ** z;
    this.#left = TILE_EXTENT * x;
    this.#top = TILE_EXTENT * y;
  }

  /** Degrees may continue beyond 180. */
  x(lng: number): number {
    return (lng / 360 + 0.5) * this.turn - this.#left;
  }

  y(lat: number): number {
    return worldY(lat) * this.turn - this.#top;
  }

  /** The latitude in degrees of a line of the plane. */
  lat(y: number): number {
    const angle = Math.PI * (1 - (2 * (y + this.#top)) / this.turn);
    return Math.atan(Math.sinh(angle)) / RADIANS_PER_DEGREE;
  }

  lng(x: number): number {
    return ((x + this.#left) / this.turn - 0.5) * 360;
  }
}

/** The sides of a tile in degrees. */
export function tileBox(tile: Tile): IndexBox {
  const plane = new TilePlane(tile);
  return {
    minX: plane.lng(0),
    minY: plane.lat(TILE_EXTENT),
    maxX: plane.lng(TILE_EXTENT),
    maxY: plane.lat(0),
  };
}
