import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type AreaDefinition,
  type AreaGeometry,
  areaView,
  toLatLngs,
  toVertices,
} from '../../../src/areas/area.ts';
import { completeDraft, mergeDraft, parseDraft, type ValidArea } from '../../../src/areas/areaDraft.ts';
import { TRACK } from '../../support/http/areas.ts';
import { areaInMemory } from '../../support/ingest/polygons.ts';
import { runs } from '../../support/torture.ts';
import { lineString } from '../reads/geojson.ts';
import { at, BOW_TIE, feature, SQUARE } from '../writes/newArea.ts';
import { anyBody } from './arbitraries.ts';

const LINE = TRACK.points;
const CENTER = at(41.9, 12.5);

const OWN = { name: 'Old', color: '#102030', externalId: 'x:1', dwellSeconds: 60 };
const GEOMETRY = {
  circle: { type: 'circle', center: CENTER, radiusM: 200 },
  point: { type: 'point', center: CENTER, radiusM: 10 },
  polygon: { type: 'polygon', points: toVertices(SQUARE) },
  polyline: { type: 'polyline', points: toVertices(LINE), bufferM: 200 },
} as const satisfies { [Type in AreaGeometry['type']]: AreaGeometry };
type Kind = keyof typeof GEOMETRY;
const KINDS = Object.keys(GEOMETRY) as Kind[];

const stored = (kind: Kind): AreaDefinition => ({ ...OWN, geometry: GEOMETRY[kind] });

function merge(area: AreaDefinition, body: unknown): ReturnType<typeof mergeDraft> {
  const draft = parseDraft(body);
  return draft.ok ? mergeDraft(area, draft.value) : draft;
}

function merged(area: AreaDefinition, body: unknown): ValidArea {
  const result = merge(area, body);
  assert.ok(result.ok, JSON.stringify(result));
  return result.value;
}

/** What a read answers. */
const representation = (definition: AreaDefinition): object =>
  areaView({ ...areaInMemory(7, definition.geometry), definition });

describe('an update of the geometry keeps what it does not say, within the type', () => {
  const moved = at(50, 8);
  const { circle, point, polygon, polyline } = GEOMETRY;
  const square = toVertices(SQUARE.map(({ lat, lng }) => at(lat + 1, lng)));
  const geojson = (geometry: object, properties: object = {}) => ({ geojson: feature(geometry, properties) });
  const pointAt = { type: 'Point', coordinates: [8, 50] };
  const line = lineString([1, 2], [3, 4]);
  const polygonOf = { type: 'Polygon', coordinates: [toLatLngs(square).map(({ lat, lng }) => [lng, lat])] };
  const rows: readonly (readonly [from: Kind, body: object, expected: AreaGeometry])[] = [
    ['circle', { center: moved }, { ...circle, center: moved }],
    ['circle', { radius_m: 300 }, { ...circle, radiusM: 300 }],
    ['circle', { points: SQUARE, buffer_m: 1 }, circle],
    ['point', { center: moved }, { ...point, center: moved }],
    ['point', { radius_m: 11 }, { ...point, radiusM: 11 }],
    ['polygon', { points: toLatLngs(square) }, { type: 'polygon', points: square }],
    ['polygon', { center: moved, radius_m: 1, buffer_m: 1 }, polygon],
    ['polyline', { buffer_m: 60 }, { ...polyline, bufferM: 60 }],
    ['polyline', { points: SQUARE, buffer_m: 60 }, { ...polyline, points: toVertices(SQUARE), bufferM: 60 }],
    ['polyline', { center: 'x', radius_m: 'x' }, polyline],

    // Another type is a whole new geometry.
    ['circle', { type: 'point', center: moved }, { type: 'point', center: moved, radiusM: 50 }],
    ['circle', { type: 'polygon', points: toLatLngs(square) }, { type: 'polygon', points: square }],
    [
      'polygon',
      { type: 'polyline', points: SQUARE },
      { type: 'polyline', points: polygon.points, bufferM: 50 },
    ],
    ['polyline', { type: 'polygon', points: toLatLngs(square) }, { type: 'polygon', points: square }],
    [
      'polygon',
      { type: 'circle', center: moved, radius_m: 30 },
      { type: 'circle', center: moved, radiusM: 30 },
    ],

    // GeoJSON says type and geometry; a Point without more fits a circle as well as a place.
    ['circle', geojson(pointAt), { ...circle, center: moved }],
    ['point', geojson(pointAt), { ...point, center: moved }],
    ['polygon', geojson(pointAt), { type: 'point', center: moved, radiusM: 50 }],
    ['circle', geojson(pointAt, { radius: 30 }), { type: 'circle', center: moved, radiusM: 30 }],
    ['point', geojson(pointAt, { radius: 30 }), { type: 'circle', center: moved, radiusM: 30 }],
    ['point', geojson(pointAt, { radius: 30, type: 'point' }), { type: 'point', center: moved, radiusM: 30 }],
    ['circle', geojson(pointAt, { type: 'point' }), { type: 'point', center: moved, radiusM: 50 }],
    ['circle', { geojson: pointAt, type: 'point' }, { type: 'point', center: moved, radiusM: 50 }],
    ['polyline', geojson(line), { ...polyline, points: toVertices([at(2, 1), at(4, 3)]) }],
    [
      'polyline',
      geojson(line, { bufferDistance: 9 }),
      { type: 'polyline', points: toVertices([at(2, 1), at(4, 3)]), bufferM: 9 },
    ],
    ['circle', geojson(line), { type: 'polyline', points: toVertices([at(2, 1), at(4, 3)]), bufferM: 50 }],
    ['circle', geojson(polygonOf), { type: 'polygon', points: square }],
  ];
  for (const [from, body, expected] of rows) {
    test(`${from}: ${JSON.stringify(body).slice(0, 100)}`, () => {
      assert.deepEqual(merged(stored(from), body).definition, { ...stored(from), geometry: expected });
    });
  }

  test("a feature's silence, or what is no name or colour, keeps the stored own fields", () => {
    for (const properties of [
      {},
      { name: null, color: null },
      { name: ' ', title: 5, color: 'red', external_id: null },
    ]) {
      const { definition } = merged(stored('circle'), geojson(pointAt, properties));
      assert.deepEqual({ ...definition, ...OWN }, definition);
    }
  });
});

describe('an update is refused with every field that is wrong', () => {
  const rows: readonly (readonly [from: Kind, body: unknown, errors: string])[] = [
    ['circle', 'x', 'null INVALID_BODY'],
    ['circle', [], 'null INVALID_BODY'],
    ['circle', { name: '' }, 'name REQUIRED'],
    ['circle', { type: 'x' }, 'type INVALID'],
    [
      'circle',
      { color: 'x', dwell_seconds: -1, external_id: '' },
      'color INVALID, external_id INVALID, dwell_seconds OUT_OF_RANGE',
    ],
    ['circle', { center: {}, radius_m: 1 }, 'center INVALID_COORDINATES, radius_m OUT_OF_RANGE'],
    ['circle', { type: 'point' }, 'center REQUIRED'],
    ['point', { type: 'circle' }, 'center REQUIRED, radius_m REQUIRED'],
    ['point', { type: 'circle', center: CENTER }, 'radius_m REQUIRED'],
    ['point', { radius_m: 0 }, 'radius_m OUT_OF_RANGE'],
    ['polygon', { type: 'circle' }, 'center REQUIRED, radius_m REQUIRED'],
    ['polygon', { type: 'polyline' }, 'points TOO_FEW_POINTS'],
    ['polygon', { type: 'polyline', buffer_m: 1 }, 'buffer_m OUT_OF_RANGE, points TOO_FEW_POINTS'],
    ['polygon', { points: [] }, 'points TOO_FEW_POINTS'],
    ['polygon', { points: BOW_TIE }, 'points SELF_INTERSECTION'],
    ['polyline', { type: 'polygon' }, 'points TOO_FEW_POINTS'],
    ['polyline', { buffer_m: 1, points: {} }, 'buffer_m OUT_OF_RANGE, points TOO_FEW_POINTS'],
    ['circle', { geojson: {}, name: '' }, 'name REQUIRED, geojson INVALID_GEOJSON'],
    ['circle', { geojson: lineString([1, 2], [3, 4]), type: 'circle' }, 'type INVALID'],
    [
      'polygon',
      {
        geojson: feature({ type: 'Point', coordinates: [1, 2] }, { type: 'circle' }),
      },
      'radius_m REQUIRED',
    ],
  ];
  for (const [from, body, errors] of rows) {
    test(`${from}: ${JSON.stringify(body).slice(0, 100)}: ${errors}`, () => {
      const result = merge(stored(from), body);
      assert.ok(!result.ok);
      assert.equal(result.error.map(({ field, code }) => `${field} ${code}`).join(', '), errors);
    });
  }
});

describe('an update warns of what was sent, not of what was there', () => {
  const huge: AreaDefinition = { ...OWN, geometry: { type: 'circle', center: CENTER, radiusM: 90_000 } };
  const rows: readonly (readonly [area: AreaDefinition, body: object, ...codes: string[]])[] = [
    [huge, { name: 'New' }],
    [huge, { radius_m: 91_000 }, 'warnVeryLargeArea'],
    [huge, { radius_m: 91 }],
    [stored('polygon'), { points: [SQUARE[0], ...SQUARE] }, 'warnSimplifiedDuplicates'],
    [stored('polyline'), { points: [SQUARE[0], ...SQUARE] }, 'warnSimplifiedDuplicates'],
    [stored('polyline'), { buffer_m: 50 }],
  ];
  for (const [area, body, ...codes] of rows) {
    test(`${area.geometry.type}: ${JSON.stringify(body).slice(0, 60)}`, () => {
      assert.deepEqual(
        merged(area, body).warnings.map(({ code }) => code),
        codes,
      );
    });
  }
});

test('any area that can be created is unchanged by nothing, and by all that a read answers', () => {
  let created = 0;
  const property = fc.property(anyBody, (body) => {
    const draft = parseDraft(body);
    const area = draft.ok ? completeDraft(draft.value) : draft;
    if (!area.ok) return;
    created++;
    const { definition, measures } = area.value;
    for (const same of [{}, representation(definition)]) {
      const again = merged(definition, same);
      assert.deepEqual(again.definition, definition);
      assert.deepEqual(again.measures, measures);
    }
  });
  fc.assert(property, { seed: 20_260_315, numRuns: runs(500) });
  assert.ok(created > 10, `only ${created} created`);
});

test('any area takes any body: a sound area of the sent type, or errors', () => {
  const property = fc.property(anyBody, fc.constantFrom(...KINDS), (body, kind) => {
    const result = merge(stored(kind), body);
    if (!result.ok) {
      assert.ok(result.error.length > 0);
      return;
    }
    const once = result.value.definition;
    assert.deepEqual(merged(once, representation(once)).definition, once);
  });
  fc.assert(property, { seed: 20_260_315, numRuns: runs(500) });
});
