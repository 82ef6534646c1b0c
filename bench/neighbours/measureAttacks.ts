import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from '../worker.ts';
import type { AttackerQuestion, AttackerReply } from '../workers/neighbourAttacker.ts';
import type { VictimQuestion, VictimReport } from '../workers/neighbourVictim.ts';
import type { Attack, AttackedPod, AttackSetup } from './attack.ts';
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
  victim: Worker<VictimQuestion, VictimReport>,
  attackers: readonly Worker<AttackerQuestion, AttackerReply>[],
  { worker, apiUrl, ingestUrl, databaseUrl }: AttackedPod,
  customer: Victim,
  prepared: readonly { readonly attack: Attack; readonly setup: AttackSetup }[],
  { calmMs, duringMs, limitMs }: Times,
): Promise<AttackResult> {
  const ended = new AbortController();
  const memory = watchMemory(worker.process.pid ?? 0, ended.signal);
  const disk = probeDisk(ended.signal);
  const places = { apiUrl, ingestUrl };
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
    const attacks = reports.filter((report) => report !== undefined);
    return { name, calm, during, diskMs: disk.take(), attacks };
  } finally {
    ended.abort();
    await Promise.all([disk.ended, memory.ended]);
  }
}

const EVERY_MS = 50;
const PAGE_BYTES = 8_192;

/**
 * Writes a page again and again to the disk on which the Postgres of the bench lies: what a commit waits for anyway.
 * `take`: the longest write in milliseconds since the last call.
 */
function probeDisk(stopped: AbortSignal) {
  let worstMs = 0;
  const write = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fleet-disk-'));
    const file = await open(join(folder, 'page'), 'w');
    const page = Buffer.alloc(PAGE_BYTES);
    try {
      while (!stopped.aborted) {
        const startMs = performance.now();
        await file.write(page, 0, PAGE_BYTES, 0);
        await file.datasync();
        worstMs = Math.max(worstMs, performance.now() - startMs);
        await sleep(EVERY_MS);
      }
    } finally {
      await file.close();
      await rm(folder, { recursive: true });
    }
  };
  const take = (): number => {
    const taken = worstMs;
    worstMs = 0;
    return taken;
  };
  return { take, ended: write() };
}

/** Samples the memory of a process and its descendants. `take`: the largest value in MB since the last call. */
function watchMemory(pid: number, stopped: AbortSignal) {
  let largestMb = 0;
  const watch = async () => {
    while (!stopped.aborted) {
      largestMb = Math.max(largestMb, await residentMb(pid));
      await sleep(EVERY_MS);
    }
  };
  const take = async (): Promise<number> => {
    const taken = Math.max(largestMb, await residentMb(pid));
    largestMb = 0;
    return taken;
  };
  return { take, ended: watch() };
}

/** Of a process and its descendants, from /proc. 0 where there is no /proc. */
async function residentMb(pid: number): Promise<number> {
  const status = await textOf(`/proc/${pid}/status`);
  const own = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1_024;
  const children = (await textOf(`/proc/${pid}/task/${pid}/children`)).split(' ').filter(Boolean);
  const theirs = await Promise.all(children.map((child) => residentMb(Number(child))));
  return theirs.reduce((sum, mb) => sum + mb, own);
}

/** Empty when the process has ended, or the system has no /proc. */
const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
