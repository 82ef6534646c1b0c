import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isSampled, SAMPLERS, samplingRule, TokenBuckets } from '../../src/traces/sampling.ts';

const parent = (isParentSampled: boolean, randomPart = '8'.repeat(13)) => ({
  traceId: `${'f'.repeat(19)}${randomPart}`,
  spanId: '1'.repeat(16),
  isSampled: isParentSampled,
});

describe('the samplers of OpenTelemetry', () => {
  test('differ in the share of traces that begin here, and in whether a caller decides about its own', () => {
    const rules = SAMPLERS.map((name) => [name, samplingRule(name, 0.01)] as const);
    assert.deepEqual(Object.fromEntries(rules), {
      always_on: { ratio: 1, isParentBased: false },
      always_off: { ratio: 0, isParentBased: false },
      traceidratio: { ratio: 0.01, isParentBased: false },
      parentbased_always_on: { ratio: 1, isParentBased: true },
      parentbased_always_off: { ratio: 0, isParentBased: true },
      parentbased_traceidratio: { ratio: 0.01, isParentBased: true },
    });
  });

  test('with a parent: its flag decides, or else the random part of its trace id', () => {
    for (const ratio of [0, 1]) {
      assert.equal(isSampled({ ratio, isParentBased: true }, parent(true)), true);
      assert.equal(isSampled({ ratio, isParentBased: true }, parent(false)), false);
    }
    const half = { ratio: 0.5, isParentBased: false };
    for (const flag of [true, false]) {
      assert.equal(isSampled(half, parent(flag, `7${'f'.repeat(12)}`)), true);
      assert.equal(isSampled(half, parent(flag, `8${'0'.repeat(12)}`)), false);
      assert.equal(isSampled({ ratio: 1, isParentBased: false }, parent(flag, 'f'.repeat(13))), true);
      assert.equal(isSampled({ ratio: 0, isParentBased: false }, parent(flag, '0'.repeat(13))), false);
    }
  });
});

describe('tokens', () => {
  const limits = { perSecond: 10, burst: 10, keysMax: 3 };
  const taken = (buckets: TokenBuckets, key: string, tries: number, nowMs: number) =>
    Array.from({ length: tries }, () => buckets.take(key, nowMs)).filter(Boolean).length;

  test('come back with time, up to the burst, and one who has used up theirs takes none of another', () => {
    const buckets = new TokenBuckets(limits);
    assert.equal(taken(buckets, 'hostile', 1_000, 0), 10);
    assert.equal(taken(buckets, 'victim', 10, 0), 10);
    assert.equal(taken(buckets, 'hostile', 1_000, 99), 0);
    assert.equal(taken(buckets, 'hostile', 1_000, 500), 5);
    assert.equal(taken(buckets, 'hostile', 1_000, 3_600_000), 10);
  });

  test('of however many keys take a bounded room', () => {
    const buckets = new TokenBuckets(limits);
    for (const key of ['a', 'b', 'c']) assert.equal(taken(buckets, key, 10, 0), 10);
    assert.equal(taken(buckets, 'a', 1, 0), 0);
    assert.equal(taken(buckets, 'd', 1, 0), 1, 'the fourth makes all begin anew');
    assert.equal(taken(buckets, 'a', 20, 0), 10);
  });
});
