import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { VectorTile } from '@mapbox/vector-tile';
import { PbfReader } from 'pbf';
import {
  type Detail,
  type Line,
  landOf,
  readNaturalEarth,
  readWorld,
} from '../../src/console/world/naturalEarth.ts';
import { readCountryNames, readPlaceNames } from '../../src/console/world/worldNames.ts';
import { shapesIn, worldShapes, worldTile } from '../../src/console/world/worldTile.ts';
import { WorldTiles } from '../../src/console/world/worldTiles.ts';
import { ringAreaM2 } from '../../src/geo/measure.ts';
import { unwrapRing } from '../../src/geo/path.ts';
import { northwardAreaM2 } from '../../src/geo/wgs84.ts';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import { tileOfPlace } from '../support/deviceTile.ts';

const DETAILS: readonly Detail[] = ['110m', '50m', '10m'];
const WORLDS = DETAILS.map((detail) => ({ detail, earth: readNaturalEarth(detail) }));
const SMALL = WORLDS[0]!.earth;

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

/** Somewhere in the middle. */
const MIDDLES: readonly [name: string, lng: number, lat: number][] = [
  ['France', 2.5, 46.5],
  ['Fiji', 178, -17.8],
  ['New Zealand', 170.5, -43.8],
  ['Austria', 14.5, 47.5],
];

/** The area on the plane of longitude and latitude, as the map draws it: positive for a ring in either direction. */
const drawnM2 = (ring: Line): number =>
  Math.abs(northwardAreaM2({ lngs: ring.map(([lng]) => lng!), lats: ring.map(([, lat]) => lat!) }, 0));
const polygonM2 = (rings: readonly number[]): number =>
  rings.reduce((sum, areaM2, n) => sum + (n === 0 ? areaM2 : -areaM2), 0);

describe('land, waters and borders that the console draws', () => {
  for (const { detail, earth } of WORLDS) {
    const { land, lakes, borders, rivers } = earth;

    test(`${detail}: no edge runs across the map, but for the one along the pole`, () => {
      for (const line of [...land.flat(), ...lakes.flat(), ...borders, ...rivers]) {
        for (const [n, [lng, lat]] of line.entries()) {
          assert.ok(Math.abs(lng!) <= 180 && Math.abs(lat!) <= 90.001);
          const [lngBefore, latBefore] = line[n - 1] ?? [lng, lat];
          if (lat! <= -89.99 && latBefore! <= -89.99) continue;
          assert.ok(Math.abs(lng! - lngBefore!) <= 180, `from ${lngBefore} ${latBefore} to ${lng} ${lat}`);
        }
      }
    });

    test(`${detail}: every ring is closed`, () => {
      for (const ring of [...land, ...lakes].flat()) assert.deepEqual(ring[0], ring.at(-1));
    });

    for (const [what, lng, lat, isLand] of PLACES) {
      test(`${detail}: ${what}: ${isLand ? 'land' : 'sea'}`, () => {
        const found = land.some(
          ([exterior, ...holes]) =>
            holds(exterior!, lng, lat) && !holes.some((hole) => holds(hole, lng, lat)),
        );
        assert.equal(found, isLand);
      });
    }
  }

  test('what is drawn has the size of the land, on the ellipsoid: nothing is filled that is sea', () => {
    const drawn = SMALL.land.reduce((sum, rings) => sum + polygonM2(rings.map(drawnM2)), 0);
    const ellipsoidal = landOf(readWorld('110m')).reduce((sum, rings) => {
      const areas = rings.map((ring) =>
        ringAreaM2(unwrapRing(ring.slice(0, -1).map(([lng, lat]) => ({ lat: lat!, lng: lng! })))),
      );
      return sum + polygonM2(areas);
    }, 0);
    assert.ok(Math.abs(drawn / ellipsoidal - 1) < 1e-4, `${drawn} and ${ellipsoidal}`);
    // Natural Earth's land, with Antarctica.
    assert.ok(Math.abs(drawn / 1.47e14 - 1) < 0.03, String(drawn));
  });
});

describe('names on the map of the console', () => {
  test('each country has one, within its largest part, and the large ones come first', () => {
    const names = readCountryNames();
    assert.equal(names.length, 241);
    assert.deepEqual(
      names.slice(0, 3).map(({ name, from }) => [name, from]),
      [
        ['Russia', 1],
        ['China', 1],
        ['Brazil', 1],
      ],
    );
    for (const [name, lng, lat] of MIDDLES) {
      const at = names.find((one) => one.name === name);
      assert.ok(
        at !== undefined && Math.hypot(at.lng - lng, at.lat - lat) < 4,
        `${name}: ${at?.lng} ${at?.lat}`,
      );
    }
    for (const { lng, lat } of names.filter(({ from }) => from <= 3))
      assert.ok(
        WORLDS[1]!.earth.land.some(([exterior]) => holds(exterior!, lng, lat)),
        `${lng} ${lat}`,
      );
  });

  test('places have theirs from the zoom on at which they are seen', () => {
    const names = readPlaceNames();
    const from = (name: string) => names.find((one) => one.name === name)?.from;
    assert.deepEqual(['Tokyo', 'Vienna', 'Graz', 'Bregenz'].map(from), [3, 4, 6, 7]);
  });
});

describe('tiles of the world', () => {
  const layersOf = (bytes: Uint8Array | null) =>
    bytes === null ? {} : new VectorTile(new PbfReader(bytes)).layers;
  const shapes = worldShapes(SMALL);

  test('what a part shows is what the world shows there', () => {
    const whole = worldShapes(WORLDS[2]!.earth);
    for (const [lng, lat] of [
      [16.37, 48.2],
      [-73.9, 40.7],
      [179.9, -16.8],
      [103.8, 1.3],
    ] as const) {
      const tile = tileOfPlace(7, lat, lng);
      const part = shapesIn(whole, { z: 3, x: tile.x >> 4, y: tile.y >> 4 });
      assert.deepEqual(worldTile(part, [], tile), worldTile(whole, [], tile));
    }
  });

  test('a name is in one tile, from its zoom on', () => {
    const names = [{ kind: 'place', name: 'Here', lng: 16.37, lat: 48.2, from: 3, rank: 7 }] as const;
    const here = tileOfPlace(3, 48.2, 16.37);
    const { names: layer } = layersOf(worldTile(shapes, names, here));
    assert.deepEqual({ ...layer?.feature(0).properties }, { kind: 'place', name: 'Here', rank: 7 });
    assert.equal(layersOf(worldTile(shapes, names, { ...here, x: here.x + 1 }))['names'], undefined);
    assert.equal(layersOf(worldTile(shapes, names, tileOfPlace(2, 48.2, 16.37)))['names'], undefined);
  });

  test('a tile inland is land and one at sea is nothing', () => {
    assert.equal(worldTile(shapes, [], tileOfPlace(7, -40, -120)), null);
    const { land } = layersOf(worldTile(shapes, [], tileOfPlace(7, 25, 10)));
    const [ring] = land!.feature(0).loadGeometry();
    assert.ok(ring!.every(({ x, y }) => [-64, 4160].includes(x) && [-64, 4160].includes(y)));
  });

  const tiles = new WorldTiles();
  after(() => tiles.close());

  test('come from a thread, each once, in the detail of their zoom', async () => {
    const [first, again] = ['one', 'another'].map((network) => tiles.tile({ z: 1, x: 1, y: 0 }, network));
    assert.equal(await first, await again);
    const layers = layersOf(gunzipSync((await first)!));
    assert.deepEqual(Object.keys(layers), ['land', 'lakes', 'borders', 'rivers', 'names']);
    assert.equal(await tiles.tile({ z: 5, x: 2, y: 20 }, 'one'), null);
  });

  test('of one network a hundred wait at most; those of others, and what is kept, come all the same', async () => {
    const asked = Array.from({ length: 256 }, (_, n) => ({ z: 4, x: n % 16, y: Math.floor(n / 16) }));
    const made: string[] = [];
    const answers = asked.map((tile) => tiles.tile(tile, 'many').then(() => made.push('many')));
    const other = tiles.tile({ z: 5, x: 17, y: 11 }, 'other').then(() => made.push('other'));
    await tiles.tile({ z: 1, x: 1, y: 0 }, 'many');
    const ends = await Promise.allSettled(answers);
    const refused = ends.filter((end) => end.status === 'rejected');
    assert.equal(refused.length, 256 - 102);
    assert.ok(refused.every(({ reason }) => reason instanceof Overloaded));
    await other;
    const before = made.indexOf('other');
    assert.ok(before <= 4, `${before} tiles of the other network came first`);
  });
});

function holds(ring: Line, lng: number, lat: number): boolean {
  let isIn = false;
  for (const [n, [lngB, latB]] of ring.entries()) {
    const [lngA, latA] = ring[n - 1] ?? [lngB, latB];
    if (latA! > lat !== latB! > lat && lng < lngA! + ((lat - latA!) / (latB! - latA!)) * (lngB! - lngA!))
      isIn = !isIn;
  }
  return isIn;
}
