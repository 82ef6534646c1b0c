import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { baseMap, landOf } from '../../src/console/baseMap.ts';
import { unpackWorld } from '../../src/console/page/map/world.ts';
import { ringAreaM2 } from '../../src/geo/measure.ts';
import { unwrapRing } from '../../src/geo/path.ts';
import { northwardAreaM2 } from '../../src/geo/wgs84.ts';

type Ring = readonly (readonly [lng: number, lat: number])[];

const { features } = unpackWorld(JSON.parse(baseMap()));
const coordinatesOf = (kind: string): unknown =>
  features
    .filter(({ properties }) => properties?.['kind'] === kind)
    .flatMap(({ geometry }): unknown[] => ('coordinates' in geometry ? geometry.coordinates : []));
const land = coordinatesOf('land') as Ring[][];
const borders = coordinatesOf('border') as Ring[];

/** The area on the plane of longitude and latitude, as the map draws it: positive for a ring in either direction. */
const drawnM2 = (ring: Ring): number =>
  Math.abs(northwardAreaM2({ lngs: ring.map(([lng]) => lng), lats: ring.map(([, lat]) => lat) }, 0));
const polygonM2 = (rings: readonly number[]): number =>
  rings.reduce((sum, areaM2, n) => sum + (n === 0 ? areaM2 : -areaM2), 0);

describe('the land and borders that the console draws', () => {
  test('no edge runs across the map, but for the one along the pole', () => {
    for (const line of [...land.flat(), ...borders]) {
      for (const [n, [lng, lat]] of line.entries()) {
        assert.ok(Math.abs(lng) <= 180 && Math.abs(lat) <= 90);
        const [lngBefore, latBefore] = line[n - 1] ?? [lng, lat];
        if (lat === -90 && latBefore === -90) continue;
        assert.ok(Math.abs(lng - lngBefore) <= 180, `from ${lngBefore} ${latBefore} to ${lng} ${lat}`);
      }
    }
  });

  test('every ring is closed', () => {
    for (const ring of land.flat()) assert.deepEqual(ring[0], ring.at(-1));
  });

  test('what is drawn has the size of the land, on the ellipsoid: nothing is filled that is sea', () => {
    const drawn = land.reduce((sum, rings) => sum + polygonM2(rings.map(drawnM2)), 0);
    const ellipsoidal = landOf().reduce((sum, rings) => {
      const areas = rings.map((ring) =>
        ringAreaM2(
          unwrapRing(ring.slice(0, -1).map(([lng, lat]) => ({ lat: lat as number, lng: lng as number }))),
        ),
      );
      return sum + polygonM2(areas);
    }, 0);
    assert.ok(Math.abs(drawn / ellipsoidal - 1) < 1e-4, `${drawn} and ${ellipsoidal}`);
    // Natural Earth's land, with Antarctica.
    assert.ok(Math.abs(drawn / 1.47e14 - 1) < 0.03, String(drawn));
  });

  const PLACES: readonly [what: string, lng: number, lat: number, isLand: boolean][] = [
    ['Chukotka, west of 180°', 178, 67, true],
    ['Chukotka, east of 180°', -175, 66.5, true],
    ['the South Pole', 0, -89, true],
    ['Antarctica beside 180°', 179.9, -88, true],
    ['the Arctic', 0, 88, false],
    ['the Atlantic at the latitude of Chukotka', -40, 50, false],
    ['the Atlantic at the latitude of Fiji', -20, -16.5, false],
    ['the sea north of Norway, at the latitude of Wrangel Island', 20, 71.3, false],
    ['the Caspian Sea', 51, 42, false],
    ['the Sahara', 10, 25, true],
  ];
  for (const [what, lng, lat, isLand] of PLACES) {
    test(`${what}: ${isLand ? 'land' : 'sea'}`, () => {
      const isInside = (ring: Ring): boolean => {
        let isIn = false;
        for (const [n, [lngB, latB]] of ring.entries()) {
          const [lngA, latA] = ring[n - 1] ?? [lngB, latB];
          if (latA > lat !== latB > lat && lng < lngA + ((lat - latA) / (latB - latA)) * (lngB - lngA))
            isIn = !isIn;
        }
        return isIn;
      };
      const found = land.some(
        ([exterior, ...holes]) => isInside(exterior as Ring) && !holes.some((hole) => isInside(hole)),
      );
      assert.equal(found, isLand);
    });
  }
});
