import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import { FairSemaphore } from '../../lib/fairSemaphore.ts';
import { ok } from '../../lib/result.ts';
import { MINUTE_MS } from '../../lib/time.ts';
import type { WorkTurns } from '../../lib/workTurns.ts';
import { type ImportItem, type PlanReply, planBody } from './importPlan.ts';
import type { ProcessReply } from './importProcess.ts';

/** Bodies up to this size need no process, unless they hold more values than this. */
const SMALL_BYTES = 256 * 1024;
const SMALL_VALUES = 20_000;
/** Bodies for the process; those that wait are bounded by the bytes that an account and a pod may hold, too. */
const QUEUE = { running: 1, runningPerKey: 1, waiting: 1_000, waitingPerKey: 200 };
/** A maximum import takes a third of it; JSON made of empty arrays, fifty times its size, ends the process instead. */
const HEAP_MAX_MB = 512;
/** How V8 ends a process that has used up its memory, and how Linux ends one that took too much from all others. */
const OUT_OF_MEMORY: readonly (NodeJS.Signals | null)[] = ['SIGABRT', 'SIGKILL'];
/** A process that has nothing to do for so long gives its memory back. */
const IDLE_MS = MINUTE_MS;
/** A maximum import takes half a second. One that stands still for so long holds up those that wait. */
const READ_LIMIT_MS = MINUTE_MS;

/** An import that this pod could not read in time. */
export class ImportOverload extends Error {
  override name = 'ImportOverload';
}

/** A body whose reading takes more memory than an import is given. */
export class ImportTooLarge extends Error {
  override name = 'ImportTooLarge';
}

interface Job {
  readonly pieces: readonly Uint8Array[];
  /** The part of the plan that the process has sent. */
  readonly items: ImportItem[];
  readonly resolve: (plan: PlanReply) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Reads and validates import bodies. Small ones are read in turns of the event loop. Large ones are read in a separate
 * process, one after the other and fair by account, so that no request waits for the megabytes of another. A thread
 * would not do: JSON.parse exceeds the memory limit of a thread, and V8 then ends the whole process. The process starts
 * with the first large import. When it ends, the import that it was reading fails, and a new process reads the next
 * one.
 */
export class ImportPlanner {
  readonly #turns: WorkTurns<number | string>;
  readonly #smallBytes: number;
  readonly #queue = new FairSemaphore<number>(QUEUE);
  #isClosed = false;
  /** What the process reads. */
  #job: Job | null = null;
  #process: ChildProcess | null = null;
  /** While a body is read: until it is given up. Otherwise: until the process ends. */
  #timer: NodeJS.Timeout | undefined;

  /** `smallBytes`: up to which size bodies need no process. */
  constructor(turns: WorkTurns<number | string>, smallBytes: number = SMALL_BYTES) {
    this.#turns = turns;
    this.#smallBytes = smallBytes;
  }

  /** Plans a body of an account, which may come in pieces. Rejects with Overloaded, ImportOverload, ImportTooLarge. */
  async plan(accountId: number, pieces: readonly Uint8Array[]): Promise<PlanReply> {
    const lengthBytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
    if (lengthBytes <= this.#smallBytes) {
      const plan = await this.#turns.run(accountId, planBody(Buffer.concat(pieces), SMALL_VALUES));
      if (plan.ok || plan.error !== 'too_many_values') return plan;
    }
    return this.#queue.run(accountId, () => this.#planThere(pieces));
  }

  /** In the process, which is free. */
  #planThere(pieces: readonly Uint8Array[]): Promise<PlanReply> {
    if (this.#isClosed) return Promise.reject(CLOSED);
    return new Promise((resolve, reject) => {
      this.#job = { pieces, items: [], resolve, reject };
      this.#read(this.#job);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#takeJob()?.reject(CLOSED);
    await this.#end();
  }

  #read({ pieces }: Job): void {
    clearTimeout(this.#timer);
    const child = this.#process ?? this.#start();
    this.#process = child;
    child.ref();
    // An error ends the process, or it never began: both arrive as an event.
    const lengthBytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
    if (child.connected) child.send(lengthBytes, () => undefined);
    for (const piece of pieces) child.stdin?.write(piece);
    this.#timer = setTimeout(() => {
      this.#lose(child, new ImportOverload('reading the body took too long'));
      child.kill('SIGKILL');
    }, READ_LIMIT_MS).unref();
  }

  /** The import that was being read, after which the process has nothing to do until the next one comes. */
  #takeJob(): Job | null {
    const job = this.#job;
    this.#job = null;
    clearTimeout(this.#timer);
    this.#process?.unref(); // an idle one keeps nobody from ending
    this.#timer = setTimeout(() => void this.#end(), IDLE_MS).unref();
    return job;
  }

  #start(): ChildProcess {
    const child = fork(new URL('./importProcess.ts', import.meta.url), {
      serialization: 'advanced',
      execArgv: [`--max-old-space-size=${HEAP_MAX_MB}`],
      // It needs nothing of what this process knows, and V8's last words are not for the log.
      env: {},
      stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
    });
    child.on('message', (reply) => {
      if (this.#process !== child) return; // given up
      this.#hear(child, reply as ProcessReply);
    });
    child.stdin?.on('error', () => undefined);
    child.on('error', (cause) =>
      this.#lose(child, new ImportOverload('no process can be started to read it', { cause })),
    );
    child.on('exit', (code, signal) =>
      this.#lose(
        child,
        OUT_OF_MEMORY.includes(signal)
          ? new ImportTooLarge('reading the body takes too much memory')
          : new Error(`the import process ended with ${signal ?? code}`),
      ),
    );
    child.channel?.unref();
    (child.stdin as Socket | null)?.unref();
    return child;
  }

  #hear(child: ChildProcess, reply: ProcessReply): void {
    switch (reply.kind) {
      case 'items':
        for (const item of reply.items) this.#job?.items.push(item);
        return;
      case 'plan': {
        const job = this.#takeJob();
        const { plan } = reply;
        job?.resolve(plan.ok ? ok({ ...plan.value, items: job.items }) : plan);
        return;
      }
      case 'failed':
        this.#lose(child, new Error(`the import process failed: ${reply.error}`));
    }
  }

  #lose(child: ChildProcess, error: Error): void {
    if (this.#process !== child) return;
    this.#process = null;
    this.#takeJob()?.reject(error);
  }

  async #end(): Promise<void> {
    clearTimeout(this.#timer);
    const child = this.#process;
    this.#process = null;
    if (child === null || child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
      return;
    child.ref();
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGKILL');
    await ended;
  }
}

const CLOSED = new Error('the import process was closed');
