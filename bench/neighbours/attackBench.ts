import { databaseUrl as databaseNamed } from '../../test/support/postgres/cluster.ts';
import type { CaseContext } from '../benchCase.ts';
import { execute } from '../setup/cluster.ts';
import { trustReceivers } from '../setup/receivers.ts';
import { openWorker } from '../worker.ts';
import type { AttackerQuestion, AttackerReply } from '../workers/neighbourAttacker.ts';
import type { VictimQuestion, VictimReport } from '../workers/neighbourVictim.ts';
import { type Attack, type Scale, startAttackedPod } from './attack.ts';
import { type AttackResult, measureAttacks, type Times } from './measureAttacks.ts';
import { seedAttack, seedVictim } from './victim.ts';

/** An attacker has a machine of its own: what it takes to read 12 MB answers is not taken from the pod and its victim. */
const ATTACKER_NICENESS = 10;
const SMOKE_TIMES: Times = { calmMs: 60, duringMs: 60, limitMs: 1_000 };
/** Long enough for every attack that ends by itself. */
const LIMIT_MS = 60_000;

/** A customer's data in a database, and the processes that call a pod: one for the customer, one for each attack. */
export interface AttackBench extends AsyncDisposable {
  /** Runs attacks one after the other, on one pod and one database. */
  together(attacks: readonly Attack[]): Promise<AttackResult[]>;
  /** Runs attacks at once, on a new pod and a copy of the database, so that earlier attacks leave no trace. */
  apart(attacks: readonly Attack[]): Promise<AttackResult>;
}

export function attackBenchFor(
  { databaseUrl, smoke, seconds }: CaseContext,
  calmMs: number,
): Promise<AttackBench> {
  const times = smoke ? SMOKE_TIMES : { calmMs, duringMs: seconds * 1_000, limitMs: LIMIT_MS };
  return openAttackBench({ databaseUrl, scale: smoke ? 'smoke' : 'full', times, attackers: 1 });
}

/** In an empty database. As many attacks may run at once as there are attackers. */
export async function openAttackBench(options: {
  readonly databaseUrl: string;
  readonly scale: Scale;
  readonly times: Times;
  readonly attackers: number;
}): Promise<AttackBench> {
  const { scale, times } = options;
  const trusted = await trustReceivers();
  const { certificate } = trusted;
  const victim = openWorker<VictimQuestion, VictimReport>('neighbourVictim');
  const attackers = Array.from({ length: options.attackers }, () =>
    openWorker<AttackerQuestion, AttackerReply>('neighbourAttacker', ATTACKER_NICENESS),
  );
  await victim.ask({ kind: 'listen', certificate });
  const urls: string[] = [];
  for (const attacker of attackers) urls.push((await attacker.ask({ kind: 'listen', certificate })).url);
  const customer = await seedVictim(options.databaseUrl, scale);

  /** `n`: which attacker makes it. */
  const prepare = async (databaseUrl: string, attack: Attack, n: number) => {
    const url = urls[n];
    if (url === undefined) throw new Error(`there is no attacker ${n}`);
    return { attack, setup: await seedAttack(databaseUrl, attack, scale, url) };
  };

  return {
    together: async (attacks) => {
      const { databaseUrl } = options;
      const prepared = [];
      for (const attack of attacks) prepared.push(await prepare(databaseUrl, attack, 0));
      await writeOut(databaseUrl);
      await using pod = await startAttackedPod(databaseUrl);
      const results: AttackResult[] = [];
      for (const one of prepared)
        results.push(await measureAttacks(victim, attackers, pod, customer, [one], times));
      return results;
    },
    apart: (attacks) =>
      withCopy(options.databaseUrl, async (databaseUrl) => {
        const prepared = [];
        for (const [n, attack] of attacks.entries()) prepared.push(await prepare(databaseUrl, attack, n));
        await writeOut(databaseUrl);
        let result: AttackResult;
        {
          await using pod = await startAttackedPod(databaseUrl);
          result = await measureAttacks(victim, attackers, pod, customer, prepared, times);
        }
        if (!attacks.some(({ stays }) => stays)) return result;
        await using restarted = await startAttackedPod(databaseUrl);
        const { rssMb } = await restarted.worker.ask({ kind: 'usage' });
        return { ...result, restedMb: Math.max(rssMb, result.calm.rssMb) };
      }),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([victim, ...attackers].map((worker) => worker[Symbol.asyncDispose]()));
      await trusted[Symbol.asyncDispose]();
    },
  };
}

async function withCopy<T>(databaseUrl: string, work: (url: string) => Promise<T>): Promise<T> {
  const name = new URL(databaseUrl).pathname.slice(1);
  const copy = `${name}_copy`;
  const postgresUrl = databaseNamed(databaseUrl, 'postgres');
  await execute(postgresUrl, `create database ${copy} template ${name} strategy file_copy`);
  try {
    return await work(databaseNamed(databaseUrl, copy));
  } finally {
    await execute(postgresUrl, `drop database if exists ${copy} with (force)`);
  }
}

/** Else the checkpoint of what was seeded comes in the middle of the measurement, and commits wait for the disk. */
const writeOut = (databaseUrl: string): Promise<void> => execute(databaseUrl, 'checkpoint');
