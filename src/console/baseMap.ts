import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import { cutRing } from '../geo/antimeridianCut.ts';
import { unwrapRing } from '../geo/path.ts';
import type { LatLng } from '../geo/wgs84.ts';
import { invariant } from '../lib/errors.ts';

const LAND = import.meta.resolve('world-atlas/land-110m.json');
const COUNTRIES = import.meta.resolve('world-atlas/countries-110m.json');

/** Tenths of a degree: 11 km. The points of this map lie five times as far apart. */
const DECIMALS = 1;

/** [lng, lat], in degrees; the first one of a ring is repeated at its end. */
type Position = readonly number[];
type Polygon = readonly (readonly Position[])[];

/**
 * The land and the borders of countries (Natural Earth, 1:110 million) as JSON that page/map/world.ts unpacks. A line is
 * numbers in tenths of a degree: each longitude and latitude less the one before. Compressed it is two thirds of GeoJSON.
 */
export function baseMap(): string {
  const countries = read(COUNTRIES);
  const borders = mesh(countries, countries.objects['countries'] as GeometryCollection, (a, b) => a !== b);
  const land = landOf().flatMap(withoutCrossings);
  return JSON.stringify({
    land: land.map((rings) => rings.map(differences)),
    borders: borders.coordinates.map(differences),
  });
}

function differences(line: readonly Position[]): number[] {
  const tenths = line.map((position) => position.map((degrees) => Math.round(degrees * 10 ** DECIMALS)));
  return tenths.flatMap(([x = 0, y = 0], n) => [
    x - (tenths[n - 1]?.[0] ?? 0),
    y - (tenths[n - 1]?.[1] ?? 0),
  ]);
}

/** The land as it comes: its rings run on across 180° and around the pole. */
export function landOf(): Polygon[] {
  const land = read(LAND);
  const [coast] = feature(land, land.objects['land'] as GeometryCollection).features;
  invariant(coast?.geometry.type === 'MultiPolygon', 'the land has several polygons');
  return coast.geometry.coordinates.map((rings) =>
    rings.map((ring) => ring.map((position) => position.map(rounded))),
  );
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

function isInside([lng = 0, lat = 0]: Position, ring: readonly Position[]): boolean {
  let isIn = false;
  for (let n = 1; n < ring.length; n++) {
    const [[lngA = 0, latA = 0], [lngB = 0, latB = 0]] = [ring[n - 1] as Position, ring[n] as Position];
    if (latA > lat === latB > lat) continue;
    if (lng < lngA + ((lat - latA) / (latB - latA)) * (lngB - lngA)) isIn = !isIn;
  }
  return isIn;
}

function rounded(degrees: number): number {
  return Number(degrees.toFixed(DECIMALS));
}

function read(url: string): Topology {
  return JSON.parse(readFileSync(fileURLToPath(url), 'utf8')) as Topology;
}
