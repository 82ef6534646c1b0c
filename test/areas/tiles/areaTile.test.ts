import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type AreaGeometry, toLatLngs } from '../../../src/areas/area.ts';
import { toShape } from '../../../src/areas/shape.ts';
import { AREA_TILE_LIMITS, areaTile } from '../../../src/areas/tiles/areaTile.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { areaInMemory } from '../../support/ingest/polygons.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';
import { anySoundGeometry } from '../definitions.ts';
import { decodedTile, isDrawnAt } from './decodedTile.ts';

const UNITS = 4096;
const RADIUS_M = 6_378_137;

/** What the tests know of the map on their own: positions of a tile's units, and how long a unit is. */
function latLngAt(tile: { z: number; x: number; y: number }, x: number, y: number) {
  const share = (y / UNITS + tile.y) / 2 ** tile.z;
  const lat = (Math.atan(Math.sinh(Math.PI * (1 - 2 * share))) * 180) / Math.PI;
  const lng = ((x / UNITS + tile.x) / 2 ** tile.z) * 360 - 180;
  const unitM = (2 * Math.PI * RADIUS_M * Math.cos((lat * Math.PI) / 180)) / (UNITS * 2 ** tile.z);
  return { lat, lng, unitM };
}

function tileAt(z: number, lat: number, lng: number) {
  const wide = 2 ** z;
  const angle = (Math.min(85, Math.max(-85, lat)) * Math.PI) / 180;
  const y = 0.5 - Math.log(Math.tan(Math.PI / 4 + angle / 2)) / (2 * Math.PI);
  const within = (n: number) => Math.min(wide - 1, Math.max(0, Math.floor(n)));
  return { z, x: within((lng / 360 + 0.5) * wide), y: within(y * wide) };
}

/** A tile near a vertex or the centre of the area, or one beside it. */
const anyCase = fc
  .record({
    geometry: anySoundGeometry,
    z: fc.oneof(fc.integer({ min: 0, max: 22 }), fc.integer({ min: 5, max: 14 })),
    vertex: fc.nat(),
    aside: fc.tuple(fc.integer({ min: -1, max: 1 }), fc.integer({ min: -1, max: 1 })),
    off: fc.tuple(fc.double({ min: -1, max: 1, noNaN: true }), fc.double({ min: -1, max: 1, noNaN: true })),
  })
  .map(({ geometry, z, vertex, aside, off }) => {
    const vertices = 'points' in geometry ? toLatLngs(geometry.points) : [geometry.center];
    const { lat, lng } = vertices[vertex % vertices.length]!;
    const reach = 'radiusM' in geometry ? geometry.radiusM / 111_000 : 0;
    const tile = tileAt(z, lat + reach * off[0], lng + (reach * off[1]) / Math.cos((lat * Math.PI) / 180));
    const wide = 2 ** z;
    const x = (tile.x + aside[0] + wide) % wide;
    return { geometry, tile: { z, x, y: Math.min(wide - 1, Math.max(0, tile.y + aside[1])) } };
  });

const SAMPLES = 12;
/** A boundary is drawn within so many units of where it is. */
const OFF_UNITS = 3;
/** The same where a track is a line. */
const NARROW_UNITS = 5;

const drawn = (geometry: AreaGeometry, tile: { z: number; x: number; y: number }) =>
  decodedTile(inOneGo(areaTile([areaInMemory(7, geometry)], tile)))[0];

describe('a tile of areas', () => {
  test('has each area that has a point in it, and draws it where it contains positions and nowhere else', () => {
    let inside = 0;
    let outside = 0;
    let absent = 0;
    fc.assert(
      fc.property(anyCase, ({ geometry, tile }) => {
        const shape = toShape(geometry);
        const area = drawn(geometry, tile);
        let isSurelyApart = true;
        for (let n = 0; n <= SAMPLES; n++) {
          for (let m = 0; m <= SAMPLES; m++) {
            const [x, y] = [(n * UNITS) / SAMPLES, (m * UNITS) / SAMPLES];
            const { lat, lng, unitM } = latLngAt(tile, x, y);
            const distanceM = shape.signedDistanceM(lat, lng);
            const units = distanceM / unitM;
            const where = `${n} ${m}: ${units} units`;
            if (units < -OFF_UNITS) {
              inside++;
              assert.ok(area, where);
              if (area.isPolygon) assert.ok(isDrawnAt(area, x, y), `inside, not drawn, ${where}`);
              else assert.ok(units > -NARROW_UNITS, `a line, though it is wide, ${where}`);
            } else if (units > OFF_UNITS && area !== undefined) {
              outside++;
              assert.ok(!isDrawnAt(area, x, y), `outside, but drawn, ${where}`);
            }
            // Nothing between the samples is further from all of them; a unit is at most twice as long nearby at z 0.
            if (units < (tile.z === 0 ? 4 : 1.5) * (UNITS / SAMPLES)) isSurelyApart = false;
          }
        }
        if (isSurelyApart && tile.z > 2) {
          absent++;
          assert.equal(area, undefined);
        }
      }),
      { seed: 41, numRuns: runs(70) },
    );
    assert.ok(inside > 300 && outside > 300 && absent > 0, `${inside} ${outside} ${absent}`);
  });

  test('draws tracks that wind as everything within their buffer, with the gaps in between', () => {
    let [inside, gaps] = [0, 0];
    const winding = fc.record({
      z: fc.integer({ min: 6, max: 16 }),
      bufferUnits: fc.constantFrom(5, 12, 40, 150),
      turns: fc.array(
        fc.tuple(
          fc.double({ min: -0.8, max: 0.8, noNaN: true }),
          fc.double({ min: -0.8, max: 0.8, noNaN: true }),
        ),
        { minLength: 2, maxLength: 30 },
      ),
      isOutside: fc.boolean(),
    });
    fc.assert(
      fc.property(winding, ({ z, bufferUnits, turns, isOutside }) => {
        const tile = tileAt(z, 41.9, 12.5);
        // Around the tile, or in its north-west and around that.
        const points = turns.flatMap(([east, south]) => {
          const off = isOutside ? 0 : 0.5;
          const { lat, lng } = latLngAt(tile, (off + east) * UNITS, (off + south) * UNITS);
          return [lat, lng];
        });
        const { unitM } = latLngAt(tile, UNITS / 2, UNITS / 2);
        const geometry = {
          type: 'polyline',
          points: Float64Array.from(points),
          bufferM: bufferUnits * unitM,
        } as const;
        const shape = toShape(geometry);
        const area = drawn(geometry, tile);
        for (let n = 0; n < 500; n++) {
          const [x, y] = [(n * 2_531.7) % UNITS, (n * 1_117.3) % UNITS];
          const { lat, lng, unitM } = latLngAt(tile, x, y);
          const units = shape.signedDistanceM(lat, lng) / unitM;
          if (Math.abs(units) < OFF_UNITS) continue;
          const isDrawn = area !== undefined && isDrawnAt(area, x, y);
          assert.equal(isDrawn, units < 0, `${x} ${y}: ${units} units`);
          if (units < 0) inside++;
          else if (units < 100) gaps++;
        }
      }),
      { seed: 43, numRuns: runs(60) },
    );
    assert.ok(inside > 150 && gaps > 300, `${inside} ${gaps}`);
  });

  test('has no seam: two neighbours draw the border between them alike', () => {
    let compared = 0;
    fc.assert(
      fc.property(anyCase, ({ geometry, tile }) => {
        const east = { ...tile, x: (tile.x + 1) % 2 ** tile.z };
        const [west, next] = [drawn(geometry, tile), drawn(geometry, east)];
        if (west?.isPolygon !== true || next?.isPolygon !== true || tile.z === 0) return;
        const shape = toShape(geometry);
        for (let n = 0; n <= 64; n++) {
          const y = 64 * n + 0.37;
          // In the margin of both.
          for (const x of [-40.3, 0.3, 40.3]) {
            const { lat, lng, unitM } = latLngAt(tile, UNITS + x, y);
            const distanceM = shape.signedDistanceM(lat, lng > 180 ? lng - 360 : lng);
            if (Math.abs(distanceM) < OFF_UNITS * unitM) continue;
            assert.equal(isDrawnAt(west, UNITS + x, y), isDrawnAt(next, x, y), `${x} ${y}`);
            compared++;
          }
        }
      }),
      { seed: 42, numRuns: runs(60) },
    );
    assert.ok(compared > 200, `${compared}`);
  });

  test('shows the facts of each area, and leaves out an external id that is null', () => {
    const geometry = { type: 'circle', center: { lat: 41.9, lng: 12.5 }, radiusM: 500 } as const;
    const coded = areaInMemory(3, geometry, { name: 'Depot é', color: '#ABCDEF', externalId: 'd/1' });
    const plain = areaInMemory(4, { ...geometry, type: 'point' });
    const tile = tileAt(12, 41.9, 12.5);
    const areas = decodedTile(inOneGo(areaTile([plain, coded], tile)));
    assert.deepEqual(
      areas.map(({ id, properties }) => ({ id, properties })),
      [
        {
          id: 3,
          properties: { id: 3, name: 'Depot é', type: 'circle', color: '#ABCDEF', external_id: 'd/1' },
        },
        { id: 4, properties: { id: 4, name: 'Area 4', type: 'point', color: '#3b82f6' } },
      ],
    );
  });

  test('finds what is smaller than a unit as a square of one, and what is thinner than one as a line', () => {
    const center = { lat: 41.9, lng: 12.5 };
    const small = drawn({ type: 'circle', center, radiusM: 25 }, { z: 3, x: 4, y: 2 });
    const { x, y } = small!.paths[0]![0]!;
    assert.deepEqual(small!.paths, [
      [
        { x, y },
        { x: x + 1, y },
        { x: x + 1, y: y + 1 },
        { x, y: y + 1 },
        { x, y },
      ],
    ]);
    const { lat, lng } = latLngAt({ z: 3, x: 4, y: 2 }, x, y);
    assert.ok(lat >= center.lat && lng <= center.lng && lat - center.lat < 0.02 && center.lng - lng < 0.02);
    const sliver = Float64Array.of(40, 10, 40, 10.0001, 44, 10.0001, 44, 10);
    assert.equal(drawn({ type: 'polygon', points: sliver }, { z: 3, x: 4, y: 2 })?.isPolygon, false);
    const track = { type: 'polyline', points: Float64Array.of(40, 10, 44, 20), bufferM: 50 } as const;
    assert.equal(drawn(track, { z: 3, x: 4, y: 2 })?.isPolygon, false);
    assert.equal(drawn(track, tileAt(14, 40, 10))?.isPolygon, true);
  });

  test('is cut where the map ends, and is whole around a pole and across 180°', () => {
    const cap = drawn(
      { type: 'polygon', points: Float64Array.of(70, -180, 70, -60, 70, 60) },
      { z: 0, x: 0, y: 0 },
    );
    for (const x of [1, 2000, 4095]) {
      assert.ok(isDrawnAt(cap!, x, 1), 'at the north end of the map');
      assert.ok(!isDrawnAt(cap!, x, 2048));
    }
    assert.equal(cap!.paths.length, 1, 'nothing cuts it within the tile');
    const fiji = { type: 'circle', center: { lat: -17, lng: 180 }, radiusM: 90_000 } as const;
    for (const [tile, x] of [
      [tileAt(6, -17, 179.9), UNITS - 8],
      [tileAt(6, -17, -179.9), 8],
    ] as const) {
      const { lat } = latLngAt(tile, x, 0);
      assert.ok(lat > -17);
      const y = Array.from({ length: UNITS }, (_, n) => n).find((n) => latLngAt(tile, x, n).lat < -17)!;
      assert.ok(isDrawnAt(drawn(fiji, tile)!, x, y));
    }
    assert.equal(
      drawn({ type: 'circle', center: { lat: 89, lng: 0 }, radiusM: 100_000 }, { z: 0, x: 0, y: 0 }),
      undefined,
    );
  });

  test('does not depend on the order of the areas, and leaves out the smallest beyond its limit', () => {
    const random = seededRandom(5);
    const areas = Array.from({ length: AREA_TILE_LIMITS.areas + 300 }, (_, n) =>
      areaInMemory(n + 1, {
        type: 'circle',
        center: { lat: 41 + random(), lng: 12 + random() },
        radiusM: 200 + n,
      }),
    );
    const tile = { z: 6, x: 34, y: 23 };
    const bytes = inOneGo(areaTile(areas, tile));
    assert.deepEqual(inOneGo(areaTile(areas.toReversed(), tile)), bytes);
    const ids = decodedTile(bytes).map(({ id }) => id);
    assert.equal(ids.length, AREA_TILE_LIMITS.areas);
    assert.ok(Math.min(...ids) > 250, 'the smallest are left out');
    assert.ok(ids[0]! > ids.at(-1)!, 'the largest come first');
  });

  test('is made in steps', () => {
    const points = Float64Array.from({ length: 4_000 }, (_, n) => (n % 2 === 0 ? 41 : 12) + Math.sin(n) / 10);
    const track = areaInMemory(1, { type: 'polyline', points, bufferM: 200 });
    const steps = areaTile([track], tileAt(9, 41, 12));
    let count = 0;
    while (steps.next().done !== true) count++;
    assert.ok(count > 3, `${count} steps`);
  });
});
