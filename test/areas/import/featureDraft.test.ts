import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AreaGeometry } from '../../../src/areas/area.ts';
import { validArea } from '../../support/http/areas.ts';
import { LINE, multiPoint, multiPolygon, polygon, RING } from '../reads/geojson.ts';
import { circleOf, feature, geometryOf, placeOf, polygonOf, trackOf, wrapped } from '../writes/newArea.ts';

describe('a GeoJSON wrapper makes the area that the conversion table says', () => {
  const point = { type: 'Point', coordinates: [12.5, 41.9, 37] };
  const rows: readonly (readonly [title: string, geojson: unknown, fields: object, made: AreaGeometry])[] = [
    ['Point', point, {}, placeOf(50)],
    ['Point with a radius', feature(point, { radius: 70 }), {}, circleOf(70)],
    ['Point with only radius_m', point, { radius_m: 80 }, circleOf(80)],
    ['Point of type point', feature(point, { radius: 7, type: 'point' }), {}, placeOf(7)],
    ['Point of type circle', feature(point, { radius: 70, type: 'circle' }), {}, circleOf(70)],
    ['Point of type depot', feature(point, { type: 'depot' }), {}, placeOf(50)],
    [
      'Point with type beside',
      feature(point, { radius: 70, type: 'circle' }),
      { type: 'point' },
      placeOf(70),
    ],
    ['LineString', LINE, {}, trackOf(50)],
    [
      'LineString with buffer_distance',
      feature(LINE, { bufferDistance: null, buffer_distance: 8 }),
      {},
      trackOf(8),
    ],
    [
      'LineString with buffer_m beside',
      feature(LINE, { bufferDistance: 9, radius: 'x' }),
      { buffer_m: 10, type: 'polyline' },
      trackOf(10),
    ],
    ['Polygon', polygon(RING), {}, polygonOf()],
    ['Polygon of one part', multiPolygon([RING]), {}, polygonOf()],
    ['Point of one part', multiPoint(point.coordinates), {}, placeOf(50)],
    [
      'geometry beside the wrapper is ignored',
      point,
      { center: 'x', points: 'x', buffer_m: 'x' },
      placeOf(50),
    ],
  ];
  for (const [title, geojson, fields, geometry] of rows) {
    test(title, () => assert.deepEqual(geometryOf(wrapped(geojson, fields)), geometry));
  }

  const own: readonly (readonly [title: string, properties: unknown, fields: object, expected: object])[] = [
    ['name', { name: ' A ', title: 'B' }, {}, { name: 'A' }],
    ['title', { title: 'B' }, {}, { name: 'B' }],
    ['title for a name that is not text', { name: 5, title: 'B' }, {}, { name: 'B' }],
    ['name beside', { name: 'A' }, { name: 'C' }, { name: 'C' }],
    ['color', { name: 'A', color: '#ABCDEF', stroke: '#000000' }, {}, { color: '#ABCDEF' }],
    [
      'stroke for a color that is none',
      { name: 'A', color: 'red', stroke: '#000000' },
      {},
      { color: '#000000' },
    ],
    ['neither', { name: 'A', color: 'red', stroke: 'blue' }, {}, { color: '#3b82f6' }],
    [
      'external_id null beside',
      { name: 'A', external_id: 'x:1' },
      { external_id: null },
      { externalId: null },
    ],
    [
      'external_id beside a wrong one',
      { name: 'A', external_id: 5 },
      { external_id: 'x:2' },
      { externalId: 'x:2' },
    ],
    ['dwell_seconds beside', { name: 'A', dwell_seconds: 60 }, { dwell_seconds: 0 }, { dwellSeconds: 0 }],
  ];
  for (const [title, properties, fields, expected] of own) {
    test(`${title} of the properties`, () => {
      const { definition } = validArea({ geojson: feature(point, properties), ...fields });
      assert.deepEqual({ ...definition, ...expected }, definition);
    });
  }

  test('properties of any other kind are none', () => {
    for (const properties of [undefined, null, 5, 'x', [], ['name']]) {
      assert.equal(validArea(wrapped(feature(point, properties))).definition.name, 'G');
    }
  });
});
