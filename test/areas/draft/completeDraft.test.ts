import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type AreaGeometry, toLatLngs } from '../../../src/areas/area.ts';
import type { ValidArea } from '../../../src/areas/areaDraft.ts';
import { AREA_ERRORS } from '../../../src/areas/areaFields.ts';
import { CIRCLE, PLACE, POLYGON, TRACK, validArea } from '../../support/http/areas.ts';
import { runs } from '../../support/torture.ts';
import { path, polygon, RING } from '../reads/geojson.ts';
import {
  at,
  BOW_TIE,
  circleOf,
  errorsOf,
  geometryOf,
  placeOf,
  polygonOf,
  SQUARE,
  trackOf,
  wrapped,
} from '../writes/newArea.ts';
import { anyBody } from './arbitraries.ts';

describe('a new area is what was sent, with defaults for the rest', () => {
  test('null is a field that was not sent', () => {
    const nulls = { color: null, external_id: null, dwell_seconds: null, geojson: null };
    assert.deepEqual(validArea({ ...CIRCLE, ...nulls, points: null, buffer_m: null }), validArea(CIRCLE));
  });

  const loop = [...BOW_TIE, at(41.9, 12.4)];
  const rich = TRACK.points.map((point) => ({ ...point, alt: 5, time: 'x' }));
  const accepted: readonly (readonly [title: string, body: object, geometry: AreaGeometry])[] = [
    ['a place has 50 m around it', PLACE, placeOf(50)],
    ['or any radius above 0', { ...PLACE, radius_m: 0.5 }, placeOf(0.5)],
    ['a circle of 25 m', { ...CIRCLE, radius_m: 25 }, circleOf(25)],
    ['a circle of 100 km', { ...CIRCLE, radius_m: 1e5 }, circleOf(1e5)],
    ['a circle on the pole', { ...CIRCLE, center: at(90, 180) }, circleOf(500, at(90, 180))],
    ['minus zero is zero', { ...CIRCLE, center: at(-0, -0) }, circleOf(500, at(0, 0))],
    [
      'fields of another type are ignored, even wrong ones',
      { ...CIRCLE, points: 'x', buffer_m: -1 },
      circleOf(),
    ],
    ['on a polygon too', { ...POLYGON, center: 'x', radius_m: 'x', buffer_m: 'x' }, polygonOf()],
    ['on a track too', { ...TRACK, center: at(91, 0), radius_m: -1 }, trackOf()],
    ['a track has 50 m', TRACK, trackOf(50)],
    ['or 5', { ...TRACK, buffer_m: 5 }, trackOf(5)],
    ['or 5000', { ...TRACK, buffer_m: 5e3 }, trackOf(5e3)],
    ['a track may cross itself and end where it began', { ...TRACK, points: loop }, trackOf(50, loop)],
    ['a polygon keeps its winding', POLYGON, polygonOf()],
    ['and the other one', { ...POLYGON, points: SQUARE.toReversed() }, polygonOf(SQUARE.toReversed())],
    ['and loses its closing point', { ...POLYGON, points: [...SQUARE, SQUARE[0]] }, polygonOf()],
    ['points may carry more than they need', { ...TRACK, points: rich }, trackOf()],
  ];
  for (const [title, body, geometry] of accepted) {
    test(title, () => assert.deepEqual(geometryOf(body), geometry));
  }

  test('2000 points are enough for a polygon that repeats its first', () => {
    const circle = Array.from({ length: 2_000 }, (_, i) => {
      const angle = (2 * Math.PI * i) / 2_000;
      return at(Math.sin(angle), Math.cos(angle));
    });
    const geometry = geometryOf({ ...POLYGON, points: [...circle, circle[0]] });
    assert.ok(geometry.type === 'polygon');
    assert.deepEqual(
      toLatLngs(geometry.points),
      circle.map(({ lat, lng }) => at(lat + 0, lng + 0)),
    );
  });

  test('100 code points are a name, counted after trimming', () => {
    for (const name of ['x'.repeat(100), '🚚'.repeat(100), ` ${'é'.repeat(100)}\n`]) {
      assert.equal(validArea({ ...CIRCLE, name }).definition.name, name.trim());
    }
  });
});

describe('a new area comes with its warnings', () => {
  const side = (degrees: number) => [at(0, 0), at(0, degrees), at(degrees, degrees), at(degrees, 0)];
  const rows: readonly (readonly [title: string, body: object, ...codes: string[]])[] = [
    ['nothing to warn of', POLYGON],
    ['under 100 m²', { ...POLYGON, points: side(0.00008) }, 'warnVerySmallArea'],
    ['over 100 m²', { ...POLYGON, points: side(0.0001) }],
    ['over 10 000 km²', { ...POLYGON, points: side(0.91) }, 'warnVeryLargeArea'],
    ['under 10 000 km²', { ...POLYGON, points: side(0.89) }],
    ['a circle of 57 km', { ...CIRCLE, radius_m: 57_000 }, 'warnVeryLargeArea'],
    ['a circle of 56 km', { ...CIRCLE, radius_m: 56_000 }],
    ['a place, however large', { ...PLACE, radius_m: 100_000 }],
    ['a track, however long', { ...TRACK, points: side(10), buffer_m: 5_000 }],
    [
      'nearly coincident vertices',
      { ...POLYGON, points: [SQUARE[0], at(41.9000001, 12.4), ...SQUARE.slice(1)] },
      'warnSimplifiedDuplicates',
    ],
    ['a repeated point of a track', { ...TRACK, points: [SQUARE[0], ...SQUARE] }, 'warnSimplifiedDuplicates'],
    ['a closing point', { ...POLYGON, points: [...SQUARE, SQUARE[0]] }],
    [
      'a last point near the first',
      { ...POLYGON, points: [...SQUARE, at(41.9000001, 12.4)] },
      'warnSimplifiedDuplicates',
    ],
    ['a hole', wrapped(polygon(RING, RING)), 'warnHolesIgnored'],
    ['a hole that is none', wrapped(polygon(RING, 'x')), 'warnHolesIgnored'],
    [
      'all at once',
      wrapped(polygon(path([0, 0], [0, 0.0000001], [0.00001, 0], [0, 0.00001], [0, 0]), [])),
      'warnHolesIgnored',
      'warnSimplifiedDuplicates',
      'warnVerySmallArea',
    ],
  ];
  for (const [title, body, ...codes] of rows) {
    test(title, () => {
      const { warnings } = validArea(body);
      assert.deepEqual(
        warnings.map(({ code }) => code),
        codes,
      );
      for (const { message } of warnings) assert.notEqual(message, '');
    });
  }
});

test('whatever comes in, the answer is a sound area or documented errors', () => {
  const codes = new Set(Object.values(AREA_ERRORS).map(({ field, code }) => `${field} ${code}`));
  let created = 0;
  fc.assert(
    fc.property(anyBody, (body) => {
      const errors = errorsOf(body);
      for (const error of errors) assert.ok(codes.has(error), error);
      assert.equal(new Set(errors).size, errors.length);
      if (errors.length > 0) return;
      created++;
      assertSound(validArea(body));
    }),
    { seed: 20_260_315, numRuns: runs(750) },
  );
  assert.ok(created > 25, `only ${created} created`);
});

function assertSound({ definition, measures, warnings }: ValidArea): void {
  const { name, color, geometry, externalId, dwellSeconds } = definition;
  assert.ok(name !== '' && name === name.trim() && [...name].length <= 100);
  assert.ok(name.isWellFormed() && !name.includes('\u0000'));
  assert.match(color, /^#[0-9a-f]{6}$/i);
  if (externalId !== null) assert.match(externalId, /^[\w.:/@#-]{1,100}$/);
  assert.ok(Number.isInteger(dwellSeconds) && dwellSeconds >= 0 && dwellSeconds <= 86_400);
  const positions = 'points' in geometry ? toLatLngs(geometry.points) : [geometry.center];
  for (const { lat, lng } of positions) assert.ok(Math.abs(lat) <= 90 && Math.abs(lng) <= 180);
  if ('points' in geometry) assert.ok(positions.length >= (geometry.type === 'polygon' ? 3 : 2));
  const { bounds } = measures;
  assert.ok(bounds.south <= bounds.north && Math.abs(bounds.west) <= 180 && Math.abs(bounds.east) <= 180);
  for (const metric of [measures.areaM2, measures.perimeterM, measures.lengthM]) {
    assert.ok(metric === null || (Number.isFinite(metric) && metric >= 0), `${metric}`);
  }
  assert.equal(new Set(warnings).size, warnings.length);
}
