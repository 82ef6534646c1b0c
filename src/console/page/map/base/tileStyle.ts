import type { LayerSpecification, StyleSpecification } from 'maplibre-gl';
import type { BaseTiles } from './baseTiles.ts';
import type { Scheme } from './scheme.ts';

type SourcedTiles = Exclude<BaseTiles, { styleUrl: string }>;

const PAINT = {
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

type Paint = (typeof PAINT)[Scheme];

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
export function tileStyle(scheme: Scheme, { source, layers }: SourcedTiles): StyleSpecification {
  const paint = PAINT[scheme];
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
