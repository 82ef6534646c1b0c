import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Histogram, Registry } from 'prom-client';
import { RequestDurations } from '../../src/http/exchange.ts';

const BOUNDS_SECONDS = [0.001, 0.01, 0.1, 1];

const observation = fc.tuple(
  fc.constantFrom('/api/v3/devices', '/api/v2/devices', 'other'),
  fc.constantFrom('GET', 'POST'),
  fc.constantFrom(200, 404),
  fc.oneof(fc.constantFrom(...BOUNDS_SECONDS, 0, 5), fc.double({ min: 0, max: 2, noNaN: true })),
);

test("the exposition is that of prom-client's own histogram", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(observation, { maxLength: 40 }), async (observations) => {
      const own = new RequestDurations(BOUNDS_SECONDS);
      const [registry, oracle] = [new Registry(), new Registry()];
      registry.registerMetric(own as unknown as Histogram);
      const histogram = new Histogram({
        name: own.name,
        help: own.help,
        labelNames: ['route', 'method', 'status'],
        buckets: BOUNDS_SECONDS,
        registers: [oracle],
      });
      for (const [route, method, status, seconds] of observations) {
        own.observe(route, method, status, seconds);
        histogram.labels(route, method, String(status)).observe(seconds);
      }
      const sorted = async (of: Registry) => (await of.metrics()).split('\n').sort();
      assert.deepEqual(await sorted(registry), await sorted(oracle));
    }),
  );
});
