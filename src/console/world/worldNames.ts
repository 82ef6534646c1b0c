import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import polylabel from 'polylabel';
import { feature } from 'topojson-client';
import type { GeometryCollection } from 'topojson-specification';
import { type Line, type Polygon, readWorld } from './naturalEarth.ts';

/** A name on the map. */
export interface WorldName {
  readonly kind: 'country' | 'place';
  readonly name: string;
  readonly lng: number;
  readonly lat: number;
  /** The zoom from which on it is shown. */
  readonly from: number;
  /** Where two are too near to each other, the one with the smaller rank is shown: its number among all, largest first. */
  readonly rank: number;
}

/** The largest first. */
export function readCountryNames(): WorldName[] {
  return ranked('country', countries());
}

/** The zoom from which on places are shown. */
export const PLACES_FROM = 3;

/** The populated places of Natural Earth, the largest first. */
export function readPlaceNames(): WorldName[] {
  return ranked('place', places());
}

interface Sized {
  readonly name: string;
  readonly lng: number;
  readonly lat: number;
  /** Of a country square degrees at the equator, of a place its people. */
  readonly size: number;
}

/** From which size on a name is shown at which zoom: a country is then about as wide as its name. */
const FROM: Readonly<Record<WorldName['kind'], readonly (readonly [size: number, zoom: number])[]>> = {
  country: [
    [150, 1],
    [40, 2],
    [8, 3],
    [1.5, 4],
    [0, 5],
  ],
  place: [
    [5_000_000, PLACES_FROM],
    [1_000_000, 4],
    [300_000, 5],
    [60_000, 6],
    [0, 7],
  ],
};

function ranked(kind: WorldName['kind'], named: readonly Sized[]): WorldName[] {
  return [...named]
    .sort((a, b) => b.size - a.size)
    .map(({ name, lng, lat, size }, rank) => {
      const from = FROM[kind].find(([least]) => size >= least)?.[1] ?? 0;
      return { kind, name, lng, lat, from, rank };
    });
}

function countries(): Sized[] {
  const world = readWorld('50m');
  const { features } = feature(world, world.objects['countries'] as GeometryCollection<{ name: string }>);
  return features.flatMap(({ properties, geometry }) => {
    if (geometry.type !== 'Polygon' && geometry.type !== 'MultiPolygon') return [];
    const polygons = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates;
    return [{ name: properties.name, ...labelOf(polygons) }];
  });
}

/** Of the place of a name. */
const PRECISION_DEG = 0.1;

/** Where its largest part is widest, and the size of that. */
function labelOf(polygons: readonly Polygon[]): Pick<Sized, 'lng' | 'lat' | 'size'> {
  let largest: [number, number][][] = [];
  let size = -1;
  let cos = 1;
  for (const polygon of polygons) {
    const [exterior = []] = polygon;
    const lats = exterior.map(([, lat = 0]) => lat);
    const scale = Math.cos(((Math.min(...lats) + Math.max(...lats)) / 2) * (Math.PI / 180));
    // Longitudes continue beyond 180°, so that a ring that crosses it stays in one piece.
    const first = exterior[0]?.[0] ?? 0;
    const flat = polygon.map((ring) =>
      ring.map(([lng = 0, lat = 0]): [number, number] => [
        (lng - 360 * Math.round((lng - first) / 360)) * scale,
        lat,
      ]),
    );
    const own = areaOf(flat[0] as Line);
    if (own > size) [largest, size, cos] = [flat, own, scale];
  }
  const [x, lat] = polylabel(largest, PRECISION_DEG);
  const lng = x / cos;
  return { lng: lng - 360 * Math.round(lng / 360), lat, size };
}

function areaOf(ring: Line): number {
  let sum = 0;
  for (let n = 1; n < ring.length; n++) {
    const [[x0 = 0, y0 = 0], [x1 = 0, y1 = 0]] = [ring[n - 1] as Line[number], ring[n] as Line[number]];
    sum += x0 * y1 - x1 * y0;
  }
  return Math.abs(sum) / 2;
}

function places(): Sized[] {
  const file = fileURLToPath(import.meta.resolve('city-timezones/data/cityMap.json'));
  const cities = JSON.parse(readFileSync(file, 'utf8')) as {
    city: string;
    lat: number;
    lng: number;
    pop: number;
  }[];
  return cities.map(({ city, lat, lng, pop }) => ({ name: city, lat, lng, size: pop }));
}
