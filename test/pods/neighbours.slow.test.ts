import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Latencies } from '../../bench/measure/latencies.ts';
import type { Attack } from '../../bench/neighbours/attack.ts';
import { type AttackBench, openAttackBench } from '../../bench/neighbours/attackBench.ts';
import { ATTACKS } from '../../bench/neighbours/attacks.ts';
import type { AttackResult, Times } from '../../bench/neighbours/measureAttacks.ts';
import { limitUseOf, summarize } from '../../bench/neighbours/summary.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

// What one customer notices of another's worst. `npm run bench neighbours` measures the same attacks, and holds how long
// the answers take against budgets; here nothing depends on how fast the machine is.

const SHORT_TIMES: Times = { calmMs: 200, duringMs: 100, limitMs: 2_000 };
const TORTURE_TIMES: Times = { calmMs: 2_000, duringMs: 8_000, limitMs: 180_000 };
const SHORT_ATTACKS = 2;
const PAIRS = 8;
const SEED = Number(process.env['FLEET_SEED'] ?? 1);

async function open(t: TestContext): Promise<AttackBench> {
  const { url, drop } = await createDatabase(undefined, { empty: true });
  const neighbourhood = await openAttackBench({
    databaseUrl: url,
    scale: IS_TORTURE ? 'torture' : 'smoke',
    times: IS_TORTURE ? TORTURE_TIMES : SHORT_TIMES,
    attackers: IS_TORTURE ? 2 : 1,
  });
  t.after(async () => {
    await neighbourhood[Symbol.asyncDispose]();
    await drop();
  });
  return neighbourhood;
}

/** All attacks in an order that the seed decides. */
function shuffled(seed: number): Attack[] {
  const random = seededRandom(seed);
  return ATTACKS.map((attack) => ({ attack, rank: random() }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ attack }) => attack);
}

function check(t: TestContext, result: AttackResult): void {
  t.diagnostic(summarize([result]).notes.join());
  const { polls, points, failedPolls, failedPoints } = result.during;
  assert.deepEqual({ ...failedPolls, ...failedPoints }, {}, `${result.name}: calls of the victim failed`);
  const isAnswered = (encoded: string) => new Latencies(encoded).percentile(1) > 0;
  assert.ok(isAnswered(polls) && isAnswered(points), `${result.name}: the victim was answered`);
  assert.ok(
    limitUseOf(result).memory <= 1,
    `${result.name}: ${result.calm.rssMb} → ${result.during.rssMb} MB`,
  );
}

test('a customer is answered and its points are stored, whatever small thing another does', async (t) => {
  const neighbourhood = await open(t);
  for (const result of await neighbourhood.together(shuffled(SEED).slice(0, SHORT_ATTACKS))) check(t, result);
});

test(`each attack by itself, and pairs of them, at full size (seed ${SEED})`, {
  skip: IS_TORTURE ? false : 'npm run torture makes all attacks',
}, async (t) => {
  const neighbourhood = await open(t);
  const attacks = shuffled(SEED);
  for (const attack of attacks) {
    await t.test(attack.name, async (t) => check(t, await neighbourhood.apart([attack])));
  }
  for (let n = 0; n < PAIRS; n++) {
    const pair = attacks.slice(2 * n, 2 * n + 2);
    const title = pair.map(({ name }) => name).join(' and ');
    await t.test(title, async (t) => check(t, await neighbourhood.apart(pair)));
  }
});
