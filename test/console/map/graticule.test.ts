import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { graticuleOf } from '../../../src/console/page/map/worldStyle.ts';

test('lines of the grid are at round parts of a degree, and say where they are', () => {
  const names = (west: number, south: number, east: number, north: number) =>
    graticuleOf({ west, south, east, north }).map(({ name }) => name);
  const rome = ['12.45° E', '12.50° E', '12.55° E', '12.60° E', '41.88° N', '41.90° N', '41.92° N'];
  assert.deepEqual(names(12.41, 41.87, 12.61, 41.93), rome);
  const fiji = ['179.0° E', '179.5° E', '180.0° W', '179.5° W', '179.0° W'];
  const equator = ['0.2° S', '0.1° S', '0.0° N', '0.1° N', '0.2° N'];
  assert.deepEqual(names(178.9, -0.3, 181.2, 0.3), [...fiji, ...equator]);
});

test('there are a few in each direction, within the view, wherever and however large it is', () => {
  const within = (min: number, max: number) => fc.double({ min, max, noNaN: true });
  fc.assert(
    fc.property(within(-540, 540), within(-85, 80), within(-4, 0.7), (west, south, logSize) => {
      const size = 10 ** logSize;
      const lines = graticuleOf({ west, south, east: west + size, north: south + size });
      assert.ok(lines.length >= 4 && lines.length <= 14, `${lines.length} lines`);
      for (const [[lng, lat] = [Number.NaN, Number.NaN]] of lines.map(({ coordinates }) => coordinates)) {
        assert.ok(lng >= west - 1e-9 && lng <= west + size + 1e-9);
        assert.ok(lat >= south - 1e-9 && lat <= south + size + 1e-9);
      }
    }),
  );
});
