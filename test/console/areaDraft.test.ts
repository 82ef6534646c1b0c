import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completeDraft } from '../../src/areas/mergeDraft.ts';
import { parseDraft } from '../../src/areas/parseDraft.ts';
import { areaDraft, beginDraft, changeDraft, endDraft } from '../../src/console/areaDraft.ts';
import type { Area } from '../../src/console/types.ts';

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
