import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AREA_ERRORS } from '../../../src/areas/areaFields.ts';
import type { AreaQuota } from '../../../src/areas/areas.sql.ts';
import { grown, growthOf, quotaErrorOf } from '../../../src/areas/saveArea.ts';
import {
  coded,
  collection,
  errorsOf,
  FAR_RING,
  feature,
  namesOf,
  POINT,
  POLYGON,
  plan,
  resolve,
} from '../import/importing.ts';

const AREAS_ONLY: AreaQuota = { areas: 0, vertices: 0, maxAreas: 2, maxVertices: Infinity };
/** The rings of these tests have four vertices each. */
const VERTICES_ONLY: AreaQuota = { areas: 0, vertices: 0, maxAreas: Infinity, maxVertices: 8 };
const RINGS = { ...POLYGON, coordinates: [FAR_RING] };
const named = (name: string, geometry: object = POINT) => feature(geometry, { name });
const stored = (name: string, geometry: object = POLYGON) => {
  const [write] = resolve(named(name, geometry)).writes;
  assert.ok(write);
  return { ...write.area.definition, externalId: name };
};

describe('what an account may have', () => {
  const polygon = stored('P');
  const place = stored('Q', POINT);

  test('a new area counts one, and as many vertices as it has; a place has none', () => {
    assert.deepEqual(growthOf(null, polygon), { areas: 1, vertices: 4 });
    assert.deepEqual(growthOf(null, place), { areas: 1, vertices: 0 });
  });

  test('a change counts the vertices that it adds or gives back', () => {
    assert.deepEqual(growthOf(place, polygon), { areas: 0, vertices: 4 });
    assert.deepEqual(growthOf(polygon, place), { areas: 0, vertices: -4 });
  });

  test('the last area and the last vertex fit, the next does not', () => {
    const one = { areas: 1, vertices: 0 };
    assert.equal(quotaErrorOf({ ...AREAS_ONLY, areas: 1 }, one), null);
    assert.equal(quotaErrorOf({ ...AREAS_ONLY, areas: 2 }, one), AREA_ERRORS.tooManyAreas);
    const four = { areas: 0, vertices: 4 };
    assert.equal(quotaErrorOf({ ...VERTICES_ONLY, vertices: 4 }, four), null);
    assert.equal(quotaErrorOf({ ...VERTICES_ONLY, vertices: 5 }, four), AREA_ERRORS.tooManyVertices);
  });

  test('who has more than a smaller plan allows may still change what takes no more', () => {
    const over = grown(AREAS_ONLY, { areas: 10, vertices: 100 });
    assert.equal(quotaErrorOf(over, { areas: 0, vertices: 0 }), null);
    assert.equal(quotaErrorOf({ ...over, maxVertices: 1 }, { areas: 0, vertices: -4 }), null);
  });
});

describe('an import into a quota', () => {
  test('creates in order what fits', () => {
    const outcome = resolve(collection(named('A'), named('B'), named('C')), undefined, AREAS_ONLY);
    assert.deepEqual(namesOf(outcome), ['A', 'B']);
    assert.deepEqual(errorsOf(outcome), ['2 LIMIT_REACHED']);
  });

  test('goes on with what still fits after something that does not', () => {
    const body = collection(named('A', POLYGON), named('B', RINGS), named('C', POLYGON), named('D'));
    const outcome = resolve(body, undefined, VERTICES_ONLY);
    assert.deepEqual(namesOf(outcome), ['A', 'B', 'D']);
    assert.deepEqual(errorsOf(outcome), ['2 LIMIT_REACHED']);
  });

  test('reports each feature once, however many of its parts are left out', () => {
    const many = { type: 'MultiPoint', coordinates: [1, 2, 3, 4, 5].map((n) => [n, 0]) };
    const outcome = resolve(collection(named('A', many), named('B')), undefined, AREAS_ONLY);
    assert.equal(outcome.writes.length, 2);
    assert.deepEqual(errorsOf(outcome), ['0 LIMIT_REACHED', '1 LIMIT_REACHED']);
  });

  test('counts an update by what it adds, and gives the next ones what it freed', () => {
    const known = new Map([
      ['grows', stored('grows', POINT)],
      ['shrinks', stored('shrinks')],
    ]);
    const full = { ...VERTICES_ONLY, areas: 2, vertices: 8, maxAreas: 2 };
    const body = collection(
      coded('grows', {}, POLYGON),
      coded('shrinks', {}, POINT),
      coded('grows', {}, POLYGON),
    );
    const outcome = resolve(body, known, full);
    assert.deepEqual(errorsOf(outcome), ['0 LIMIT_REACHED']);
    assert.deepEqual(
      outcome.updated.map(({ index }) => index),
      [1, 2],
    );
  });

  test('what is refused leaves a code free for a later feature that fits', () => {
    const body = collection(coded('x', {}, POLYGON), coded('x', {}, POINT));
    const outcome = resolve(body, undefined, { ...VERTICES_ONLY, maxVertices: 3 });
    assert.deepEqual(
      outcome.created.map(({ index }) => index),
      [1],
    );
    assert.equal(plan(body).items.length, 2);
  });
});
