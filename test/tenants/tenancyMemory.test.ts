import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Tenancy } from '../../src/ingest/watchers.memory.ts';
import { InvariantError } from '../../src/lib/errors.ts';
import { runs } from '../support/torture.ts';

describe('watchersOf', () => {
  test('an organization stays shared when its last member has left', () => {
    const tenancy = new Tenancy();
    tenancy.putAccount(10, 1, 101);
    tenancy.putAccount(10, 1, null);
    assert.deepEqual(
      [tenancy.isShared(101), tenancy.watchersOf(101), tenancy.watchersOf(1)],
      [true, [101], [1]],
    );
  });

  test('an account keeps its world', () => {
    const tenancy = new Tenancy();
    tenancy.putAccount(10, 1, 101);
    assert.throws(() => tenancy.putAccount(10, 2, 101), InvariantError);
    assert.deepEqual(tenancy.watchersOf(101), [101, 1]);
  });

  test('returns the same list object until a membership in it changes', () => {
    const tenancy = new Tenancy();
    tenancy.putAccount(10, 1, 101);
    tenancy.putAccount(20, 2, 102);
    const [before, other] = [tenancy.watchersOf(101), tenancy.watchersOf(102)];
    tenancy.putAccount(10, 1, 101);
    assert.equal(tenancy.watchersOf(101), before);
    tenancy.putAccount(30, 3, 101);
    assert.notEqual(tenancy.watchersOf(101), before);
    assert.equal(tenancy.watchersOf(102), other);
  });

  test('agrees with the table of accounts after any changes', () => {
    const account = fc.integer({ min: 1, max: 6 });
    const organization = fc.option(fc.constantFrom(101, 102));
    fc.assert(
      fc.property(fc.array(fc.tuple(account, organization), { maxLength: 30 }), (changes) => {
        const tenancy = new Tenancy();
        const table = new Map<number, number | null>();
        for (const [accountId, organizationWorldId] of changes) {
          tenancy.putAccount(accountId, accountId + 10, organizationWorldId);
          table.set(accountId + 10, organizationWorldId);
          for (const worldId of [11, 12, 13, 14, 15, 16, 101, 102]) {
            const own = table.get(worldId) ?? null;
            const members = [...table].filter(([, joined]) => joined === worldId).map(([member]) => member);
            assert.deepEqual(
              tenancy.watchersOf(worldId).toSorted((a, b) => a - b),
              [worldId, ...members, ...(own === null ? [] : [own])].sort((a, b) => a - b),
            );
          }
        }
      }),
      { seed: 3, numRuns: runs(25) },
    );
  });
});
