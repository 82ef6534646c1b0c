import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completeDraft, parseDraft } from '../../src/areas/areaDraft.ts';
import {
  type AreaDraft,
  areaDraft,
  beginDraft,
  beginStep,
  canUndo,
  changeDraft,
  draftVertex,
  endDraft,
  removeVertex,
  saveCall,
  undoStep,
} from '../../src/console/page/areaDraft.ts';
import type { Area } from '../../src/console/page/types.ts';

const POLYGON: Area = {
  id: 7,
  name: 'Yard',
  type: 'polygon',
  color: '#112233',
  center: { lat: 0.4, lng: 0.4 },
  radius_m: null,
  buffer_m: null,
  points: [
    { lat: 0, lng: 0 },
    { lat: 0, lng: 1 },
    { lat: 1, lng: 0 },
  ],
  external_id: 'y',
  dwell_seconds: 60,
};

test('a draft holds what the API takes, through every change of its type', () => {
  beginDraft(POLYGON);
  assert.equal(areaDraft.value?.id, 7);
  const areaOf = (sent: unknown) => {
    const draft = parseDraft(sent);
    assert.ok(draft.ok);
    return completeDraft(draft.value);
  };
  assert.deepEqual(areaOf(areaDraft.value?.body), areaOf(POLYGON));
  changeDraft({ type: 'circle', center: { lat: 1, lng: 2 } });
  assert.equal(areaDraft.value?.body.name, 'Yard');
  assert.ok(areaOf(areaDraft.value?.body).ok);
  beginDraft();
  assert.equal(areaDraft.value?.id, null);
  assert.equal(areaDraft.value?.body.name, '');
  endDraft();
  changeDraft({ name: 'too late' });
  assert.equal(areaDraft.value, null);
});

test('a new area that is sent again has the same key, until something of it changes; an edit has none', () => {
  const keyNow = () => saveCall(areaDraft.value as AreaDraft).idempotencyKey ?? '';
  beginDraft();
  const first = keyNow();
  assert.match(first, /^[0-9a-f]{32}$/);
  assert.equal(keyNow(), first);
  changeDraft({ name: 'Yard' });
  const second = keyNow();
  assert.notEqual(second, first);
  endDraft();
  beginDraft();
  changeDraft({ name: 'Yard' });
  assert.notEqual(keyNow(), second, 'the same area is wanted a second time');
  beginDraft(POLYGON);
  const { method, path, idempotencyKey } = saveCall(areaDraft.value as AreaDraft);
  assert.deepEqual([method, path, idempotencyKey], ['PATCH', '/api/v1/areas/7', undefined]);
  endDraft();
});

test('a step of drawing is undone, and what was typed since stays', () => {
  beginDraft(POLYGON);
  const points = () => areaDraft.value?.body.points;
  assert.equal(canUndo.value, false);
  undoStep();
  assert.deepEqual(points(), POLYGON.points);
  beginStep();
  changeDraft({ points: [...POLYGON.points, { lat: 1, lng: 1 }] });
  draftVertex.value = 3;
  changeDraft({ name: 'Yard 2' });
  removeVertex();
  assert.deepEqual([points(), draftVertex.value], [POLYGON.points, 2]);
  undoStep();
  assert.equal(points()?.length, 4);
  undoStep();
  assert.deepEqual([points(), areaDraft.value?.body.name, canUndo.value], [POLYGON.points, 'Yard 2', false]);
  draftVertex.value = 0;
  for (let left = 2; left >= 0; left--) {
    removeVertex();
    assert.equal(points()?.length, left);
  }
  assert.equal(draftVertex.value, null);
  removeVertex();
  for (let n = 0; n < 200; n++) beginStep();
  let undone = 0;
  for (; canUndo.value; undone++) undoStep();
  assert.equal(undone, 100);
  beginStep();
  beginDraft();
  assert.equal(canUndo.value, false);
  endDraft();
});
