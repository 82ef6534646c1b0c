import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Latencies } from '../../bench/measure/latencies.ts';
import { metricsOf, noiseOf } from '../../bench/measure/noise.ts';
import { runs } from '../support/torture.ts';

const NS_MS = 1e-6;
const durations = fc.array(fc.double({ min: 0.0002, max: 90_000, noNaN: true }), {
  minLength: 1,
  maxLength: 300,
});

describe('Latencies', () => {
  test('a percentile is exact or up to 1 % and 1 ns too high', () => {
    fc.assert(
      fc.property(durations, fc.double({ min: 0.01, max: 1, noNaN: true }), (values, share) => {
        const latencies = new Latencies();
        for (const value of values) latencies.add(value);
        const sorted = values.toSorted((a, b) => a - b);
        const exact = sorted[Math.ceil(share * sorted.length) - 1] as number;
        const found = latencies.percentile(share);
        assert.ok(found >= exact * 0.999_999 && found <= exact * 1.01 + NS_MS, `${found} for ${exact}`);
      }),
      { seed: 7, numRuns: runs(50) },
    );
  });

  test('merging what was encoded gives the same as adding all durations', () => {
    fc.assert(
      fc.property(durations, durations, (a, b) => {
        const [first, second, all] = [new Latencies(), new Latencies(), new Latencies()];
        for (const value of a) first.add(value);
        for (const value of b) second.add(value);
        for (const value of [...a, ...b]) all.add(value);
        const merged = new Latencies(first.encoded());
        merged.merge(second.encoded());
        assert.deepEqual(merged.percentiles(), all.percentiles());
      }),
      { seed: 7, numRuns: 50 },
    );
  });

  test('durations beyond the range are counted, and no durations give NaN', () => {
    const latencies = new Latencies();
    assert.ok(Number.isNaN(latencies.percentile(0.5)));
    latencies.add(0);
    latencies.add(1e9);
    assert.ok(latencies.percentile(0.5) <= 0.0001);
    assert.ok(latencies.percentile(1) >= 100_000);
  });
});

describe('A/A noise', () => {
  test('is the largest step between two rounds of the same, as a share, up or down', () => {
    assert.equal(noiseOf([10, 10, 10]), 0);
    assert.ok(Math.abs(noiseOf([10, 11, 11]) - 0.1) < 1e-9);
    assert.ok(Math.abs(noiseOf([11, 10, 10.5]) - 0.1) < 1e-9);
    assert.ok(Number.isNaN(noiseOf([10])));
  });

  test('stands beside the median of the rounds', () => {
    const { metrics, noise } = metricsOf({ ratio: [0.8, 1.6, 1] });
    assert.equal(metrics['ratio'], 1);
    assert.ok(Math.abs((noise['ratio'] ?? 0) - 1) < 1e-9);
  });
});
