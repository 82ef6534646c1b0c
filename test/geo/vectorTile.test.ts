import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fromVectorTileJs } from '@maplibre/vt-pbf';
import fc from 'fast-check';
import { type TileGeometry, type TileProperties, VectorTile } from '../../src/geo/vectorTile.ts';
import { anyCharacter } from '../support/http/anyCharacter.ts';
import { runs } from '../support/torture.ts';

interface Feature {
  readonly id: number | null;
  readonly properties: TileProperties;
  readonly geometry: TileGeometry;
}

const KINDS = { point: 1, line: 2, polygon: 3 } as const;

const unit = fc.integer({ min: -64, max: 4160 });
const path = fc.array(fc.tuple(unit, unit), { minLength: 3, maxLength: 30 }).map((points) => points.flat());
const properties = fc.record({
  id: fc.nat(),
  name: fc.string({ unit: anyCharacter }),
  code: fc.constantFrom('a', 'b', null),
  count: fc.constantFrom(0, 1, 7, 2 ** 40, 0.5, 12.34, 2 ** 40 + 0.25),
});
const feature: fc.Arbitrary<Feature> = fc.record({
  id: fc.oneof(fc.nat(), fc.constantFrom(0, 2 ** 31, 2 ** 40, null)),
  properties,
  geometry: fc.oneof(
    fc.record({
      kind: fc.constantFrom('line' as const, 'polygon' as const),
      paths: fc.array(path, { minLength: 1, maxLength: 4 }),
    }),
    path.map((points) => ({ kind: 'point' as const, paths: [points] })),
  ),
});

/** The same tile by the usual encoder, which leaves out the last point of a ring that repeats the first. */
function byVtPbf(name: string, features: readonly Feature[]): Uint8Array {
  const layer = {
    version: 2,
    name,
    extent: 4096,
    length: features.length,
    feature: (n: number) => {
      const { id, properties, geometry } = features[n]!;
      return {
        ...(id === null ? {} : { id }),
        type: KINDS[geometry.kind],
        extent: 4096,
        properties: properties as Record<string, string | number>,
        loadGeometry: () =>
          geometry.paths.map((points) => {
            const all = Array.from({ length: points.length / 2 }, (_, at) => ({
              x: points[2 * at]!,
              y: points[2 * at + 1]!,
            }));
            return geometry.kind === 'polygon' ? [...all, all[0]!] : all;
          }),
      };
    },
  };
  // It reads nothing of a point but x and y.
  return fromVectorTileJs({ layers: { [name]: layer } } as never);
}

describe('a vector tile', () => {
  test('has the bytes that vt-pbf gives it, whatever is in it', () => {
    fc.assert(
      fc.property(fc.constantFrom('areas', 'é'), fc.array(feature, { maxLength: 20 }), (name, features) => {
        const tile = new VectorTile(name);
        for (const { id, properties, geometry } of features) tile.add(id, properties, geometry);
        assert.deepEqual(new Uint8Array(tile.finish()), new Uint8Array(byVtPbf(name, features)));
      }),
      { seed: 7, numRuns: runs(200) },
    );
  });
});
