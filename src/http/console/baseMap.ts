import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';

const LAND = import.meta.resolve('world-atlas/land-110m.json');
const COUNTRIES = import.meta.resolve('world-atlas/countries-110m.json');

/** Tenths of a degree: 11 km. The points of this map lie five times as far apart, and two decimals cost 9 kB more. */
const DECIMALS = 1;

/** GeoJSON of the land and of the borders of countries (Natural Earth, 1:110 million), as features with a `kind`. */
export function baseMap(): string {
  const land = read(LAND);
  const countries = read(COUNTRIES);
  const borders = mesh(countries, countries.objects['countries'] as GeometryCollection, (a, b) => a !== b);
  const [coast] = feature(land, land.objects['land'] as GeometryCollection).features;
  const features = [
    { type: 'Feature', properties: { kind: 'land' }, geometry: coast?.geometry },
    { type: 'Feature', properties: { kind: 'border' }, geometry: borders },
  ];
  return JSON.stringify({ type: 'FeatureCollection', features }, (_, value) =>
    typeof value === 'number' ? Number(value.toFixed(DECIMALS)) : value,
  );
}

function read(url: string): Topology {
  return JSON.parse(readFileSync(fileURLToPath(url), 'utf8')) as Topology;
}
