import type { Feature } from 'geojson';
import type {
  ExpressionSpecification,
  GeoJSONSource,
  LayerSpecification,
  Map as MapLibre,
} from 'maplibre-gl';
import { type Scheme, scheme } from './scheme.ts';
import { FONT } from './worldStyle.ts';

/** Layers without what the overlay adds itself. */
export type OverlayLayer = LayerSpecification extends infer Layer
  ? Layer extends { source: string }
    ? Omit<Layer, 'source'>
    : never
  : never;

/** Some shapes on the map, that come back when the map is styled anew. */
export class Overlay {
  readonly #name: string;
  readonly #layers: (scheme: Scheme) => readonly OverlayLayer[];
  #map: MapLibre | null = null;
  #features: readonly Feature[] = [];

  constructor(name: string, layers: (scheme: Scheme) => readonly OverlayLayer[]) {
    this.#name = name;
    this.#layers = layers;
  }

  add(map: MapLibre): void {
    this.#map = map;
    if (map.getSource(this.#name) !== undefined) return;
    // A small circle stays round: the default takes away corners of up to three eighths of a pixel.
    map.addSource(this.#name, { type: 'geojson', data: this.#data(), tolerance: 0.1 });
    for (const layer of this.#layers(scheme()))
      map.addLayer({ ...layer, source: this.#name } as LayerSpecification);
  }

  show(features: readonly Feature[]): void {
    this.#features = features;
    void this.#map?.getSource<GeoJSONSource>(this.#name)?.setData(this.#data());
  }

  #data() {
    return { type: 'FeatureCollection' as const, features: [...this.#features] };
  }
}

const ACCENT = '#1a66d6';
/** What is compared with it. */
const OTHER = '#d1520f';
const COLOR: ExpressionSpecification = ['get', 'color'];
/** The width of a track is in metres: it doubles with each zoom. */
const TRACK_WIDTH: ExpressionSpecification = [
  'interpolate',
  ['exponential', 2],
  ['zoom'],
  0,
  ['get', 'widthPx'],
  24,
  ['*', 2 ** 24, ['get', 'widthPx']],
];
const IS_TRACK: ExpressionSpecification = ['==', ['geometry-type'], 'LineString'];
const ROUND = { 'line-cap': 'round', 'line-join': 'round' } as const;
const CHOSEN_WIDTH: ExpressionSpecification = ['case', ['get', 'isChosen'], 4, 1.5];
const CHOSEN_OPACITY: ExpressionSpecification = ['case', ['get', 'isChosen'], 0.35, 0.15];

export function areasOverlay(): Overlay {
  return new Overlay('areas', (scheme) => [
    {
      id: 'area-fill',
      type: 'fill',
      filter: ['!', IS_TRACK],
      paint: { 'fill-color': COLOR, 'fill-opacity': CHOSEN_OPACITY },
    },
    {
      id: 'area-track',
      type: 'line',
      filter: IS_TRACK,
      layout: ROUND,
      paint: { 'line-color': COLOR, 'line-opacity': CHOSEN_OPACITY, 'line-width': TRACK_WIDTH },
    },
    {
      id: 'area-line',
      type: 'line',
      layout: ROUND,
      paint: { 'line-color': COLOR, 'line-width': CHOSEN_WIDTH },
    },
    {
      id: 'area-name',
      type: 'symbol',
      minzoom: AREA_NAMES_ZOOM,
      filter: ['has', 'name'],
      layout: {
        'text-field': ['get', 'name'],
        'text-font': FONT,
        'text-size': 12,
        'text-max-width': 9,
        'symbol-sort-key': ['case', ['get', 'isChosen'], 0, 1],
      },
      paint: textPaint(scheme),
    },
  ]);
}

/** Where areas of some hundred metres begin to be wider than their names. */
const AREA_NAMES_ZOOM = 11;

function textPaint(scheme: Scheme) {
  const [ink, halo] = scheme === 'light' ? ['#2f3943', '#ffffff'] : ['#d3dae1', '#11161b'];
  return { 'text-color': ink, 'text-halo-color': halo, 'text-halo-width': 1.5 };
}

/** Layers that a click may hit. */
export const AREA_LAYERS = ['area-fill', 'area-track', 'area-line'];

/** The way of the chosen vehicle, and dashed that of another one, each with a place on it. */
export function trailOverlay(): Overlay {
  const isOther: ExpressionSpecification = ['get', 'isOther'];
  const isPlace: ExpressionSpecification = ['==', ['geometry-type'], 'Point'];
  return new Overlay('trail', () => [
    {
      id: 'trail',
      type: 'line',
      filter: ['!', isOther],
      layout: ROUND,
      paint: { 'line-color': ACCENT, 'line-width': 3, 'line-opacity': 0.8 },
    },
    {
      id: 'trail-other',
      type: 'line',
      filter: isOther,
      paint: { 'line-color': OTHER, 'line-width': 3, 'line-dasharray': [2, 1] },
    },
    {
      id: 'trail-place',
      type: 'circle',
      filter: isPlace,
      paint: {
        'circle-radius': 7,
        'circle-color': ['case', isOther, '#ffffff', ACCENT],
        'circle-stroke-color': ['case', isOther, OTHER, '#ffffff'],
        'circle-stroke-width': ['case', isOther, 4, 2],
      },
    },
  ]);
}

/** The ways of the vehicles of a share. */
export function sharesOverlay(): Overlay {
  return new Overlay('shares', () => [
    {
      id: 'share-way',
      type: 'line',
      layout: ROUND,
      paint: { 'line-color': ACCENT, 'line-width': 3, 'line-opacity': 0.6 },
    },
  ]);
}

/** Vehicles on one spot, apart from each other. */
export function spotOverlay(): Overlay {
  return new Overlay('spot', (scheme) => [
    {
      id: 'spot-line',
      type: 'line',
      filter: IS_TRACK,
      paint: { 'line-color': scheme === 'light' ? '#55616e' : '#a5b0bc', 'line-width': 1 },
    },
    {
      id: 'spot-place',
      type: 'circle',
      filter: ['!', IS_TRACK],
      paint: {
        'circle-radius': ['case', ['get', 'isChosen'], 11, 8],
        'circle-color': COLOR,
        'circle-stroke-color': '#ffffff',
        'circle-stroke-width': 2,
      },
    },
    {
      id: 'spot-name',
      type: 'symbol',
      filter: ['!', IS_TRACK],
      layout: {
        'text-field': ['get', 'name'],
        'text-font': FONT,
        'text-size': 12,
        'text-variable-anchor': ['left', 'right', 'top', 'bottom'],
        'text-radial-offset': 1,
      },
      paint: textPaint(scheme),
    },
  ]);
}

/** Layers of it that a click may hit. */
export const SPOT_LAYERS = ['spot-place', 'spot-name'];

/** Of a fleet that is too large: clusters with their shares by status, and single vehicles where there are few. */
export function clustersOverlay(): Overlay {
  const isCluster: ExpressionSpecification = ['has', 'picture'];
  return new Overlay('clusters', () => [
    {
      id: 'single',
      type: 'circle',
      filter: ['!', isCluster],
      paint: {
        'circle-radius': 4,
        'circle-color': COLOR,
        'circle-stroke-color': '#ffffff',
        'circle-stroke-width': 1,
      },
    },
    {
      id: 'cluster',
      type: 'symbol',
      filter: isCluster,
      layout: {
        'icon-image': ['get', 'picture'],
        'icon-size': ['get', 'scale'],
        'icon-allow-overlap': true,
        'text-field': ['get', 'label'],
        'text-size': 12,
        'text-allow-overlap': true,
        'symbol-sort-key': ['get', 'count'],
      },
      paint: { 'text-color': ['get', 'ink'] },
    },
  ]);
}

/** Layers of it that a click may hit. */
export const CLUSTER_LAYERS = ['cluster', 'single'];

/** The draft of an area, and what of it can be dragged. */
export function draftOverlay(): Overlay {
  const isShape: ExpressionSpecification = ['==', ['get', 'kind'], 'shape'];
  return new Overlay('draft', () => [
    {
      id: 'draft-fill',
      type: 'fill',
      filter: ['all', isShape, ['!', IS_TRACK]],
      paint: { 'fill-color': COLOR, 'fill-opacity': 0.25 },
    },
    {
      id: 'draft-track',
      type: 'line',
      filter: ['all', isShape, IS_TRACK],
      layout: ROUND,
      paint: { 'line-color': COLOR, 'line-opacity': 0.25, 'line-width': TRACK_WIDTH },
    },
    {
      id: 'draft-line',
      type: 'line',
      filter: isShape,
      layout: ROUND,
      paint: { 'line-color': COLOR, 'line-width': 3, 'line-dasharray': [2, 1] },
    },
    {
      id: 'draft-handle',
      type: 'circle',
      filter: ['!', isShape],
      paint: {
        'circle-radius': 7,
        'circle-color': ['case', ['get', 'isChosen'], ACCENT, '#ffffff'],
        'circle-stroke-color': ['case', ['get', 'isChosen'], '#ffffff', ACCENT],
        'circle-stroke-width': 3,
      },
    },
  ]);
}
