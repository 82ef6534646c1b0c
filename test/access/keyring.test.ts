import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Keyring } from '../../src/access/authorizer.ts';
import type { KeyState } from '../../src/access/credentials.ts';
import { parseAllowlist } from '../../src/access/ipAddress.ts';

const allowlist = parseAllowlist([]);
assert.ok(allowlist.ok);

const key = (id: number, accountId = 1): KeyState => ({
  id,
  accountId,
  worldIds: [1],
  scopes: 1,
  allowlist: allowlist.value,
  revoked: false,
  ownerActive: true,
  historyDays: 180,
});
const ids = (...some: number[]): ReadonlySet<number> => new Set(some);

describe('the keyring', () => {
  test('drops the given keys and all keys of the given accounts, and no other', () => {
    const ring = new Keyring();
    for (const [fingerprint, state] of [
      ['a', key(1, 10)],
      ['b', key(2, 10)],
      ['c', key(3, 20)],
      ['d', key(4, 30)],
    ] as const) {
      ring.put(fingerprint, state, ring.epoch);
    }
    ring.dropKeys(ids(4), ids(10));
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map((fingerprint) => ring.get(fingerprint)?.id),
      [undefined, undefined, 3, undefined],
    );
  });

  test('does not cache a key that was read before a change, even one that it did not hold', () => {
    for (const change of [
      (ring: Keyring) => ring.dropKeys(ids(1), ids()),
      (ring: Keyring) => ring.dropKeys(ids(), ids(99)),
      (ring: Keyring) => ring.clear(),
    ]) {
      const ring = new Keyring();
      const epoch = ring.epoch;
      change(ring);
      assert.equal(ring.put('a', key(1), epoch), false);
      assert.equal(ring.get('a'), undefined);
      assert.equal(ring.put('a', key(1), ring.epoch), true);
    }
  });

  test('an empty change does not stop a load from being cached', () => {
    const ring = new Keyring();
    const epoch = ring.epoch;
    ring.dropKeys(ids(), ids());
    assert.equal(ring.put('a', key(1), epoch), true);
  });

  test('holds 200 000 keys at most and drops the oldest first', () => {
    const ring = new Keyring();
    const state = key(1);
    for (let n = 0; n < 200_010; n++) ring.put(`k${n}`, state, ring.epoch);
    assert.equal(ring.size, 200_000);
    assert.deepEqual([ring.get('k9'), ring.get('k10')?.id, ring.get('k200009')?.id], [undefined, 1, 1]);
  });
});
