import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatCoordinates, parseCoordinates } from '../../src/console/page/views/areas/coordinates.ts';

const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
const places = fc.array(fc.record({ lat: number, lng: number }), { maxLength: 5 });

test('places that are shown as text are read back as they are', () => {
  fc.assert(
    fc.property(places, (points) => {
      const read = parseCoordinates(formatCoordinates(points));
      assert.deepEqual(JSON.stringify(read), JSON.stringify({ ok: true, change: { points } }));
    }),
  );
});

test('places may be separated by what people paste, and a line that is none is named', () => {
  const points = [
    { lat: 41.9, lng: -12.5 },
    { lat: 1, lng: 2 },
  ];
  for (const text of ['41.9,-12.5\n1 2', ' 41.9;\t-12.5 \r\n\n1,2\n'])
    assert.deepEqual(parseCoordinates(text), { ok: true, change: { points } });
  for (const line of ['x', '1', '1, 2, 3', '1, north', ',', '1,'])
    assert.match(JSON.stringify(parseCoordinates(`1, 2\n\n${line}`)), /"ok":false,"message":"line 3 /, line);
});

const RING = '[[1,2],[3,4],[5,6],[1,2]]';
const LINE = '{"type":"LineString","coordinates":[[1,2],[3,4,99]]}';

test('a polygon with holes is taken without them, and the form says so', () => {
  const whole = parseCoordinates(`{"type":"Polygon","coordinates":[${RING}]}`);
  const pierced = parseCoordinates(`{"type":"Polygon","coordinates":[${RING},${RING},${RING}]}`);
  assert.ok(whole.ok && pierced.ok);
  assert.deepEqual(pierced.change, whole.change);
  assert.equal(whole.note, undefined);
  assert.match(pierced.note ?? '', /holes .* are left out/);
});

test('GeoJSON brings its type, and has the longitude first', () => {
  const a = { lat: 2, lng: 1 };
  const b = { lat: 4, lng: 3 };
  const point = '{"type":"Point","coordinates":[1,2]}';
  for (const [json, change] of [
    [LINE, { type: 'polyline', points: [a, b] }],
    [`{"type":"Feature","properties":null,"geometry":${LINE}}`, { type: 'polyline', points: [a, b] }],
    [
      `{"type":"Polygon","coordinates":[${RING}]}`,
      { type: 'polygon', points: [a, b, { lat: 6, lng: 5 }, a] },
    ],
    [point, { type: 'point', points: [a] }],
    [
      `{"type":"Feature","properties":{"radius":70},"geometry":${point}}`,
      { type: 'circle', radius_m: 70, points: [a] },
    ],
  ] as const)
    assert.deepEqual(parseCoordinates(json), { ok: true, change });
  for (const text of [
    '{',
    '{}',
    '{"geometry":null}',
    '{"type":"Point"}',
    '{"type":"Polygon","coordinates":[]}',
    '{"type":"LineString","coordinates":[[1,2],"x"]}',
    '{"type":"MultiPoint","coordinates":[[1,2]]}',
  ])
    assert.equal(parseCoordinates(text).ok, false, text);
});
