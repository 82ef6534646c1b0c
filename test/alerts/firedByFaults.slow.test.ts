import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findProgram } from '../guide/programs.ts';
import { startPrometheus } from '../guide/prometheus.ts';
import { patienceMs } from '../support/patience.ts';
import { skipWithoutRedis } from '../support/redis.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { POD_FAULTS } from './podFaults.ts';
import { POINT_FAULTS } from './pointFaults.ts';
import { POSTGRES_FAULTS } from './postgresFaults.ts';
import { readRules, rulesWithMinutesOf } from './rules.ts';
import type { Fault } from './site.ts';
import { WEBHOOK_FAULTS } from './webhookFaults.ts';

// Each alert of deploy/prometheus/alerts.yml is fired by the fault that it is for: a Prometheus scrapes pods that run as
// processes of their own, and the fault is a real one. What takes minutes in the rules takes seconds here. npm run torture
// makes all of them, one after the other, and prints how long each alert took.

const FAULTS: Readonly<Record<string, Fault>> = {
  ...POD_FAULTS,
  ...POINT_FAULTS,
  ...POSTGRES_FAULTS,
  ...WEBHOOK_FAULTS,
};
/** Those that take least. */
const SHORT = ['FleetPointsWait', 'FleetRedisLost'];

/** How long a second takes on a slow machine, where a pod needs longer to answer Prometheus. */
const SECOND_MAX_MS = 3_000;

const seconds = (sinceMs: number): string => `${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`;

test('each alert has a fault that fires it', () => {
  assert.deepEqual(
    Object.keys(FAULTS).toSorted(),
    readRules()
      .map(({ alert }) => alert)
      .toSorted(),
  );
});

test('what takes a minute in the rules is all that is changed in them', () => {
  const [group] = JSON.parse(rulesWithMinutesOf(1_000)).groups;
  const find = (name: string) => group.rules.find(({ alert }: { alert: string }) => alert === name);
  const masked = (expr: string): string => expr.replaceAll(/(?<=\[|offset )\d+(?:ms|[smhd])/g, 'a while');
  for (const { alert, expr } of readRules()) assert.equal(masked(find(alert).expr), masked(expr), alert);
  assert.match(find('FleetNoPoints').expr, /\[15000ms\]\)\) == 0 and .*\[60000ms\] offset 60000ms\)\) > 0$/);
  assert.equal(find('FleetMigrationStepsWait').for, '5000ms');
  assert.equal(find('FleetPostgresLost').for, '500ms');
});

for (const [alert, { fault, minuteSeconds = 1, needsRedis = false, prepare }] of Object.entries(FAULTS)) {
  if (!IS_TORTURE && !SHORT.includes(alert)) continue;
  test(`${alert}: ${fault}`, {
    skip:
      (findProgram('prometheus') === null && 'there is no prometheus on this machine') ||
      (needsRedis && skipWithoutRedis()),
  }, async (t) => {
    const secondMs = Math.min(patienceMs(1_000), SECOND_MAX_MS);
    const minuteMs = minuteSeconds * secondMs;
    const prometheus = await startPrometheus(t, rulesWithMinutesOf(minuteMs), secondMs);
    const { cause, mend } = await prepare({ t, prometheus });
    const fires = async (): Promise<boolean> =>
      (await prometheus.firing()).some(({ alertname }) => alertname === alert);
    // Every pod was scraped before the fault, so that rates begin before it.
    await waitFor(
      async () => (await prometheus.query('up{job="fleet"} == 1'))?.length === prometheus.scraped.length,
    );
    await waitFor(async () => !(await fires()));
    const causedMs = performance.now();
    await cause();
    await waitFor(fires);
    const fired = `fired ${seconds(causedMs)} after the fault`;
    const mendedMs = performance.now();
    await mend?.();
    if (mend !== undefined) await waitFor(async () => !(await fires()));
    const rested = mend === undefined ? '' : `, rested ${seconds(mendedMs)} after its end`;
    if (IS_TORTURE) console.log(`${alert} (${fault}) ${fired}${rested}; a minute was ${minuteMs} ms`);
  });
}
