import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseDraft } from '../../../src/areas/areaDraft.ts';
import { draftErrors } from '../../../src/areas/saveArea.ts';
import { run } from '../import/importing.ts';
import { lineString } from '../reads/geojson.ts';

const errorsOf = (body: object): string[] => {
  const draft = parseDraft(body);
  assert.ok(draft.ok);
  return run(draftErrors(draft.value)).map(({ field, code }) => `${field} ${code}`);
};

const BOW_TIE = [
  { lat: 0, lng: 0 },
  { lat: 1, lng: 1 },
  { lat: 1, lng: 0 },
  { lat: 0, lng: 1 },
];
const LINE = lineString([0, 0], [1, 1]);

describe('wrong whatever the area', () => {
  const rows: readonly (readonly [body: object, ...errors: string[]])[] = [
    [{ name: ' ' }, 'name REQUIRED'],
    [{ name: 'x'.repeat(101), color: 'red' }, 'name TOO_LONG', 'color INVALID'],
    [{ type: 'square' }, 'type INVALID'],
    [{ external_id: 'a b', dwell_seconds: -1 }, 'external_id INVALID', 'dwell_seconds OUT_OF_RANGE'],
    [{ type: 'circle', radius_m: 24 }, 'radius_m OUT_OF_RANGE'],
    [{ type: 'circle', center: { lat: 91, lng: 0 } }, 'center INVALID_COORDINATES'],
    [{ type: 'point', radius_m: 0 }, 'radius_m OUT_OF_RANGE'],
    [{ type: 'polygon', points: BOW_TIE }, 'points SELF_INTERSECTION'],
    [{ type: 'polyline', points: [] }, 'points TOO_FEW_POINTS'],
    [{ type: 'polyline', buffer_m: 4 }, 'buffer_m OUT_OF_RANGE'],
    [{ geojson: 5 }, 'geojson INVALID_GEOJSON'],
    [{ geojson: LINE, type: 'circle' }, 'type INVALID'],
    [{ geojson: LINE, buffer_m: 4, name: 5 }, 'name REQUIRED', 'buffer_m OUT_OF_RANGE'],
  ];
  for (const [body, ...errors] of rows) {
    test(`${JSON.stringify(body).slice(0, 80)}: ${errors}`, () => assert.deepEqual(errorsOf(body), errors));
  }
});

describe('right for some area', () => {
  const rows: readonly object[] = [
    {},
    { name: 'A', color: '#ffffff', external_id: null, dwell_seconds: 60 },
    { type: 'circle' },
    { type: 'polygon' },
    { type: 'polyline' },
    { radius_m: -1 },
    { buffer_m: -1 },
    { center: 'x' },
    { points: [] },
    { points: BOW_TIE },
    { points: BOW_TIE, radius_m: 'x' },
    { geojson: LINE },
  ];
  for (const body of rows) {
    test(JSON.stringify(body).slice(0, 80), () => assert.deepEqual(errorsOf(body), []));
  }
});
