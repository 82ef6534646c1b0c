import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { PlanReply, ProcessReply } from './importProcess.ts';

/** Bodies that may wait, the one that is being read included; each is up to 32 MB. */
const WAITING_MAX = 8;
/** A maximum import takes a third of it; JSON made of empty arrays, fifty times its size, ends the process instead. */
const HEAP_MAX_MB = 512;
/** How V8 ends a process that has used up its memory, and how Linux ends one that took too much from all others. */
const OUT_OF_MEMORY: readonly (NodeJS.Signals | null)[] = ['SIGABRT', 'SIGKILL'];
/** A process that has nothing to do for so long gives its memory back. */
const IDLE_MS = 60_000;
/** A maximum import takes half a second. One that stands still for so long holds up those that wait. */
const READ_LIMIT_MS = 60_000;

/** More imports at once than this pod takes, or one that it could not read in time. */
export class ImportOverload extends Error {
  override name = 'ImportOverload';
}

/** A body whose reading takes more memory than an import is given. */
export class ImportTooLarge extends Error {
  override name = 'ImportTooLarge';
}

interface Job {
  readonly pieces: readonly Uint8Array[];
  readonly resolve: (plan: PlanReply) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Reads and validates import bodies in a process of its own, one after the other, so that no request waits behind the
 * megabytes of another. Not in a thread: JSON.parse does not keep to the memory of a thread, and V8 then ends the
 * whole process. This one starts with the first import; when it dies, the import that it was reading fails and the
 * next one is read by another.
 */
export class ImportPlanner {
  /** The first one is being read. */
  readonly #jobs: Job[] = [];
  #process: ChildProcess | null = null;
  /** While a body is read: until it is given up. Otherwise: until the process ends. */
  #timer: NodeJS.Timeout | undefined;

  /** Plans a body, which may come in pieces. */
  plan(pieces: readonly Uint8Array[]): Promise<PlanReply> {
    if (this.#jobs.length >= WAITING_MAX)
      return Promise.reject(new ImportOverload('too many imports at once'));
    return new Promise((resolve, reject) => {
      this.#jobs.push({ pieces, resolve, reject });
      if (this.#jobs.length === 1) this.#read();
    });
  }

  async close(): Promise<void> {
    for (const { reject } of this.#jobs.splice(0)) reject(new Error('the import process was closed'));
    await this.#end();
  }

  #read(): void {
    clearTimeout(this.#timer);
    const [job] = this.#jobs;
    if (job === undefined) {
      this.#process?.unref(); // an idle one keeps nobody from ending
      this.#timer = setTimeout(() => void this.#end(), IDLE_MS).unref();
      return;
    }
    const child = this.#process ?? this.#start();
    this.#process = child;
    child.ref();
    // What fails ends the process, or never let it begin: either is told of.
    const lengthBytes = job.pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
    if (child.connected) child.send(lengthBytes, () => undefined);
    for (const piece of job.pieces) child.stdin?.write(piece);
    this.#timer = setTimeout(() => {
      this.#lose(child, new ImportOverload('reading the body took too long'));
      child.kill('SIGKILL');
    }, READ_LIMIT_MS).unref();
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
      const { plan, fault } = reply as ProcessReply;
      if (plan === undefined) {
        this.#lose(child, new Error(`the import process failed: ${fault}`));
        return;
      }
      this.#jobs.shift()?.resolve(plan);
      this.#read();
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

  #lose(child: ChildProcess, error: Error): void {
    if (this.#process !== child) return;
    this.#process = null;
    this.#jobs.shift()?.reject(error);
    this.#read();
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
