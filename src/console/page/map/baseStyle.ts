import type {
  LayerSpecification,
  RasterSourceSpecification,
  StyleSpecification,
  VectorSourceSpecification,
} from 'maplibre-gl';
import type { Scheme } from './scheme.ts';
import type { VehicleColors } from './vehicles/vehicleDrawing.ts';
import { worldStyle } from './worldStyle.ts';

/** Chosen so that they differ in lightness as well as in hue. */
const VEHICLES: Readonly<Record<Scheme, VehicleColors>> = {
  light: {
    statuses: [0.62, 0.42, 0.02, 0.45, 0.48, 0.52, 0.05, 0.33, 0.72, 0.07, 0.5, 0.22],
    edge: [1, 1, 1],
  },
  dark: {
    statuses: [0.95, 0.73, 0.3, 0.55, 0.58, 0.62, 0.5, 0.7, 1, 0.42, 0.85, 0.5],
    edge: [0.05, 0.06, 0.08],
  },
};

export function vehicleColors(scheme: Scheme): VehicleColors {
  return VEHICLES[scheme];
}

/** What the service was given as tiles, or the world that comes with it: a style, or the address of one. */
export function baseStyle(scheme: Scheme): StyleSpecification | string {
  if (baseTiles === null) return worldStyle(scheme);
  return 'styleUrl' in baseTiles ? baseTiles.styleUrl : tileStyle(scheme, baseTiles);
}

type TileSource = VectorSourceSpecification | RasterSourceSpecification;

/** What the map is drawn on: a style of its own, or a source of tiles with the ids of their layers. */
export type BaseTiles =
  | { readonly styleUrl: string }
  | { readonly source: TileSource; readonly layers: readonly string[] };

/** What the service was given (CONSOLE_TILES); null: the world that comes with it. */
export const baseTiles: BaseTiles | null = read();

function read(): BaseTiles | null {
  const json = document.querySelector<HTMLElement>('#console')?.dataset['tiles'];
  if (json === undefined) return null;
  const tiles = JSON.parse(json) as BaseTiles;
  if ('styleUrl' in tiles) return tiles;
  // The map fetches them in a worker, which wants whole addresses.
  const urls = tiles.source.tiles?.map((path) => location.origin + path) ?? [];
  return { source: { ...tiles.source, tiles: urls }, layers: tiles.layers };
}

type SourcedTiles = Exclude<BaseTiles, { styleUrl: string }>;

const TILE_PAINT = {
  light: {
    land: '#f4f2ec',
    green: '#e4ecd8',
    water: '#cfe0ea',
    building: '#e2ddd2',
    border: '#b9b3a6',
    road: '#ffffff',
  },
  dark: {
    land: '#23282e',
    green: '#242e2a',
    water: '#10161c',
    building: '#2d343c',
    border: '#4a525b',
    road: '#39424b',
  },
};

type Paint = (typeof TILE_PAINT)[Scheme];

/** What layers of tiles show, from the lowest up: the names of the Protomaps, OpenMapTiles and Shortbread schemas. */
const SHOWN: readonly { readonly as: keyof Paint; readonly layers: readonly string[] }[] = [
  { as: 'land', layers: ['earth'] },
  { as: 'green', layers: ['landcover', 'landuse', 'park', 'land', 'sites'] },
  { as: 'water', layers: ['water', 'ocean', 'water_polygons'] },
  { as: 'building', layers: ['building', 'buildings'] },
  { as: 'border', layers: ['boundary', 'boundaries'] },
  { as: 'road', layers: ['roads', 'transportation', 'streets'] },
];
const SURFACES = ['Polygon', 'MultiPolygon'];
const LINES: readonly string[] = ['border', 'road'];
const BUILDING_MIN_ZOOM = 14;

/** Surfaces, borders and roads of an archive, without names: these need fonts, which no archive has. */
function tileStyle(scheme: Scheme, { source, layers }: SourcedTiles): StyleSpecification {
  const paint = TILE_PAINT[scheme];
  // Where the land has no layer it is what lies below all others; else the sea is.
  const ground = source.type === 'vector' && layers.includes('earth') ? paint.water : paint.land;
  return {
    version: 8,
    sources: { tiles: source },
    layers: [
      { id: 'ground', type: 'background', paint: { 'background-color': ground } },
      ...(source.type === 'raster'
        ? [{ id: 'tiles', type: 'raster', source: 'tiles' } satisfies LayerSpecification]
        : SHOWN.flatMap(({ as, layers: names }) =>
            names.filter((name) => layers.includes(name)).map((name) => layerOf(as, name, paint[as])),
          )),
    ],
  };
}

function layerOf(as: keyof Paint, name: string, color: string): LayerSpecification {
  const from = { id: `tiles-${name}`, source: 'tiles', 'source-layer': name };
  if (!LINES.includes(as))
    return {
      ...from,
      type: 'fill',
      ...(as === 'building' && { minzoom: BUILDING_MIN_ZOOM }),
      filter: ['in', ['geometry-type'], ['literal', SURFACES]],
      paint: { 'fill-color': color },
    };
  const width = as === 'road' ? 3 : 1;
  return {
    ...from,
    type: 'line',
    paint: {
      'line-color': color,
      'line-width': ['interpolate', ['exponential', 1.5], ['zoom'], 6, 0.5, 18, 4 * width],
    },
  };
}
