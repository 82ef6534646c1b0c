import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { collection, FAR_RING, multiLineString, multiPolygon, path, RING } from '../reads/geojson.ts';
import { coded, errorsOf, feature, namesOf, resolve } from './importing.ts';

describe('parts that were cut along the antimeridian are one area again', () => {
  const west = path([177, -19], [180, -19], [180, -16], [177, -16], [177, -19]);
  const east = path([-180, -19], [-178, -19], [-178, -16], [-180, -16], [-180, -19]);
  const fiji = multiPolygon([west], [east]);
  const chukotka = multiLineString(path([170, 66], [180, 67]), path([-180, 67], [-170, 68]));

  test('which has no number and may have a code', () => {
    const outcome = resolve(collection(coded('x', {}, fiji), coded('y', {}, chukotka)));
    assert.deepEqual(outcome.errors, []);
    assert.deepEqual(namesOf(outcome), ['A', 'A']);
    assert.deepEqual(
      outcome.writes.map(({ area: { definition } }) => [definition.geometry.type, definition.externalId]),
      [
        ['polygon', 'x'],
        ['polyline', 'y'],
      ],
    );
    assert.deepEqual(outcome.writes[0]?.area.measures.bounds, {
      south: -19,
      west: 177,
      north: -16,
      east: -178,
    });
  });

  test('also among islands that touch nothing', () => {
    const islands = multiPolygon([RING], [west], [FAR_RING], [east]);
    const outcome = resolve(collection(feature(islands), feature(islands, { name: 'B', external_id: 'x' })));
    assert.deepEqual(namesOf(outcome), ['A (1)', 'A (2)', 'A (3)']);
    assert.deepEqual(errorsOf(outcome), ['1 MULTI_GEOMETRY_EXTERNAL_ID']);
    assert.equal(
      outcome.writes.filter(({ area: { measures } }) => measures.bounds.west > measures.bounds.east).length,
      1,
    );
  });

  test('also around a hole, which is reported', () => {
    const lake = (seam: number, shore: number) =>
      path(
        [seam, 0],
        [shore, 0],
        [shore, 9],
        [seam, 9],
        [seam, 6],
        [(seam + shore) / 2, 6],
        [(seam + shore) / 2, 3],
        [seam, 3],
      );
    const outcome = resolve(feature(multiPolygon([lake(180, 170)], [lake(-180, -170)])));
    assert.deepEqual(namesOf(outcome), ['A']);
    assert.deepEqual(outcome.warnings, [{ index: 0, code: 'warnHolesIgnored' }]);
    const { definition } = outcome.writes[0]!.area;
    assert.ok(definition.geometry.type === 'polygon' && definition.geometry.points.length === 8);
  });

  test('the points of the cut count for nothing in the limit of 2000', () => {
    const shore = (lng: number) => Array.from({ length: 1_000 }, (_, i) => [lng, -16 - (3 * i) / 999]);
    const wide = multiPolygon(
      [[[180, -19], [180, -16], ...shore(177), [180, -19]]],
      [[[-180, -16], [-180, -19], ...shore(-178).reverse(), [-180, -16]]],
    );
    const outcome = resolve(feature(wide));
    assert.deepEqual(outcome.errors, []);
    const geometry = outcome.writes[0]?.area.definition.geometry;
    assert.ok(
      outcome.writes.length === 1 && geometry?.type === 'polygon' && geometry.points.length === 4_000,
    );
  });

  test('an unreadable part keeps the others from being joined, and nothing else', () => {
    const outcome = resolve(feature(multiPolygon([west], [east], ['x'])));
    assert.deepEqual(namesOf(outcome), ['A (1)', 'A (2)']);
    assert.deepEqual(errorsOf(outcome), ['0 errCoordinates']);
  });
});
