import { VectorTile, type VectorTileFeature } from '@mapbox/vector-tile';
import { PbfReader } from 'pbf';

/** An area of a tile as a reader of tiles sees it. */
export interface DecodedArea {
  readonly id: number;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly isPolygon: boolean;
  /** Units of the tile; rings are closed. */
  readonly paths: readonly (readonly { readonly x: number; readonly y: number }[])[];
}

/** The layer of areas in a tile, in its order. Nothing: no areas. */
export function decodedTile(bytes: Uint8Array | null): DecodedArea[] {
  if (bytes === null) return [];
  const { layers } = new VectorTile(new PbfReader(bytes));
  const layer = layers['areas'];
  if (layer === undefined || Object.keys(layers).length !== 1) throw new Error('a tile has one layer, areas');
  if (layer.version !== 2 || layer.extent !== 4096)
    throw new Error('a tile is of version 2, with 4096 units');
  return Array.from({ length: layer.length }, (_, n) => decoded(layer.feature(n)));
}

function decoded(feature: VectorTileFeature): DecodedArea {
  return {
    id: feature.id as number,
    properties: { ...feature.properties },
    isPolygon: feature.type === 3,
    paths: feature.loadGeometry().map((path) => path.map(({ x, y }) => ({ x, y }))),
  };
}

/** Whether a point of the tile is in the polygon that is drawn: by the edges that a ray from it crosses. */
export function isDrawnAt({ isPolygon, paths }: DecodedArea, x: number, y: number): boolean {
  let isInside = false;
  for (const path of isPolygon ? paths : []) {
    for (let n = 1; n < path.length; n++) {
      const [a, b] = [path[n - 1]!, path[n]!];
      if (a.y <= y !== b.y <= y && x < a.x + ((y - a.y) / (b.y - a.y)) * (b.x - a.x)) isInside = !isInside;
    }
  }
  return isInside;
}
