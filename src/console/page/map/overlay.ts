import type { Feature } from 'geojson';
import type { GeoJSONSource, LayerSpecification, Map as MapLibre } from 'maplibre-gl';

/** Layers without what the overlay adds itself. */
export type OverlayLayer = LayerSpecification extends infer Layer
  ? Layer extends { source: string }
    ? Omit<Layer, 'source'>
    : never
  : never;

/** Some shapes on the map, that come back when the map is styled anew. */
export class Overlay {
  readonly #name: string;
  readonly #layers: readonly OverlayLayer[];
  #map: MapLibre | null = null;
  #features: readonly Feature[] = [];

  constructor(name: string, layers: readonly OverlayLayer[]) {
    this.#name = name;
    this.#layers = layers;
  }

  add(map: MapLibre): void {
    this.#map = map;
    if (map.getSource(this.#name) !== undefined) return;
    // A small circle stays round: the default takes away corners of up to three eighths of a pixel.
    map.addSource(this.#name, { type: 'geojson', data: this.#data(), tolerance: 0.1 });
    for (const layer of this.#layers) map.addLayer({ ...layer, source: this.#name } as LayerSpecification);
  }

  show(features: readonly Feature[]): void {
    this.#features = features;
    void this.#map?.getSource<GeoJSONSource>(this.#name)?.setData(this.#data());
  }

  #data() {
    return { type: 'FeatureCollection' as const, features: [...this.#features] };
  }
}
