import { openSql } from '../../src/store/sql.ts';
import { databaseUrl as databaseNamed } from '../../test/support/cluster.ts';
import { openWorker } from '../worker.ts';
import type { AttackerQuestion, AttackerReply } from '../workers/neighbourAttacker.ts';
import type { VictimQuestion, VictimReport } from '../workers/neighbourVictim.ts';
import type { Attack, Scale } from './attack.ts';
import {
  type AttackResult,
  type Callers,
  endStreetPod,
  measureAttacks,
  startStreetPod,
  type Times,
} from './measureAttacks.ts';
import { seedAttack, seedVictim, trustReceivers, type Victim } from './street.ts';

export interface NeighbourhoodOptions {
  /** Of an empty database. */
  readonly databaseUrl: string;
  readonly scale: Scale;
  readonly times: Times;
  /** How many attacks there may be at once. */
  readonly attackers: number;
}

/** A customer in a database, and the processes that call a pod: the customer's, and one for each attack at a time. */
export class Neighbourhood {
  readonly #options: NeighbourhoodOptions;
  readonly #callers: Callers;
  readonly #victim: Victim;
  readonly #forget: () => Promise<void>;

  private constructor(
    options: NeighbourhoodOptions,
    callers: Callers,
    victim: Victim,
    forget: () => Promise<void>,
  ) {
    this.#options = options;
    this.#callers = callers;
    this.#victim = victim;
    this.#forget = forget;
  }

  static async open(options: NeighbourhoodOptions): Promise<Neighbourhood> {
    const { certificate, forget } = await trustReceivers();
    const victim = openWorker<VictimQuestion, VictimReport>(
      new URL('../workers/neighbourVictim.ts', import.meta.url),
    );
    const attackers = Array.from({ length: options.attackers }, () =>
      openWorker<AttackerQuestion, AttackerReply>(
        new URL('../workers/neighbourAttacker.ts', import.meta.url),
      ),
    );
    await victim.ask({ kind: 'listen', certificate });
    const urls: string[] = [];
    for (const attacker of attackers) urls.push((await attacker.ask({ kind: 'listen', certificate })).url);
    const household = await seedVictim(options.databaseUrl, options.scale);
    return new Neighbourhood(options, { victim, attackers, urls }, household, forget);
  }

  /** One after the other on one pod and in one database. */
  async together(attacks: readonly Attack[]): Promise<AttackResult[]> {
    const { databaseUrl, times } = this.#options;
    const staged = [];
    for (const attack of attacks) staged.push(await this.#stage(databaseUrl, attack, 0));
    const pod = await startStreetPod(databaseUrl);
    try {
      const results: AttackResult[] = [];
      for (const one of staged)
        results.push(await measureAttacks(this.#callers, pod, this.#victim, [one], times));
      return results;
    } finally {
      await endStreetPod(pod);
    }
  }

  /** All at once, on a pod and a copy of the database of their own: nothing is found that others have left behind. */
  async apart(attacks: readonly Attack[]): Promise<AttackResult> {
    return withCopy(this.#options.databaseUrl, async (databaseUrl) => {
      const staged = [];
      for (const [n, attack] of attacks.entries()) staged.push(await this.#stage(databaseUrl, attack, n));
      const pod = await startStreetPod(databaseUrl);
      try {
        return await measureAttacks(this.#callers, pod, this.#victim, staged, this.#options.times);
      } finally {
        await endStreetPod(pod);
      }
    });
  }

  async close(): Promise<void> {
    const { victim, attackers } = this.#callers;
    await Promise.all([victim, ...attackers].map((worker) => worker.close()));
    await this.#forget();
  }

  async #stage(databaseUrl: string, attack: Attack, attacker: number) {
    const url = this.#callers.urls[attacker];
    if (url === undefined) throw new Error(`there is no attacker ${attacker}`);
    return { attack, stage: await seedAttack(databaseUrl, attack, this.#options.scale, url) };
  }
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
