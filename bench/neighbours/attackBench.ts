import { openSql } from '../../src/postgres/sql.ts';
import { databaseUrl as databaseNamed } from '../../test/support/postgres/cluster.ts';
import { openWorker } from '../worker.ts';
import type { AttackerQuestion, AttackerReply } from '../workers/neighbourAttacker.ts';
import type { VictimQuestion, VictimReport } from '../workers/neighbourVictim.ts';
import { type Attack, endAttackedPod, type Scale, startAttackedPod } from './attack.ts';
import { type AttackResult, type Callers, measureAttacks, type Times } from './measureAttacks.ts';
import { seedAttack, seedVictim, trustReceivers, type Victim } from './victim.ts';

/** An attacker has a machine of its own: what it takes to read 12 MB answers is not taken from the pod and its victim. */
const ATTACKER_NICENESS = 10;

export interface AttackBenchOptions {
  /** Of an empty database. */
  readonly databaseUrl: string;
  readonly scale: Scale;
  readonly times: Times;
  /** How many attacks may run at once. */
  readonly attackers: number;
}

/** A customer's data in a database, and the processes that call a pod: one for the customer, one for each attack. */
export class AttackBench {
  readonly #options: AttackBenchOptions;
  readonly #callers: Callers;
  readonly #victim: Victim;
  readonly #forget: () => Promise<void>;

  private constructor(
    options: AttackBenchOptions,
    callers: Callers,
    victim: Victim,
    forget: () => Promise<void>,
  ) {
    this.#options = options;
    this.#callers = callers;
    this.#victim = victim;
    this.#forget = forget;
  }

  static async open(options: AttackBenchOptions): Promise<AttackBench> {
    const { certificate, forget } = await trustReceivers();
    const victim = openWorker<VictimQuestion, VictimReport>(
      new URL('../workers/neighbourVictim.ts', import.meta.url),
    );
    const attackers = Array.from({ length: options.attackers }, () =>
      openWorker<AttackerQuestion, AttackerReply>(
        new URL('../workers/neighbourAttacker.ts', import.meta.url),
        ATTACKER_NICENESS,
      ),
    );
    await victim.ask({ kind: 'listen', certificate });
    const urls: string[] = [];
    for (const attacker of attackers) urls.push((await attacker.ask({ kind: 'listen', certificate })).url);
    const customer = await seedVictim(options.databaseUrl, options.scale);
    return new AttackBench(options, { victim, attackers, urls }, customer, forget);
  }

  /** Runs attacks one after the other, on one pod and one database. */
  async together(attacks: readonly Attack[]): Promise<AttackResult[]> {
    const { databaseUrl, times } = this.#options;
    const prepared = [];
    for (const attack of attacks) prepared.push(await this.#prepare(databaseUrl, attack, 0));
    await writeOut(databaseUrl);
    const pod = await startAttackedPod(databaseUrl);
    try {
      const results: AttackResult[] = [];
      for (const one of prepared)
        results.push(await measureAttacks(this.#callers, pod, this.#victim, [one], times));
      return results;
    } finally {
      await endAttackedPod(pod);
    }
  }

  /** Runs attacks at once, on a new pod and a copy of the database, so that earlier attacks leave no trace. */
  async apart(attacks: readonly Attack[]): Promise<AttackResult> {
    return withCopy(this.#options.databaseUrl, async (databaseUrl) => {
      const prepared = [];
      for (const [n, attack] of attacks.entries()) prepared.push(await this.#prepare(databaseUrl, attack, n));
      await writeOut(databaseUrl);
      const pod = await startAttackedPod(databaseUrl);
      let result: AttackResult;
      try {
        result = await measureAttacks(this.#callers, pod, this.#victim, prepared, this.#options.times);
      } finally {
        await endAttackedPod(pod);
      }
      if (!attacks.some(({ stays }) => stays)) return result;
      const restedMb = await memoryOnceStarted(databaseUrl);
      return { ...result, restedMb: Math.max(restedMb, result.calm.rssMb) };
    });
  }

  async close(): Promise<void> {
    const { victim, attackers } = this.#callers;
    await Promise.all([victim, ...attackers].map((worker) => worker.close()));
    await this.#forget();
  }

  async #prepare(databaseUrl: string, attack: Attack, attacker: number) {
    const url = this.#callers.urls[attacker];
    if (url === undefined) throw new Error(`there is no attacker ${attacker}`);
    return { attack, setup: await seedAttack(databaseUrl, attack, this.#options.scale, url) };
  }
}

/** What a pod holds in MB that has just been started. */
async function memoryOnceStarted(databaseUrl: string): Promise<number> {
  const pod = await startAttackedPod(databaseUrl);
  try {
    return (await pod.worker.ask({ kind: 'usage' })).rssMb;
  } finally {
    await endAttackedPod(pod);
  }
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
function writeOut(databaseUrl: string): Promise<void> {
  return execute(databaseUrl, 'checkpoint');
}

async function execute(url: string, statement: string): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'bench neighbours' });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}
