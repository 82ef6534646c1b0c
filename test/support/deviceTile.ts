import { VectorTile } from '@mapbox/vector-tile';
import { PbfReader } from 'pbf';

/** A point of a tile: where it is, in units, and its properties. */
export interface TilePoint {
  readonly x: number;
  readonly y: number;
  readonly properties: Readonly<Record<string, string | number | boolean>>;
}

/** The points of a tile's only layer, in its order, and the name of the layer; null: there is nothing in it. */
export function decodedPoints(bytes: Uint8Array | null): { layer: string | null; points: TilePoint[] } {
  if (bytes === null || bytes.length === 0) return { layer: null, points: [] };
  const { layers } = new VectorTile(new PbfReader(bytes));
  const [layer, ...others] = Object.values(layers);
  if (layer === undefined || others.length > 0) throw new Error('a tile has one layer');
  if (layer.version !== 2 || layer.extent !== 4096)
    throw new Error('a tile is of version 2, with 4096 units');
  const points = Array.from({ length: layer.length }, (_, n) => {
    const feature = layer.feature(n);
    const [path, ...more] = feature.loadGeometry();
    const [point] = path ?? [];
    if (feature.type !== 1 || point === undefined || more.length > 0) throw new Error('a feature is a point');
    return { x: point.x, y: point.y, properties: { ...feature.properties } as TilePoint['properties'] };
  });
  return { layer: layer.name, points };
}

/** The tile of a zoom that a position is in, by the usual formulas. */
export function tileOfPlace(z: number, lat: number, lng: number): { z: number; x: number; y: number } {
  const { x, y } = onMap(lat, lng);
  const wide = 2 ** z;
  return { z, x: Math.floor(x * wide), y: Math.floor(y * wide) };
}

/** Shares of the map from its north-west corner, in Web Mercator. 180° is -180°; what is beyond an end is at it. */
export function onMap(lat: number, lng: number): { x: number; y: number } {
  const angle = (lat * Math.PI) / 180;
  const y = 0.5 - Math.log(Math.tan(Math.PI / 4 + angle / 2)) / (2 * Math.PI);
  const least = 2 ** -30;
  return {
    x: (lng === 180 ? 0 : lng + 180) / 360,
    // Of a pole the logarithm is that of zero or of infinity, or of a rounded number near them.
    y: Math.abs(lat) > 85.06 ? (lat > 0 ? 0 : 1 - least) : Math.max(0, Math.min(1 - least, y)),
  };
}
