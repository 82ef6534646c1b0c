import type { Bounds } from '../geo/bounds.ts';

/** The narrowest bounds of these positions, of which there is at least one. */
export function pointBounds(lats: Float64Array, lngs: Float64Array): Bounds {
  let south = 90;
  let north = -90;
  let [west, east] = [180, -180];
  // The same with the antimeridian in the middle: the lowest of the eastern half, the highest of the western one.
  let [easternWest, westernEast] = [180, -180];
  for (let n = 0; n < lats.length; n++) {
    const lat = lats[n] as number;
    const lng = lngs[n] as number;
    south = Math.min(south, lat);
    north = Math.max(north, lat);
    west = Math.min(west, lng);
    east = Math.max(east, lng);
    if (lng >= 0) easternWest = Math.min(easternWest, lng);
    else westernEast = Math.max(westernEast, lng);
  }
  const crosses = west < 0 && east >= 0 && westernEast + 360 - easternWest < east - west;
  return crosses ? { south, west: easternWest, north, east: westernEast } : { south, west, north, east };
}
