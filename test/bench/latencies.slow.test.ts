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
  const isAbout = (values: readonly number[], noise: number) =>
    assert.ok(Math.abs(noiseOf(values) - noise) < 1e-9, `${noiseOf(values)}`);

  test('is how far the least and the most are from the median, as a share, of fewer than six measurements', () => {
    assert.equal(noiseOf([10, 10, 10]), 0);
    isAbout([10, 11, 11], 0.1);
    isAbout([12, 10, 11, 11, 11], 0.1);
    assert.ok(Number.isNaN(noiseOf([10])));
  });

  // Ranks of the table in Conover, Practical Nonparametric Statistics, for the median at 95 %.
  test('passes over as many on either side as an interval of 95 % does', () => {
    for (const [count, rank] of [
      [6, 1],
      [9, 2],
      [12, 3],
      [20, 6],
      [25, 8],
    ] as const) {
      const values = Array.from({ length: count }, (_, n) => 1_000 * 1.01 ** (n - (count - 1) / 2));
      const middle = (count % 2 === 1 ? 1_000 : 500 * (1.01 ** 0.5 + 1.01 ** -0.5)) / 1_000;
      const end = 1.01 ** ((count - 1) / 2 - (rank - 1));
      isAbout(values.reverse(), Math.max(end / middle, middle * end) - 1);
    }
  });

  test('stands beside the median of the rounds', () => {
    const { metrics, noise } = metricsOf({ ratio: [0.8, 1.6, 1] });
    assert.equal(metrics['ratio'], 1);
    assert.ok(Math.abs((noise['ratio'] ?? 0) - 0.6) < 1e-9);
  });
});
