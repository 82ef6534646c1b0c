import { setTimeout as sleep } from 'node:timers/promises';
import { INGEST_TOKEN } from '../setup/service.ts';
import type { Worker } from '../worker.ts';
import type { AttackerQuestion, AttackerReply } from '../workers/neighbourAttacker.ts';
import type { VictimQuestion, VictimReport } from '../workers/neighbourVictim.ts';
import type { Attack, AttackSetup } from './attack.ts';
import type { AttackedPod } from './attackedPod.ts';
import { DiskProbe } from './diskProbe.ts';
import { PodMemory } from './podMemory.ts';
import { extraOf, type Victim } from './victim.ts';

/** What the victim measured before and during one or more attacks, and the largest memory of the pod in MB. */
export interface AttackResult {
  readonly name: string;
  readonly calm: VictimReport & { readonly rssMb: number };
  readonly during: VictimReport & { readonly rssMb: number };
  /** What a pod holds in MB that has just started on what an attack leaves (Attack.stays). */
  readonly restedMb?: number;
  /** The longest write to the disk beside the attacks, by a process that does nothing else. */
  readonly diskMs: number;
  readonly attacks: readonly AttackerReply[];
}

/** The processes that call the pod. */
export interface Callers {
  readonly victim: Worker<VictimQuestion, VictimReport>;
  /** Each runs one attack at a time. */
  readonly attackers: readonly Worker<AttackerQuestion, AttackerReply>[];
  /** Where the receiver of each listens. */
  readonly urls: readonly string[];
}

export interface Times {
  readonly calmMs: number;
  /**
   * The victim goes on for at least this long during an attack, since effects may come after its last answer. An
   * attack that does not end by itself is stopped then.
   */
  readonly duringMs: number;
  /** Calls that any other attack still waits for are aborted then. */
  readonly limitMs: number;
}

/** Runs attacks on a pod, all at once. The victim polls and sends points before and during them. */
export async function measureAttacks(
  { victim, attackers }: Callers,
  { worker, databaseUrl, ...pod }: AttackedPod,
  customer: Victim,
  prepared: readonly { readonly attack: Attack; readonly setup: AttackSetup }[],
  { calmMs, duringMs, limitMs }: Times,
): Promise<AttackResult> {
  const memory = new PodMemory(worker.process.pid ?? 0);
  const disk = new DiskProbe();
  const places = { ...pod, token: INGEST_TOKEN };
  try {
    const asking = prepared.find(({ attack }) => attack.asks !== undefined);
    const extra = asking === undefined ? null : extraOf(asking.attack);
    await victim.ask({ kind: 'start', ...places, ...customer, extra });
    await sleep(calmMs / 2);
    // The first calls include compilation.
    await victim.ask({ kind: 'mark' });
    await memory.take();
    await sleep(calmMs);
    const calm = { ...(await victim.ask({ kind: 'mark' })), rssMb: await memory.take() };
    disk.take();
    const running = prepared.map(({ attack, setup }, n) =>
      attackers[n]?.ask({
        kind: 'attack',
        name: attack.name,
        ...setup,
        ...places,
        databaseUrl,
        limitMs: attack.lasts === true ? duringMs : limitMs,
      }),
    );
    const [reports] = await Promise.all([Promise.all(running), sleep(duringMs)]);
    await sleep(calmMs / 4);
    const during = { ...(await victim.ask({ kind: 'stop' })), rssMb: await memory.take() };
    const name = prepared.map(({ attack }) => attack.name).join(' and ');
    return {
      name,
      calm,
      during,
      diskMs: disk.take(),
      attacks: reports.filter((report) => report !== undefined),
    };
  } finally {
    memory.stop();
    await disk.stop();
  }
}
