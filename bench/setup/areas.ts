import { type AreaDefinition, areaMeasures, toVertices } from '../../src/areas/area.ts';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { insertAreas } from '../../src/areas/areas.sql.ts';
import { toShape } from '../../src/areas/shape.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import { openBenchSql } from './cluster.ts';
import { placesOf } from './places.ts';

const JAGGED = 0.3;
const WALK = 0.15;

/** A seeded simple polygon around a centre, about `radiusDeg` wide in each direction. */
export function jaggedRing(vertices: number, centre: LatLng, radiusDeg: number, seed: number): LatLng[] {
  const random = seededRandom(seed);
  let stray = 0;
  return Array.from({ length: vertices }, (_, n) => {
    stray = Math.max(-1, Math.min(1, stray + WALK * (2 * random() - 1)));
    const radius = radiusDeg * (1 + JAGGED * stray);
    const angle = (2 * Math.PI * n) / vertices;
    const lng = centre.lng + (radius * Math.cos(angle)) / Math.cos((centre.lat * Math.PI) / 180);
    return { lat: centre.lat + radius * Math.sin(angle), lng };
  });
}

export function polygonArea(name: string, points: readonly LatLng[]): AreaDefinition {
  return {
    name,
    color: '#3b82f6',
    geometry: { type: 'polygon', points: toVertices(points) },
    externalId: null,
    dwellSeconds: 0,
  };
}

export function trackArea(name: string, points: readonly LatLng[], bufferM: number): AreaDefinition {
  return { ...polygonArea(name, []), geometry: { type: 'polyline', points: toVertices(points), bufferM } };
}

export function* smallAreas(count: number): Generator<AreaDefinition> {
  const places = placesOf('towns', 6, count);
  for (let n = 0; n < count; n++) {
    const centre = { lat: places[2 * n]!, lng: Math.max(-179, Math.min(179, places[2 * n + 1]!)) };
    yield polygonArea(`Area ${n}`, jaggedRing(SMALL_VERTICES, centre, SMALL_RADIUS_DEG, n));
  }
}

/** Areas in memory, in one world; their ids count from 1. */
export function fillCatalog(definitions: Iterable<AreaDefinition>, worldId: number): AreaCatalog {
  const catalog = new AreaCatalog();
  let id = 0;
  for (const definition of definitions) {
    const measures = areaMeasures(definition.geometry);
    const stored = { worldId, accountId: 1, definition, measures, createdAtMs: 0, revision: 1 };
    catalog.put({
      ...stored,
      id: ++id,
      shape: toShape(definition.geometry, { worldId, bounds: measures.bounds }),
    });
  }
  return catalog;
}

/** A country, where areas and the places that are asked about are spread evenly. */
const COUNTRY = { south: 36, north: 47, west: 6, east: 18 };
/** Of 100 000 areas: a place is in one of them, or in two. */
const COUNTRY_RADIUS_DEG = 0.02;

export function* countryPlaces(count: number, seed: number): Generator<LatLng> {
  const random = seededRandom(seed);
  const { south, north, west, east } = COUNTRY;
  for (let n = 0; n < count; n++) {
    yield { lat: south + (north - south) * random(), lng: west + (east - west) * random() };
  }
}

export function* countryAreas(count: number): Generator<AreaDefinition> {
  let n = 0;
  for (const centre of countryPlaces(count, 6)) {
    yield polygonArea(`Area ${n}`, jaggedRing(SMALL_VERTICES, centre, COUNTRY_RADIUS_DEG, n++));
  }
}

const SMALL_VERTICES = 20;
const SMALL_RADIUS_DEG = 0.005;
const CHUNK = 1_000;

/** Stores areas of the one account of a world and returns their ids. */
export async function storeAreas(
  databaseUrl: string,
  definitions: Iterable<AreaDefinition>,
  say: (line: string) => void = () => undefined,
): Promise<number[]> {
  await using sql = openBenchSql(databaseUrl);
  const [owner] = await sql<{ accountId: number; worldId: number }[]>`
    select id as "accountId", world_id as "worldId" from account`;
  if (owner === undefined) throw new Error('the world has no account');
  const ids: number[] = [];
  let chunk: Parameters<typeof insertAreas>[2][number][] = [];
  const flush = async () => {
    const stored = await sql.begin((tx) => insertAreas(tx, owner, chunk));
    if (stored === null) throw new Error('the areas of the bench cannot be stored');
    chunk = [];
    ids.push(...stored);
    if (ids.length % (20 * CHUNK) === 0) say(`${ids.length} areas stored`);
  };
  for (const definition of definitions) {
    chunk.push({ definition, measures: areaMeasures(definition.geometry) });
    if (chunk.length === CHUNK) await flush();
  }
  if (chunk.length > 0) await flush();
  return ids;
}
