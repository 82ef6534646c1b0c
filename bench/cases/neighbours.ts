import { openSql } from '../../src/store/sql.ts';
import { databaseUrl as databaseNamed } from '../../test/support/cluster.ts';
import type { BenchCase, CaseContext, CaseOutcome } from '../benchCase.ts';
import type { Attack } from '../neighbours/attack.ts';
import { ATTACKS } from '../neighbours/attacks.ts';
import {
  type AttackResult,
  type Callers,
  endStreetPod,
  measureAttack,
  startStreetPod,
  type Times,
} from '../neighbours/measureAttack.ts';
import { seedAttack, seedVictim, trustReceivers, type Victim } from '../neighbours/street.ts';
import { summarize } from '../neighbours/summary.ts';
import { openWorker } from '../worker.ts';

const SMOKE_TIMES: Times = { calmMs: 60, duringMs: 60, limitMs: 240 };

export const bench: BenchCase = {
  about: 'what one customer notices of the worst that another may do',
  run: async (context) => {
    const { certificate, forget } = await trustReceivers();
    const callers: Callers = {
      victim: openWorker(new URL('../workers/neighbourVictim.ts', import.meta.url)),
      attacker: openWorker(new URL('../workers/neighbourAttacker.ts', import.meta.url)),
    };
    try {
      await callers.victim.ask({ kind: 'listen', certificate });
      const { url } = await callers.attacker.ask({ kind: 'listen', certificate });
      const victim = await seedVictim(context.databaseUrl, context.smoke ? 'smoke' : 'full');
      const results = await (context.smoke ? runTogether : runApart)(context, callers, victim, url);
      return outcome(results);
    } finally {
      await Promise.all([callers.victim.close(), callers.attacker.close()]);
      await forget();
    }
  },
};

/** All on one pod and one database, one after the other: only that they work. */
async function runTogether(
  { databaseUrl }: CaseContext,
  callers: Callers,
  victim: Victim,
  receiverUrl: string,
): Promise<AttackResult[]> {
  const stages = [];
  for (const attack of ATTACKS) {
    stages.push({ attack, stage: await seedAttack(databaseUrl, attack, 'smoke', receiverUrl) });
  }
  const pod = await startStreetPod(databaseUrl);
  try {
    const results: AttackResult[] = [];
    for (const { attack, stage } of stages) {
      results.push(await measureAttack(callers, pod, victim, attack, stage, SMOKE_TIMES));
    }
    return results;
  } finally {
    await endStreetPod(pod);
  }
}

/** Each on a pod and a copy of the database of its own: none finds what another has left behind. */
async function runApart(
  context: CaseContext,
  callers: Callers,
  victim: Victim,
  receiverUrl: string,
): Promise<AttackResult[]> {
  const times = {
    calmMs: context.seconds * 333,
    duringMs: context.seconds * 1_000,
    limitMs: context.seconds * 2_000,
  };
  const results: AttackResult[] = [];
  for (const attack of chosen()) {
    const result = await withCopy(context.databaseUrl, async (databaseUrl) => {
      const stage = await seedAttack(databaseUrl, attack, 'full', receiverUrl);
      const pod = await startStreetPod(databaseUrl);
      try {
        return await measureAttack(callers, pod, victim, attack, stage, times);
      } finally {
        await endStreetPod(pod);
      }
    });
    results.push(result);
    context.say(summarize([result]).notes.join('; '));
  }
  return results;
}

/** FLEET_BENCH_ATTACKS names a part of them, by words of their names separated by commas. */
function chosen(): readonly Attack[] {
  const words = (process.env['FLEET_BENCH_ATTACKS'] ?? '').split(',').filter(Boolean);
  return words.length === 0
    ? ATTACKS
    : ATTACKS.filter(({ name }) => words.some((word) => name.includes(word)));
}

async function withCopy<T>(databaseUrl: string, work: (url: string) => Promise<T>): Promise<T> {
  const name = new URL(databaseUrl).pathname.slice(1);
  const copy = `${name}_copy`;
  const postgresUrl = databaseNamed(databaseUrl, 'postgres');
  await tell(postgresUrl, `create database ${copy} template ${name} strategy file_copy`);
  try {
    return await work(databaseNamed(databaseUrl, copy));
  } finally {
    await tell(postgresUrl, `drop database if exists ${copy} with (force)`);
  }
}

async function tell(url: string, statement: string): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'bench street' });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}

function outcome(results: readonly AttackResult[]): CaseOutcome {
  const size = `${results.length} attacks, each beside a customer that polls every 25 ms and sends 200 points a second`;
  return { kind: 'measured', size, ...summarize(results) };
}
