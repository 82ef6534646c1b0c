import { setTimeout as sleep } from 'node:timers/promises';
import { INGEST_TOKEN } from '../service.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { AttackerQuestion, AttackerReply } from '../workers/neighbourAttacker.ts';
import type { VictimQuestion, VictimReport } from '../workers/neighbourVictim.ts';
import type { PodQuestion, PodReply } from '../workers/webhookPod.ts';
import type { Attack, Stage } from './attack.ts';
import { PodMemory } from './podMemory.ts';
import { extraOf, type Victim } from './street.ts';

/** What the victim noticed before and during an attack (or several at once), and the memory of the pod in MB, its largest. */
export interface AttackResult {
  readonly name: string;
  readonly calm: VictimReport & { readonly rssMb: number };
  readonly during: VictimReport & { readonly rssMb: number };
  readonly attacks: readonly AttackerReply[];
}

/** The processes beside the pod. */
export interface Callers {
  readonly victim: Worker<VictimQuestion, VictimReport>;
  /** Each makes one attack at a time. */
  readonly attackers: readonly Worker<AttackerQuestion, AttackerReply>[];
  /** Where the receiver of each listens. */
  readonly urls: readonly string[];
}

export interface Times {
  readonly calmMs: number;
  /**
   * At least so long the victim goes on beside an attack: much of it comes after its last answer. An attack that goes
   * on for ever is cut then.
   */
  readonly duringMs: number;
  /** Then what any other attack still waits for is cut. */
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

/** Attacks on a pod, all at once, beside the victim, who polls and sends before and meanwhile. */
export async function measureAttacks(
  { victim, attackers }: Callers,
  { worker, databaseUrl, ...pod }: StreetPod,
  household: Victim,
  staged: readonly { readonly attack: Attack; readonly stage: Stage }[],
  { calmMs, duringMs, limitMs }: Times,
): Promise<AttackResult> {
  const memory = new PodMemory(worker.process.pid ?? 0);
  const places = { ...pod, token: INGEST_TOKEN };
  try {
    const asking = staged.find(({ attack }) => attack.asks !== undefined);
    const extra = asking === undefined ? null : extraOf(asking.attack);
    await victim.ask({ kind: 'start', ...places, ...household, extra });
    await sleep(calmMs / 2);
    // The first calls compile what they need.
    await victim.ask({ kind: 'mark' });
    await memory.take();
    await sleep(calmMs);
    const calm = { ...(await victim.ask({ kind: 'mark' })), rssMb: await memory.take() };
    const over = staged.map(({ attack, stage }, n) =>
      attackers[n]?.ask({
        kind: 'attack',
        name: attack.name,
        ...stage,
        ...places,
        databaseUrl,
        limitMs: attack.lasts === true ? duringMs : limitMs,
      }),
    );
    const [reports] = await Promise.all([Promise.all(over), sleep(duringMs)]);
    await sleep(calmMs / 4);
    const during = { ...(await victim.ask({ kind: 'stop' })), rssMb: await memory.take() };
    const name = staged.map(({ attack }) => attack.name).join(' and ');
    return { name, calm, during, attacks: reports.filter((report) => report !== undefined) };
  } finally {
    memory.stop();
  }
}
