import type {
  ExpressionSpecification,
  LayerSpecification,
  Map as MapLibre,
  RasterSourceSpecification,
  StyleSpecification,
  VectorSourceSpecification,
} from 'maplibre-gl';
import type { Scheme } from './scheme.ts';
import type { VehicleColors } from './vehicles/vehicleDrawing.ts';
import { FONT, worldNames, worldStyle } from './worldStyle.ts';

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
    building: '#e6e1d7',
    border: '#b9b3a6',
    motorway: '#f7dfae',
    main: '#fcf3d6',
    street: '#ffffff',
    casing: '#d5ccbb',
    rail: '#bdb7ab',
    roadName: '#5f584c',
    placeName: '#3f4852',
  },
  dark: {
    land: '#23282e',
    green: '#242e2a',
    water: '#10161c',
    building: '#2a3138',
    border: '#4a525b',
    motorway: '#6a6049',
    main: '#545148',
    street: '#404953',
    casing: '#191e24',
    rail: '#4d5660',
    roadName: '#b0b9c2',
    placeName: '#c6ced6',
  },
};

type Paint = (typeof TILE_PAINT)[Scheme];

/** What layers of tiles show, from the lowest up: the names of the Protomaps, OpenMapTiles and Shortbread schemas. */
const SHOWN = {
  land: ['earth'],
  green: ['landcover', 'landuse', 'park', 'land', 'sites'],
  water: ['water', 'ocean', 'water_polygons'],
  building: ['building', 'buildings'],
  border: ['boundary', 'boundaries'],
  road: ['roads', 'transportation', 'streets'],
  roadName: ['roads', 'transportation_name', 'street_labels'],
  placeName: ['places', 'place', 'place_labels'],
} as const;
const SURFACES = ['land', 'green', 'water', 'building'] as const;
const BUILDING_MIN_ZOOM = 14;
const RAIL_MIN_ZOOM = 11;
const ROAD_NAMES_MIN_ZOOM = 12;

/** What a road or a place is, in any of the schemas: the more exact word where there are two. */
const KIND: ExpressionSpecification = [
  'coalesce',
  ['get', 'kind_detail'],
  ['get', 'pmap:kind_detail'],
  ['get', 'class'],
  ['get', 'kind'],
  ['get', 'pmap:kind'],
  '',
];
const NAME: ExpressionSpecification = ['coalesce', ['get', 'name'], ['get', 'name:latin'], ''];

/** Kinds of roads by their rank; every other kind is a street. */
const RANKS: Readonly<Record<number, readonly string[]>> = {
  5: ['motorway', 'motorway_link', 'highway', 'trunk', 'trunk_link'],
  4: ['primary', 'primary_link', 'major_road'],
  3: ['secondary', 'secondary_link', 'tertiary', 'tertiary_link', 'medium_road'],
  1: ['service', 'path', 'track', 'pedestrian', 'footway', 'cycleway', 'bridleway', 'steps', 'corridor'],
};
const STREET_RANK = 2;
const RAILS = ['rail', 'light_rail', 'subway', 'tram', 'narrow_gauge', 'monorail', 'funicular', 'transit'];
/** In the layers of roads, and none. */
const OTHERS = ['ferry', 'aerialway', 'aeroway', 'runway', 'taxiway', 'pier', ...RAILS];
const IS_RAIL: ExpressionSpecification = ['in', KIND, ['literal', RAILS]];
const IS_ROAD: ExpressionSpecification = [
  'all',
  ['in', ['geometry-type'], ['literal', ['LineString', 'MultiLineString']]],
  ['!', ['in', KIND, ['literal', OTHERS]]],
  ['!', ['in', ['coalesce', ['get', 'kind'], ''], ['literal', OTHERS]]],
];
const RANK = byKind(RANKS, STREET_RANK);
/** Pixels of the ranks 1 to 5 by zoom. */
const ROAD_WIDTHS: readonly (readonly [zoom: number, widths: readonly number[]])[] = [
  [5, [0, 0, 0, 0.3, 0.8]],
  [8, [0, 0, 0.4, 0.9, 1.6]],
  [11, [0, 0.3, 1.1, 1.8, 2.8]],
  [14, [0.8, 2, 3.6, 5, 6.5]],
  [17, [4, 9, 13, 16, 18]],
  [20, [18, 44, 56, 66, 72]],
];
const CASING_PX = 1.6;

function byKind(kinds: Readonly<Record<number, readonly string[]>>, others: number): ExpressionSpecification {
  const pairs = Object.entries(kinds).flatMap(([value, names]) => [[...names], Number(value)]);
  return ['match', KIND, ...pairs, others] as unknown as ExpressionSpecification;
}

/** The width of a road with so much beside it; a road that is too narrow to be seen has nothing beside it. */
function roadWidth(besidePx: number): ExpressionSpecification {
  const stops = ROAD_WIDTHS.flatMap(([zoom, widths]) => {
    const pairs = widths.flatMap((width, n) => [n + 1, width === 0 ? 0 : width + besidePx]);
    return [zoom, ['match', RANK, ...pairs, 0]];
  });
  return ['interpolate', ['exponential', 1.4], ['zoom'], ...stops] as unknown as ExpressionSpecification;
}

/** Surfaces, borders and roads of an archive. */
function tileStyle(scheme: Scheme, { source, layers }: SourcedTiles): StyleSpecification {
  const paint = TILE_PAINT[scheme];
  // Where the land has no layer it is what lies below all others; else the sea is.
  const ground = source.type === 'vector' && layers.includes('earth') ? paint.water : paint.land;
  const shown = (as: keyof typeof SHOWN) => SHOWN[as].filter((name) => layers.includes(name));
  return {
    version: 8,
    sources: { tiles: source },
    layers: [
      { id: 'ground', type: 'background', paint: { 'background-color': ground } },
      ...(source.type === 'raster'
        ? [{ id: 'tiles', type: 'raster', source: 'tiles' } satisfies LayerSpecification]
        : [
            ...SURFACES.flatMap((as) => shown(as).map((name) => surface(as, name, paint))),
            ...shown('border').map((name) => border(name, paint)),
            ...shown('road').flatMap((name) => roads(name, paint)),
          ]),
    ],
  };
}

function from(name: string, part = '') {
  return { id: `tiles-${name}${part}`, source: 'tiles', 'source-layer': name };
}

function surface(as: (typeof SURFACES)[number], name: string, paint: Paint): LayerSpecification {
  return {
    ...from(name),
    type: 'fill',
    ...(as === 'building' && { minzoom: BUILDING_MIN_ZOOM }),
    filter: ['in', ['geometry-type'], ['literal', ['Polygon', 'MultiPolygon']]],
    paint: { 'fill-color': paint[as] },
  };
}

function border(name: string, paint: Paint): LayerSpecification {
  return {
    ...from(name),
    type: 'line',
    paint: {
      'line-color': paint.border,
      'line-width': ['interpolate', ['exponential', 1.5], ['zoom'], 6, 0.5, 18, 4],
    },
  };
}

/** Rails, then the edges of all roads, then the roads: the greater above the lesser. */
function roads(name: string, paint: Paint): LayerSpecification[] {
  const inOrder = { 'line-join': 'round', 'line-sort-key': RANK } as const;
  const { motorway, main, street } = paint;
  return [
    {
      ...from(name, '-rail'),
      type: 'line',
      minzoom: RAIL_MIN_ZOOM,
      filter: IS_RAIL,
      paint: {
        'line-color': paint.rail,
        'line-width': ['interpolate', ['linear'], ['zoom'], 11, 0.6, 18, 2.4],
      },
    },
    {
      ...from(name, '-casing'),
      type: 'line',
      filter: ['all', IS_ROAD, ['>=', RANK, STREET_RANK]],
      layout: inOrder,
      paint: { 'line-color': paint.casing, 'line-width': roadWidth(CASING_PX) },
    },
    {
      ...from(name),
      type: 'line',
      filter: IS_ROAD,
      layout: { 'line-cap': 'round', ...inOrder },
      paint: {
        'line-color': ['match', RANK, 5, motorway, 4, main, street],
        'line-width': roadWidth(0),
      },
    },
  ];
}

/** Sizes of names by the kinds of their places. */
const PLACE_SIZES = {
  15: ['country', 'city', 'capital', 'state_capital'],
  13: ['town', 'locality', 'region', 'state', 'province'],
};
const OTHER_PLACE_SIZE = 11;
/** The less the earlier: what the schemas say of how much a place matters. */
const PLACE_ORDER: ExpressionSpecification = [
  'to-number',
  ['coalesce', ['get', 'rank'], ['get', 'min_zoom'], ['get', 'pmap:min_zoom']],
  ['-', 0, ['to-number', ['get', 'population'], 0]],
];

/** The names of the base map, which stand above areas; a style of another host has its own. */
export function baseNames(map: MapLibre, scheme: Scheme): LayerSpecification[] {
  if (baseTiles !== null && 'source' in baseTiles) return tileNames(scheme, baseTiles);
  return map.getSource('world') === undefined ? [] : worldNames(scheme);
}

/** Names of roads along them, and of places. The map draws them with the fonts of the system: archives have none. */
function tileNames(scheme: Scheme, { source, layers }: SourcedTiles): LayerSpecification[] {
  if (source.type === 'raster') return [];
  const paint = TILE_PAINT[scheme];
  const shown = (as: keyof typeof SHOWN) => SHOWN[as].filter((name) => layers.includes(name));
  const layout = { 'text-field': NAME, 'text-font': FONT };
  const halo = { 'text-halo-color': paint.land, 'text-halo-width': 1.4 };
  return [
    ...shown('roadName').map(
      (name): LayerSpecification => ({
        ...from(name, '-names'),
        type: 'symbol',
        minzoom: ROAD_NAMES_MIN_ZOOM,
        filter: IS_ROAD,
        layout: {
          ...layout,
          'symbol-placement': 'line',
          'symbol-sort-key': ['-', 0, RANK],
          'text-size': ['interpolate', ['linear'], ['zoom'], 12, 10, 17, 13],
          'text-padding': 6,
        },
        paint: { 'text-color': paint.roadName, ...halo },
      }),
    ),
    ...shown('placeName').map(
      (name): LayerSpecification => ({
        ...from(name, '-names'),
        type: 'symbol',
        layout: {
          ...layout,
          'symbol-sort-key': PLACE_ORDER,
          'text-size': byKind(PLACE_SIZES, OTHER_PLACE_SIZE),
          'text-max-width': 8,
        },
        paint: { 'text-color': paint.placeName, ...halo },
      }),
    ),
  ];
}
