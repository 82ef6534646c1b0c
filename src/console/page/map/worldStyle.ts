import type {
  ExpressionSpecification,
  GeoJSONSource,
  LayerSpecification,
  Map as MapLibre,
  StyleSpecification,
} from 'maplibre-gl';
import type { Box } from './box.ts';
import type { Scheme } from './scheme.ts';

/** Both are calm: vehicles, areas and ways stand out on them. */
const PAINT = {
  light: {
    sea: '#d5e3ea',
    land: '#f5f3ee',
    coast: '#b9cbd5',
    border: '#c4bcae',
    river: '#c3d6e0',
    country: '#766c5f',
    place: '#4b545e',
  },
  dark: {
    sea: '#0f151b',
    land: '#20262d',
    coast: '#303a44',
    border: '#48515b',
    river: '#151d25',
    country: '#98a3ae',
    place: '#b4bec8',
  },
};

/** Of the fonts of the system: the map draws names itself, without files of glyphs. */
export const FONT: string[] = ['system-ui'];
/** Of the data. Closer up its tiles are enlarged. */
const DATA_ZOOM_MAX = 7;
/** Lakes and rivers are drawn up to some kilometres beside their places: close up they would mislead. */
const WATER_ZOOM_MAX = 10;
const SOURCE = 'world';

/** Land, waters, borders and names from the service itself: tiles of Natural Earth at the scale that fits the zoom. */
export function worldStyle(scheme: Scheme): StyleSpecification {
  const paint = PAINT[scheme];
  const template = document.querySelector<HTMLElement>('#console')?.dataset['world'] ?? '';
  const from = (layer: string) => ({ source: SOURCE, 'source-layer': layer });
  return {
    version: 8,
    // The map fetches them in a worker, which wants whole addresses.
    sources: { [SOURCE]: { type: 'vector', tiles: [location.origin + template], maxzoom: DATA_ZOOM_MAX } },
    layers: [
      { id: 'sea', type: 'background', paint: { 'background-color': paint.sea } },
      { id: 'land', type: 'fill', ...from('land'), paint: { 'fill-color': paint.land } },
      {
        id: 'coast',
        type: 'line',
        ...from('land'),
        paint: { 'line-color': paint.coast, 'line-width': zoomed(0, 0.4, 6, 1) },
      },
      {
        id: 'rivers',
        type: 'line',
        ...from('rivers'),
        minzoom: 2,
        maxzoom: WATER_ZOOM_MAX,
        layout: { 'line-cap': 'round', 'line-join': 'round' },
        paint: { 'line-color': paint.river, 'line-width': zoomed(2, 0.5, 8, 2.5) },
      },
      {
        id: 'lakes',
        type: 'fill',
        ...from('lakes'),
        maxzoom: WATER_ZOOM_MAX,
        paint: { 'fill-color': paint.sea, 'fill-outline-color': paint.coast },
      },
      {
        id: 'border',
        type: 'line',
        ...from('borders'),
        layout: { 'line-join': 'round' },
        paint: { 'line-color': paint.border, 'line-width': zoomed(1, 0.5, 7, 1.6) },
      },
    ],
  };
}

/** Names of countries and places, to be added above all shapes. */
export function worldNames(scheme: Scheme): LayerSpecification[] {
  const { land, country, place } = PAINT[scheme];
  const names = (kind: string) => ({
    source: SOURCE,
    'source-layer': 'names',
    filter: ['==', ['get', 'kind'], kind] satisfies ExpressionSpecification,
  });
  const layout = {
    'text-field': ['get', 'name'] satisfies ExpressionSpecification,
    'text-font': FONT,
    'symbol-sort-key': ['get', 'rank'] satisfies ExpressionSpecification,
  };
  const halo = { 'text-halo-color': land, 'text-halo-width': 1.4 };
  return [
    {
      id: 'place-names',
      type: 'symbol',
      ...names('place'),
      layout: {
        ...layout,
        'text-size': zoomed(3, 10, 10, 14),
        'text-padding': zoomed(3, 12, 8, 4),
        'text-max-width': 8,
      },
      paint: { 'text-color': place, ...halo },
    },
    {
      id: 'country-names',
      type: 'symbol',
      ...names('country'),
      maxzoom: DATA_ZOOM_MAX,
      layout: {
        ...layout,
        'text-size': zoomed(1, 10, 6, 17),
        'text-letter-spacing': 0.12,
        'text-transform': 'uppercase',
        'text-max-width': 7,
      },
      paint: { 'text-color': country, ...halo },
    },
  ];
}

function zoomed(from: number, value: number, to: number, toValue: number): ExpressionSpecification {
  return ['interpolate', ['linear'], ['zoom'], from, value, to, toValue];
}

/** Of the source and its layers. */
const GRID = 'graticule';
/** From here on the map of the world has hardly anything to show. */
const GRID_ZOOM_MIN = 9;
/** Lines of one direction in a view, at most. */
const LINES_MAX = 6;
const PARTS = [1, 2, 5];
const GRID_COLORS: Readonly<Record<Scheme, { line: string; text: string }>> = {
  light: { line: '#d9d3c7', text: '#766c5f' },
  dark: { line: '#343d47', text: '#98a3ae' },
};

interface Line {
  readonly coordinates: readonly (readonly [lng: number, lat: number])[];
  /** "41.92° N". */
  readonly name: string;
}

/** Meridians and parallels at round parts of a degree, a few in each direction of the box. */
export function graticuleOf({ west, south, east, north }: Box): readonly Line[] {
  const [lngStep, digits] = stepOf(east - west);
  const [latStep, latDigits] = stepOf(north - south);
  return [
    ...multiples(west, east, lngStep).map((lng) => ({
      coordinates: [[lng, south] as const, [lng, north] as const],
      name: nameOf(lng, digits, 'E', 'W'),
    })),
    ...multiples(south, north, latStep).map((lat) => ({
      coordinates: [[west, lat] as const, [east, lat] as const],
      name: nameOf(lat, latDigits, 'N', 'S'),
    })),
  ];
}

/** The least step of 1, 2 or 5 tenths, hundredths … that a length has few of, and its decimals. */
function stepOf(length: number): readonly [step: number, digits: number] {
  const least = length / LINES_MAX;
  const digits = Math.max(0, -Math.floor(Math.log10(least)));
  const unit = 10 ** -digits;
  const part = PARTS.find((each) => each * unit >= least) ?? 10;
  return [part * unit, part === 10 ? Math.max(0, digits - 1) : digits];
}

function multiples(from: number, to: number, step: number): readonly number[] {
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(to / step) - first + 1);
  return Array.from({ length: count }, (_, n) => (first + n) * step);
}

function nameOf(degrees: number, digits: number, positive: string, negative: string): string {
  const wrapped = degrees - 360 * Math.round(degrees / 360);
  return `${Math.abs(wrapped).toFixed(digits)}° ${wrapped < 0 ? negative : positive}`;
}

/** Draws the lines with their names on the map of the world, below everything that is added later, and again after each move. */
export function drawGraticule(map: MapLibre, scheme: () => Scheme): void {
  const data = () => {
    const [[west, south], [east, north]] = map.getBounds().toArray();
    const lines = map.getZoom() < GRID_ZOOM_MIN ? [] : graticuleOf({ west, south, east, north });
    return {
      type: 'FeatureCollection' as const,
      features: lines.map(({ coordinates, name }) => ({
        type: 'Feature' as const,
        properties: { name },
        geometry: { type: 'LineString' as const, coordinates: coordinates.map(([lng, lat]) => [lng, lat]) },
      })),
    };
  };
  map.on('style.load', () => {
    const { line, text } = GRID_COLORS[scheme()];
    map.addSource(GRID, { type: 'geojson', data: data() });
    map.addLayer({ id: GRID, type: 'line', source: GRID, paint: { 'line-color': line } });
    map.addLayer({
      id: `${GRID}-names`,
      type: 'symbol',
      source: GRID,
      layout: {
        'symbol-placement': 'line',
        'symbol-spacing': 600,
        'text-field': ['get', 'name'],
        'text-font': FONT,
        'text-size': 10,
        'text-offset': [0, -0.7],
      },
      paint: { 'text-color': text },
    });
  });
  map.on('moveend', () => void map.getSource<GeoJSONSource>(GRID)?.setData(data()));
}
