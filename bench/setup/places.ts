import { seededRandom } from '../../test/support/seededRandom.ts';

/** Where devices are: around a hundred towns, a few of them large; or evenly over the globe. */
export type Spread = 'towns' | 'globe';

const TOWNS = 100;
const TOWN_RADIUS_DEG = 0.15;
const TOWN_LAT_MAX = 60;

/** A seeded source of places: each call writes latitude and longitude into `out`. */
export function placeSource(spread: Spread, seed: number): (out: Float64Array) => void {
  const random = seededRandom(seed);
  if (spread === 'globe') {
    return (out) => {
      out[0] = (Math.asin(2 * random() - 1) * 180) / Math.PI;
      out[1] = 360 * random() - 180;
    };
  }
  // The towns are the same for every seed.
  const map = seededRandom(1);
  const town = () => ({ lat: TOWN_LAT_MAX * (2 * map() - 1), lng: 360 * map() - 180 });
  const towns = Array.from({ length: TOWNS }, town);
  return (out) => {
    // The square makes low numbers more likely: the first town has a tenth of all devices.
    const town = towns[Math.floor(TOWNS * random() ** 2)] as { lat: number; lng: number };
    const away = TOWN_RADIUS_DEG * random() ** 2;
    const angle = 2 * Math.PI * random();
    const lng = town.lng + (away * Math.cos(angle)) / Math.cos((town.lat * Math.PI) / 180);
    out[0] = town.lat + away * Math.sin(angle);
    out[1] = lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng;
  };
}

export function placesOf(spread: Spread, seed: number, count: number): Float64Array {
  const place = placeSource(spread, seed);
  const places = new Float64Array(2 * count);
  for (let n = 0; n < count; n++) place(places.subarray(2 * n, 2 * n + 2));
  return places;
}

/** The polygons that are asked for lie here and are about twice this wide. */
export const POLYGON_CENTRE = { lat: 41.9, lng: 12.5 };
export const POLYGON_RADIUS_DEG = 0.2;

/** Latitudes and longitudes evenly in and around the polygon: about half of the places are inside. */
export function placesAroundPolygon(count: number): Float64Array {
  const random = seededRandom(7);
  const { lat, lng } = POLYGON_CENTRE;
  return Float64Array.from({ length: 2 * count }, (_, n) => {
    const spread = POLYGON_RADIUS_DEG * 1.25 * (2 * random() - 1);
    return n % 2 === 0 ? lat + spread : lng + spread / Math.cos((lat * Math.PI) / 180);
  });
}

export function containsQueries(count: number): string[] {
  const random = seededRandom(7);
  const near = (degrees: number) => (degrees + 1.25 * POLYGON_RADIUS_DEG * (2 * random() - 1)).toFixed(6);
  const { lat, lng } = POLYGON_CENTRE;
  return Array.from({ length: count }, () => `?lat=${near(lat)}&lng=${near(lng)}`);
}

export function containsPaths(areaId: number, count: number): string[] {
  return containsQueries(count).map((query) => `/api/v3/areas/${areaId}/contains${query}`);
}

/** Questions for the nearest device from places that are distributed like the devices. */
export function nearestPaths(count: number): string[] {
  const places = placesOf('towns', 2, count);
  return Array.from({ length: count }, (_, n) => {
    const [lat, lng] = places.subarray(2 * n);
    return `/api/v3/devices/nearest?lat=${lat?.toFixed(6)}&lng=${lng?.toFixed(6)}`;
  });
}
