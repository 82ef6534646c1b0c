import { Worker } from 'node:worker_threads';
import type { PlanReply } from './importWorker.ts';

/** Bodies that may wait for the thread, the one it reads included; each is up to 32 MB. */
const WAITING_MAX = 8;
/** A maximum import takes a third of it; JSON made of empty arrays, fifty times its size, ends the thread instead. */
const HEAP_MAX_MB = 512;

/** More imports at once than this pod takes. */
export class ImportOverload extends Error {
  override name = 'ImportOverload';
}

/** A body whose reading takes more memory than an import is given. */
export class ImportTooLarge extends Error {
  override name = 'ImportTooLarge';
}

interface Job {
  readonly body: Uint8Array;
  readonly resolve: (plan: PlanReply) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Reads and validates import bodies in a thread of its own, one after the other, so that no request waits behind the
 * megabytes of another. The thread starts with the first import; when it dies, the import that it was reading fails
 * and the next one is read by another.
 */
export class ImportPlanner {
  /** The first one is being read. */
  readonly #jobs: Job[] = [];
  #worker: Worker | null = null;

  /** Takes the memory of the body away: whoever gave it must not look at it again. */
  plan(body: Uint8Array): Promise<PlanReply> {
    if (this.#jobs.length >= WAITING_MAX)
      return Promise.reject(new ImportOverload('too many imports at once'));
    return new Promise((resolve, reject) => {
      this.#jobs.push({ body, resolve, reject });
      if (this.#jobs.length === 1) this.#read();
    });
  }

  async close(): Promise<void> {
    for (const { reject } of this.#jobs.splice(0)) reject(new Error('the import thread was closed'));
    await this.#worker?.terminate();
  }

  #read(): void {
    const [job] = this.#jobs;
    if (job === undefined) return;
    this.#worker ??= this.#start();
    const bytes = alone(job.body);
    this.#worker.postMessage(bytes, [bytes.buffer]);
  }

  #start(): Worker {
    const worker = new Worker(new URL('./importWorker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB },
    });
    worker.unref();
    worker.on('message', (plan: PlanReply) => {
      this.#jobs.shift()?.resolve(plan);
      this.#read();
    });
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const outOfMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.#lose(worker, outOfMemory ? new ImportTooLarge('reading the body takes too much memory') : error);
    });
    worker.on('exit', () => this.#lose(worker, new Error('the import thread ended')));
    return worker;
  }

  #lose(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    this.#jobs.shift()?.reject(error);
    this.#read();
  }
}

/** The bytes, if they share their memory with nothing else, so that it can be handed over: no copy of a large body. */
function alone(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const isAlone = bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength;
  return isAlone ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}
