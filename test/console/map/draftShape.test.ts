import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AreaBody } from '../../../src/console/page/areaDraft.ts';
import { distanceM } from '../../../src/console/page/map/areaShapes.ts';
import { clicked, dragged, handlesOf } from '../../../src/console/page/map/draftOnMap.ts';

const [A, B] = [
  { lat: 1, lng: 2 },
  { lat: 3, lng: 4 },
];
const body = (change: Partial<AreaBody>) =>
  ({ type: 'circle', center: null, radius_m: 500, points: [], ...change }) as AreaBody;

test('a circle has its centre where it is clicked, and a rim that is dragged to its radius', () => {
  assert.deepEqual(handlesOf(body({})), []);
  assert.deepEqual(clicked(body({}), A), { center: A });
  const placed = body({ center: A });
  const [[rim, at]] = handlesOf(placed) as [[string, typeof A]];
  assert.ok(rim === 'rim' && Math.abs(distanceM(A, at) - 500) < 0.01);
  assert.deepEqual(dragged(placed, 'rim', B), { radius_m: Math.round(distanceM(A, B)) });
  assert.deepEqual(dragged(placed, 'center', B), { center: B });
});

test('a polygon or track gets a vertex for each click, within 180°, and each can be dragged', () => {
  for (const type of ['polygon', 'polyline'] as const) {
    const one = body({ type, points: [A] });
    assert.deepEqual(clicked(one, { lat: 0, lng: 190.123456789 }), {
      points: [A, { lat: 0, lng: -169.876543 }],
    });
    assert.deepEqual(handlesOf(one), [[0, A]]);
    assert.deepEqual(dragged(body({ type, points: [A, A] }), 1, B), { points: [A, B] });
  }
});
