import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { toLatLngs } from '../../../src/areas/area.ts';
import { completeDraft, parseDraft, type ValidArea } from '../../../src/areas/areaDraft.ts';
import { AREA_ERRORS } from '../../../src/areas/areaFields.ts';
import { addressDraft } from '../../../src/areas/saveArea.ts';
import { runs } from '../../support/torture.ts';
import { CIRCLE, create, errorsOf, feature, LINE, wrapped } from '../writes/newArea.ts';
import { anyBody } from './arbitraries.ts';

describe('the upsert route names the area by its path', () => {
  const rows: readonly (readonly [title: string, externalId: unknown, ...expected: string[]])[] = [
    ['no code in the body', undefined],
    ['the same code', 'x:1'],
    ['another code', 'x:2', 'external_id MISMATCH'],
    ['another case', 'X:1', 'external_id MISMATCH'],
    ['null', null, 'external_id MISMATCH'],
    ['a malformed code', 'x 1', 'external_id INVALID'],
  ];
  for (const [title, external_id, ...expected] of rows) {
    for (const body of [{ ...CIRCLE, external_id }, wrapped(LINE, { external_id })]) {
      test(`${title}, ${'geojson' in body ? 'geojson' : 'json'}`, () => {
        const draft = parseDraft(body);
        assert.ok(draft.ok);
        const completed = completeDraft(addressDraft(draft.value, 'x:1'));
        if (completed.ok) assert.equal(completed.value.definition.externalId, 'x:1');
        const errors = completed.ok ? [] : completed.error;
        assert.deepEqual(
          errors.map(({ field, code }) => `${field} ${code}`),
          expected,
        );
      });
    }
  }

  test("a feature's code counts as the body's, unless it is null", () => {
    for (const [external_id, sound] of [
      ['x:1', true],
      ['x:2', false],
      [null, true],
    ] as const) {
      const draft = parseDraft(wrapped(feature(LINE, { external_id })));
      assert.ok(draft.ok);
      assert.equal(completeDraft(addressDraft(draft.value, 'x:1')).ok, sound);
    }
  });
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
      assertSound(create(body));
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
