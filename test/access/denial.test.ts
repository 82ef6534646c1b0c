import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { denialOf } from '../../src/access/authorizer.ts';
import { type CidrSet, parseAllowlist, parseIpAddress } from '../../src/access/ipAddress.ts';
import type { KeyState } from '../../src/access/keyring.memory.ts';

function allow(...entries: string[]): CidrSet | null {
  const parsed = parseAllowlist(entries);
  assert.ok(parsed.ok);
  return parsed.value;
}

const KEY: KeyState = {
  id: 7,
  accountId: 3,
  worldIds: [1, 2],
  scopes: 0,
  allowlist: allow(),
  revoked: false,
  ownerActive: true,
  historyDays: 180,
};
const HOME = parseIpAddress('203.0.113.9');
assert.ok(HOME);
const INSIDE = { address: HOME, certain: true };
const LISTED = allow('203.0.113.9');
const FOREIGN = allow('198.51.100.1');

describe('a known key', () => {
  test('passes from anywhere when it is active, its owner too, and it has no allowlist', () => {
    assert.equal(denialOf(KEY, INSIDE), null);
    assert.equal(denialOf(KEY, { address: HOME, certain: false }), null);
  });

  test('passes from an address on its allowlist', () => {
    assert.equal(denialOf({ ...KEY, allowlist: LISTED }, INSIDE), null);
  });

  test('is blocked from elsewhere', () => {
    assert.equal(denialOf({ ...KEY, allowlist: FOREIGN }, INSIDE), 'API_KEY_IP_BLOCKED');
  });

  test('is blocked by any allowlist when the caller is not certain, even when the known address is on it', () => {
    const client = { address: HOME, certain: false };
    assert.equal(denialOf({ ...KEY, allowlist: LISTED }, client), 'API_KEY_IP_BLOCKED');
    assert.equal(denialOf({ ...KEY, allowlist: allow('0.0.0.0/0') }, client), 'API_KEY_IP_BLOCKED');
  });

  test('is refused for the first reason: revoked, then the owner, then the address', () => {
    for (const revoked of [false, true]) {
      for (const ownerActive of [false, true]) {
        for (const allowlist of [allow(), LISTED, FOREIGN]) {
          const first = revoked
            ? 'API_KEY_REVOKED'
            : !ownerActive
              ? 'API_KEY_OWNER_INACTIVE'
              : allowlist === FOREIGN
                ? 'API_KEY_IP_BLOCKED'
                : null;
          assert.equal(denialOf({ ...KEY, revoked, ownerActive, allowlist }, INSIDE), first);
        }
      }
    }
  });
});
