import type { Status, StatusCounts } from '../filters.ts';
import type { LatLng } from '../types.ts';
import type { Box } from './box.ts';

/** Web Mercator: the world is 2^z tiles wide and high. */
export interface TileName {
  readonly z: number;
  readonly x: number;
  readonly y: number;
}

/** What a tile of devices shows at a place: some that are counted together, or one. */
export type TilePoint = LatLng &
  (
    | { readonly counts: StatusCounts }
    | { readonly imei: string; readonly name: string | null; readonly status: Status }
  );

/** Each costs a call of the account's limits. */
const TILES_MAX = 9;
/** Beyond it the map ends. */
export const LAT_MAX = 85.0511;
/** Clusters of a tile, side by side. */
export const CELLS_WIDE = 16;

/**
 * The tiles that cover a box of a map. They are twice as wide as those of the map at this zoom: their 16 by 16 clusters are
 * then 64 to 128 pixels apart.
 */
export function tilesOver(box: Box, zoom: number): TileName[] {
  for (let z = Math.max(0, Math.floor(zoom) - 1); ; z--) {
    const n = 2 ** z;
    const [left, top, bottom] = [columnAt(box.west, n), rowAt(box.north, n), rowAt(box.south, n)];
    const east = box.east >= box.west ? box.east : box.east + 360;
    // The east side of a tile belongs to its neighbour, where the box ends.
    const columns = Math.min(
      n,
      Math.floor(((east + 180) / 360) * n) - Math.floor(((box.west + 180) / 360) * n) + 1,
    );
    const rows = bottom - top + 1;
    if (columns * rows > TILES_MAX && z > 0) continue;
    return Array.from({ length: columns * rows }, (_, index) => ({
      z,
      x: (left + (index % columns)) % n,
      y: top + Math.floor(index / columns),
    }));
  }
}

function columnAt(lng: number, n: number): number {
  return Math.min(n - 1, Math.floor(((lng + 180) / 360) * n));
}

function rowAt(lat: number, n: number): number {
  const clamped = Math.max(-LAT_MAX, Math.min(LAT_MAX, lat));
  const y = (1 - Math.atanh(Math.sin((clamped * Math.PI) / 180)) / Math.PI) / 2;
  return Math.max(0, Math.min(n - 1, Math.floor(y * n)));
}

type Value = string | number;

/**
 * Reads a tile of devices (Mapbox Vector Tile Specification 2.1), whose features are points. Packages that read tiles of
 * all kinds would take a tenth of what all modules of the page weigh.
 */
export function readDeviceTile(bytes: Uint8Array, tile: TileName): TilePoint[] {
  const points: TilePoint[] = [];
  for (const [field, layer] of fieldsOf(bytes))
    if (field === 3) points.push(...pointsOf(layer as Uint8Array, tile));
  return points;
}

function pointsOf(layer: Uint8Array, tile: TileName): TilePoint[] {
  const keys: string[] = [];
  const values: Value[] = [];
  const features: Uint8Array[] = [];
  let extent = 4_096;
  for (const [field, value] of fieldsOf(layer)) {
    if (field === 2) features.push(value as Uint8Array);
    if (field === 3) keys.push(textOf(value as Uint8Array));
    if (field === 4) values.push(valueIn(value as Uint8Array));
    if (field === 5) extent = value as number;
  }
  return features.map((feature) => {
    const own = new Map(fieldsOf(feature));
    const tags = numbersIn(own.get(2) as Uint8Array);
    const properties: Record<string, Value> = {};
    for (let at = 0; at < tags.length; at += 2)
      properties[keys[tags[at] as number] as string] = values[tags[at + 1] as number] as Value;
    const [, x = 0, y = 0] = numbersIn(own.get(4) as Uint8Array);
    return { ...placeOf(tile, unzigzag(x) / extent, unzigzag(y) / extent), ...shownBy(properties) };
  });
}

function shownBy(properties: Readonly<Record<string, Value>>) {
  const { imei, name = null, status, moving, parked, offline, unknown } = properties;
  if (imei !== undefined)
    return { imei, name, status } as { imei: string; name: string | null; status: Status };
  return { counts: { moving, parked, offline, unknown } as StatusCounts };
}

function placeOf({ z, x, y }: TileName, dx: number, dy: number): LatLng {
  const n = 2 ** z;
  const lat = (Math.atan(Math.sinh(Math.PI * (1 - (2 * (y + dy)) / n))) * 180) / Math.PI;
  return { lng: ((x + dx) / n) * 360 - 180, lat };
}

/** The fields of a message of protocol buffers: numbers, or the bytes of what has a length or is a float. */
function* fieldsOf(bytes: Uint8Array): Generator<[field: number, value: number | Uint8Array]> {
  const at = { at: 0 };
  while (at.at < bytes.length) {
    const tag = numberAt(bytes, at);
    const kind = tag & 7;
    if (kind === 0) {
      yield [tag >> 3, numberAt(bytes, at)];
      continue;
    }
    const length = kind === 1 ? 8 : kind === 5 ? 4 : numberAt(bytes, at);
    yield [tag >> 3, bytes.subarray(at.at, at.at + length)];
    at.at += length;
  }
}

/** Less than 2^53: more is not in these tiles. */
function numberAt(bytes: Uint8Array, at: { at: number }): number {
  let value = 0;
  for (let factor = 1; ; factor *= 128) {
    const byte = bytes[at.at++] ?? 0;
    value += (byte & 127) * factor;
    if (byte < 128) return value;
  }
}

function numbersIn(bytes: Uint8Array): number[] {
  const numbers: number[] = [];
  for (const at = { at: 0 }; at.at < bytes.length; ) numbers.push(numberAt(bytes, at));
  return numbers;
}

const decoder = new TextDecoder();

function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** A text or a whole number; of others, which the page does not read, 0. */
function valueIn(bytes: Uint8Array): Value {
  for (const [field, value] of fieldsOf(bytes)) {
    if (field === 1) return textOf(value as Uint8Array);
    if (field === 4 || field === 5) return value as number;
  }
  return 0;
}

function unzigzag(value: number): number {
  return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
}
