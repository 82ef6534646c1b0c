import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hasAny, parseScopes, SCOPES, scopeMask, scopeNames } from '../../src/access/scopes.ts';

describe('parseScopes', () => {
  test('reads every documented scope, and a mask gives the same names back', () => {
    for (const scope of SCOPES) {
      const parsed = parseScopes([scope]);
      assert.ok(parsed.ok);
      assert.deepEqual(scopeNames(parsed.value), [scope]);
    }
  });

  test('reads "all" as all nine', () => {
    const parsed = parseScopes('all');
    assert.ok(parsed.ok);
    assert.deepEqual(scopeNames(parsed.value), [...SCOPES]);
    assert.equal(SCOPES.length, 9);
  });

  test('does not mind repetition and order, and no scope at all is a mask too', () => {
    assert.deepEqual(parseScopes(['write_areas', 'read_areas', 'write_areas']), {
      ok: true,
      value: scopeMask('read_areas', 'write_areas'),
    });
    assert.deepEqual(parseScopes([]), { ok: true, value: 0 });
  });

  test('names everything that is no scope, in its order', () => {
    const names = ['read_areas', 'READ_AREAS', 'all', '', 'toString'];
    assert.deepEqual(parseScopes(names), { ok: false, error: ['READ_AREAS', 'all', '', 'toString'] });
  });
});

test('hasAny opens with any one of the required scopes, and with none when none is required', () => {
  const mask = scopeMask('read_locations', 'manage_webhooks');
  assert.equal(hasAny(mask, scopeMask('read_devices', 'read_locations')), true);
  assert.equal(hasAny(mask, scopeMask('manage_webhooks')), true);
  assert.equal(hasAny(mask, scopeMask('read_devices', 'read_events')), false);
  assert.equal(hasAny(0, scopeMask(...SCOPES)), false);
  assert.equal(hasAny(mask, 0), false);
});
