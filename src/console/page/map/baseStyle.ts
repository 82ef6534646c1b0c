import type { StyleSpecification } from 'maplibre-gl';
import type { VehicleColors } from './vehicleDrawing.ts';
import { baseTiles } from './base/baseTiles.ts';
import type { Scheme } from './base/scheme.ts';
import { tileStyle } from './base/tileStyle.ts';

const PAINT = {
  light: { sea: '#cfe0ea', land: '#f4f2ec', border: '#b9b3a6' },
  dark: { sea: '#10161c', land: '#23282e', border: '#4a525b' },
};

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

/** What the service was given as tiles, or land and borders: a style, or the address of one. */
export function baseStyle(scheme: Scheme): StyleSpecification | string {
  if (baseTiles === null) return worldStyle(scheme);
  return 'styleUrl' in baseTiles ? baseTiles.styleUrl : tileStyle(scheme, baseTiles);
}

/** Land and borders, from the service itself. */
export function worldStyle(scheme: Scheme): StyleSpecification {
  const { sea, land, border } = PAINT[scheme];
  return {
    version: 8,
    sources: { world: { type: 'geojson', data: import.meta.resolve('/console/world.json'), tolerance: 0.1 } },
    layers: [
      { id: 'sea', type: 'background', paint: { 'background-color': sea } },
      {
        id: 'land',
        type: 'fill',
        source: 'world',
        filter: ['==', ['get', 'kind'], 'land'],
        paint: { 'fill-color': land },
      },
      {
        id: 'border',
        type: 'line',
        source: 'world',
        filter: ['==', ['get', 'kind'], 'border'],
        paint: { 'line-color': border },
      },
    ],
  };
}
