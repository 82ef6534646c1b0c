import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VectorTile as MapboxTile } from '@mapbox/vector-tile';
import fc from 'fast-check';
import { PbfReader } from 'pbf';
import { LAT_MAX, readDeviceTile, tilesOver } from '../../../src/console/page/map/deviceTiles.ts';
import { clusterLook, clusterText, twelfths } from '../../../src/console/page/map/shares.ts';
import { type Tile, tileBox, VectorTile } from '../../../src/geo/vectorTile.ts';

const count = fc.oneof(fc.nat(5), fc.nat(2_000_000));
const counts = fc.record({ moving: count, parked: count, offline: count, unknown: count });
const place = fc.tuple(fc.integer({ min: -70, max: 4_170 }), fc.nat(4_095));
const tile: fc.Arbitrary<Tile> = fc.nat(22).chain((z) => {
  const at = fc.nat(2 ** z - 1);
  return fc.record({ z: fc.constant(z), x: at, y: at });
});
const statuses = ['moving', 'parked', 'offline'] as const;
const device = fc.record({
  imei: fc.stringMatching(/^[0-9]{15}$/),
  name: fc.option(fc.string({ unit: 'grapheme' })),
  plate: fc.option(fc.string()),
  status: fc.constantFrom(...statuses),
  heading: fc.double({ min: 0, max: 359, noNaN: true }),
  speed_kmh: fc.double({ min: 0, max: 200, noNaN: true }),
  recorded_at: fc.integer({ min: 0, max: 4_000_000_000 }),
});

describe('a tile of devices as the console reads it', () => {
  const features = fc.oneof(
    fc.array(fc.tuple(place, counts), { maxLength: 20 }),
    fc.array(fc.tuple(place, device), { maxLength: 20 }),
  );
  test('has the places and properties that a library for tiles finds in it', () => {
    fc.assert(
      fc.property(features, tile, (all, name) => {
        const written = new VectorTile('clusters');
        for (const [at, properties] of all) written.add(1, { ...properties }, { kind: 'point', paths: [at] });
        const bytes = written.finish();
        const read = readDeviceTile(bytes, name);
        const { layers } = new MapboxTile(new PbfReader(bytes));
        const layer = layers['clusters'];
        assert.equal(read.length, layer?.length ?? 0);
        for (const [n, point] of read.entries()) {
          const feature = layer?.feature(n) ?? assert.fail();
          const { geometry } = feature.toGeoJSON(name.x, name.y, name.z);
          assert.ok(geometry.type === 'Point');
          const [lng = 0, lat = 0] = geometry.coordinates;
          assert.ok(Math.abs(lng - point.lng) < 1e-9 && Math.abs(lat - point.lat) < 1e-9);
          const own = feature.properties;
          if ('counts' in point) assert.deepEqual({ ...point.counts }, { ...own });
          else
            assert.deepEqual(
              [point.imei, point.name, point.status],
              [own['imei'], own['name'] ?? null, own['status']],
            );
        }
      }),
    );
  });

  test('is one of the few that cover the view of a map, none of which is asked for twice', () => {
    const box = fc.tuple(
      fc.double({ min: -180, max: 180, noNaN: true }),
      fc.double({ min: -180, max: 180, noNaN: true }),
      fc.double({ min: -90, max: 90, noNaN: true }),
      fc.double({ min: -90, max: 90, noNaN: true }),
    );
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        box,
        fc.double({ min: 0, max: 20, noNaN: true }),
        share,
        share,
        ([west, east, a, b], zoom, dx, dy) => {
          const [south, north] = [Math.min(a, b), Math.max(a, b)];
          const tiles = tilesOver({ west, south, east, north }, zoom);
          assert.ok(tiles.length <= 9);
          assert.equal(new Set(tiles.map(({ z, x, y }) => `${z}/${x}/${y}`)).size, tiles.length);
          const width = east >= west ? east - west : east - west + 360;
          const lng = ((west + dx * width + 540) % 360) - 180;
          const lat = Math.max(-LAT_MAX, Math.min(LAT_MAX, south + dy * (north - south)));
          const boxes = tiles.map((one) => tileBox(one));
          const isIn = ({ minX: left, maxX: right, minY: low, maxY: high }: (typeof boxes)[number]) =>
            lng >= left - 1e-9 && lng <= right + 1e-9 && lat >= low - 1e-9 && lat <= high + 1e-9;
          assert.ok(boxes.some(isIn), `${lng} ${lat} is in no tile`);
        },
      ),
    );
  });

  test('a cluster says how many it has of each status, and its ring shows their shares in twelfths', () => {
    fc.assert(
      fc.property(counts, (one) => {
        const sum = one.moving + one.parked + one.offline + one.unknown;
        fc.pre(sum > 0);
        const shares = twelfths(one);
        assert.equal(
          shares.reduce((all, part) => all + part, 0),
          12,
        );
        for (const [n, status] of [...statuses, 'unknown' as const].entries())
          assert.ok(Math.abs((shares[n] as number) - (12 * one[status]) / sum) < 1);
      }),
    );
    const colors = { statuses: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], edge: [1, 1, 1] };
    const one = { moving: 1_234_000, parked: 0, offline: 1, unknown: 0 };
    const { label } = clusterLook(one, colors);
    assert.equal(label, '1.2M');
    assert.equal(clusterText(one), '1\u00a0234\u00a0001 vehicles: 1\u00a0234\u00a0000 moving, 1 offline');
  });
});
