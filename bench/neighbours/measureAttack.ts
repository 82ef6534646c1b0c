import { setTimeout as sleep } from 'node:timers/promises';
import { INGEST_TOKEN } from '../service.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { AttackerQuestion, AttackerReply } from '../workers/neighbourAttacker.ts';
import type { VictimQuestion, VictimReport } from '../workers/neighbourVictim.ts';
import type { PodQuestion, PodReply } from '../workers/webhookPod.ts';
import type { Attack, Stage } from './attack.ts';
import { PodMemory } from './podMemory.ts';
import { extraOf, type Victim } from './street.ts';

/** What the victim noticed before and during an attack, and the memory of the pod in MB, its largest. */
export interface AttackResult {
  readonly name: string;
  readonly calm: VictimReport & { readonly rssMb: number };
  readonly during: VictimReport & { readonly rssMb: number };
  readonly attack: AttackerReply;
}

/** The processes beside the pod. */
export interface Callers {
  readonly victim: Worker<VictimQuestion, VictimReport>;
  readonly attacker: Worker<AttackerQuestion, AttackerReply>;
}

export interface Times {
  readonly calmMs: number;
  /** At least so long the victim goes on beside an attack: much of it comes after its last answer. */
  readonly duringMs: number;
  /** Then what the attack still waits for is cut. */
  readonly limitMs: number;
}

/** A pod as it is deployed, behind a proxy and with its limits. */
export interface StreetPod {
  readonly worker: Worker<PodQuestion, PodReply>;
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly databaseUrl: string;
}

const VARIABLES = {
  TRUST_PROXY: '127.0.0.0/8',
  RATE_LIMIT_KEY_MINUTE: '120',
  RATE_LIMIT_KEY_HOUR: '1000',
  RATE_LIMIT_IP_MINUTE: '120',
};

export async function startStreetPod(databaseUrl: string): Promise<StreetPod> {
  const worker = openWorker<PodQuestion, PodReply>(new URL('../workers/webhookPod.ts', import.meta.url));
  try {
    const start = { kind: 'start', databaseUrl, redisUrl: null, variables: VARIABLES } as const;
    const { port, ingestPort } = await worker.ask(start);
    const [apiUrl, ingestUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${ingestPort}`];
    return { worker, apiUrl, ingestUrl, databaseUrl };
  } catch (error) {
    await worker.close();
    throw error;
  }
}

/** Ends it at once: what an attack has left behind would take its time. */
export async function endStreetPod({ worker }: StreetPod): Promise<void> {
  worker.process.kill('SIGKILL');
  await worker.close();
}

/** One attack on a pod beside the victim, who polls and sends before and meanwhile. */
export async function measureAttack(
  { victim, attacker }: Callers,
  { worker, ...pod }: StreetPod,
  household: Victim,
  attack: Attack,
  stage: Stage,
  { calmMs, duringMs, limitMs }: Times,
): Promise<AttackResult> {
  const memory = new PodMemory(worker.process.pid ?? 0);
  const places = { apiUrl: pod.apiUrl, ingestUrl: pod.ingestUrl, token: INGEST_TOKEN };
  try {
    await victim.ask({ kind: 'start', ...places, ...household, extra: extraOf(attack) });
    await sleep(calmMs / 2);
    // The first calls compile what they need.
    await victim.ask({ kind: 'mark' });
    await sleep(calmMs);
    const calm = { ...(await victim.ask({ kind: 'mark' })), rssMb: await memory.take() };
    const order = {
      kind: 'attack',
      name: attack.name,
      ...stage,
      ...places,
      databaseUrl: pod.databaseUrl,
      limitMs,
    } as const;
    const [report] = await Promise.all([attacker.ask(order), sleep(duringMs)]);
    await sleep(calmMs / 4);
    const during = { ...(await victim.ask({ kind: 'stop' })), rssMb: await memory.take() };
    return { name: attack.name, calm, during, attack: report };
  } finally {
    memory.stop();
  }
}
