import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { installVersion } from '../support/release.ts';
import { PROJECT } from '../support/service.ts';
import { started } from '../support/started.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { checkRecord } from './checkRecord.ts';
import { type Run, simulate } from './simulate.ts';
import type { Machines } from './site.ts';

const FIRST_SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
/** A seed that is given is repeated alone, unless there is a count as well. */
const SEEDS = Number(
  process.env['FLEET_SEEDS'] ?? (IS_TORTURE && process.env['FLEET_SEED'] === undefined ? 20 : 1),
);
const OPTIONS = IS_TORTURE
  ? { forMs: 15_000, lateWrites: 10, longBatches: 2, atOnce: 3, areCalm: false }
  : { forMs: 1_000, lateWrites: 1, longBatches: 1, atOnce: 1, areCalm: true };
const THIS_VERSION = [PROJECT];
/** A git ref: one pod begins with that version, and every other start of its process has it. */
const before = IS_TORTURE ? process.env['FLEET_UPGRADE_FROM'] : undefined;
const ends: (() => Promise<void>)[] = [];
const versionBefore =
  before === undefined ? null : await installVersion((end) => void ends.push(end), before);
const VERSIONS = [
  THIS_VERSION,
  versionBefore === null ? THIS_VERSION : [versionBefore, PROJECT],
  ...(IS_TORTURE ? [THIS_VERSION] : []),
];
/** Runs at a time, each on machines of its own: a run waits half of its time for leases, retries and silent connections. */
const SIDE_BY_SIDE = Math.min(SEEDS, IS_TORTURE ? Number(process.env['FLEET_SITES'] ?? 3) : 1);
const SHOWN = 10;

describe('the record of a site that is harmed', {
  skip: skipWithoutRedis(),
  concurrency: SIDE_BY_SIDE,
}, () => {
  const free = Array.from({ length: SIDE_BY_SIDE }, () => ({
    postgres: started(
      () => startOwnPostgres(),
      ({ end }) => end(),
    ),
    redis: started(
      () => startRedis(),
      ({ stop }) => stop(),
    ),
  }));

  after(async () => {
    for (const end of ends) await end();
  });

  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)
    test(`shows no promise broken (seed ${seed})`, async (t) => {
      const machines = free.pop() as Machines;
      t.after(() => free.push(machines));
      const run = await simulate(t, machines, { ...OPTIONS, versions: VERSIONS, seed });
      const { startedMs, harmedMs, restedMs } = run.took;
      if (IS_TORTURE)
        console.log(
          `seed ${seed}: ${run.record.calls.length} calls, ${run.record.rest.events.length} events; started in ${seconds(startedMs)}, harmed for ${seconds(harmedMs)}, at rest after ${seconds(restedMs)}`,
        );
      const violations = checkRecord(run.record);
      const kinds = new Set(run.record.calls.map(({ kind }) => kind));
      const first = violations.slice(0, SHOWN).map(({ rule, message }) => `${rule}: ${message}`);
      if (violations.length > 0)
        assert.fail(`${violations.length} violations in ${keep(run, seed)}\n${first.join('\n')}`);
      for (const kind of ['points', 'write', 'read', 'positions', 'page'] as const)
        assert.ok(kinds.has(kind), `${kind} were recorded`);
      assert.ok(run.record.rest.events.length > 0 && run.record.deliveries.length > 0, 'something happened');
    });
});

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Writes down what is needed to understand a failure, and returns where. */
function keep({ record, faults, site }: Run, seed: number): string {
  const file = join(tmpdir(), `fleet-record-${seed}.json`);
  const logs = site.pods.flatMap(({ n, logs }) => logs.map((log) => ({ pod: n, ...log })));
  writeFileSync(file, JSON.stringify({ record, faults, logs }));
  return file;
}
