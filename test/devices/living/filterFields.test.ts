import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readFilterFields } from '../../../src/devices/living/filterFields.ts';

describe('the filter of a body', () => {
  const read = (sent: object) => readFilterFields(sent as Record<string, unknown>, []);

  test('has lists as text with commas or as an array, whose texts may have commas', () => {
    const asText = read({ status: 'moving,parked', group: 'a, b', max_age_seconds: 60 });
    assert.deepEqual(
      asText,
      read({ status: ['moving', 'parked'], group: ['a', 'b'], max_age_seconds: 60.5 }),
    );
    const withComma = read({ group: ['a,b'] });
    assert.ok(withComma.ok && withComma.value?.groups?.has('a,b'));
  });

  test('is none where nothing but null is sent', () => {
    for (const sent of [{}, { status: null, group: null, max_age_seconds: null }, { status: ' ' }])
      assert.deepEqual(read(sent), { ok: true, value: null });
  });

  test('is refused where a value is of another type or out of range', () => {
    for (const sent of [
      ...[{ status: [] }, { status: 1 }, { status: ['moving', 1] }, { status: {} }, { status: ['x'] }],
      ...[{ group: [] }, { group: true }, { group: [''] }, { group: Array(21).fill('a') }],
      ...[{ max_age_seconds: '60' }, { max_age_seconds: 0 }, { max_age_seconds: [] }],
    ]) {
      const filter = read(sent);
      assert.ok(!filter.ok, JSON.stringify(sent));
      assert.equal(filter.error.status, 400);
    }
  });
});
