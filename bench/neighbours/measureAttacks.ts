import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { INGEST_TOKEN } from '../setup/service.ts';
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

const EVERY_MS = 50;
/** Of Postgres. */
const PAGE_BYTES = 8_192;

/** Writes a page again and again to the disk on which the Postgres of the bench lies: what a commit waits for anyway. */
class DiskProbe {
  readonly #stop = new AbortController();
  readonly #written: Promise<void>;
  #worstMs = 0;

  constructor() {
    this.#written = this.#write();
  }

  /** The longest write since the last call, in milliseconds. */
  take(): number {
    const worstMs = this.#worstMs;
    this.#worstMs = 0;
    return worstMs;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#written;
  }

  async #write(): Promise<void> {
    const folder = await mkdtemp(join(tmpdir(), 'fleet-disk-'));
    const file = await open(join(folder, 'page'), 'w');
    const page = Buffer.alloc(PAGE_BYTES);
    try {
      while (!this.#stop.signal.aborted) {
        const startMs = performance.now();
        await file.write(page, 0, PAGE_BYTES, 0);
        await file.datasync();
        this.#worstMs = Math.max(this.#worstMs, performance.now() - startMs);
        await sleep(EVERY_MS);
      }
    } finally {
      await file.close();
      await rm(folder, { recursive: true });
    }
  }
}

const MEMORY_EVERY_MS = 50;

/** Samples the resident memory of a process and its descendants, in MB. */
class PodMemory {
  readonly #pid: number;
  readonly #stop = new AbortController();
  #largestMb = 0;

  constructor(pid: number) {
    this.#pid = pid;
    void this.#watch();
  }

  /** The largest value since the last call. */
  async take(): Promise<number> {
    const largestMb = Math.max(this.#largestMb, await residentMb(this.#pid));
    this.#largestMb = 0;
    return largestMb;
  }

  stop(): void {
    this.#stop.abort();
  }

  async #watch(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#largestMb = Math.max(this.#largestMb, await residentMb(this.#pid));
      await sleep(MEMORY_EVERY_MS);
    }
  }
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
async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return '';
  }
}
