import { type ResourceLimits, Worker } from 'node:worker_threads';

interface ThreadOptions<Reply> {
  /** The file that runs in the thread. */
  readonly entry: URL;
  /** What the thread does, for errors: "adds up points". */
  readonly does: string;
  readonly resourceLimits: ResourceLimits;
  /** A thread that has rested for this long is ended to release its memory. */
  readonly idleMs: number;
  readonly hear: (reply: Reply) => void;
  /** Called when the thread has ended, for whatever reason: none of its open tasks will be answered. */
  readonly lose: (error: Error) => void;
}

/** A thread that starts with the first task, has nothing of the environment, and ends when it has rested for long. */
export class IdleThread<Task, Reply> {
  readonly #options: ThreadOptions<Reply>;
  #worker: Worker | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ThreadOptions<Reply>) {
    this.#options = options;
  }

  /** The sender has the memory that is `given` no more. Throws once the thread is closed. */
  tell(task: Task, given: readonly ArrayBuffer[] = []): void {
    if (this.#isClosed) throw this.#ended();
    clearTimeout(this.#timer);
    this.#worker ??= this.#start();
    this.#worker.ref();
    this.#worker.postMessage(task, given);
  }

  /** To be called when it has answered everything. */
  rest(): void {
    clearTimeout(this.#timer);
    this.#worker?.unref(); // an idle one keeps nobody from ending
    this.#timer = setTimeout(() => void this.#end(), this.#options.idleMs).unref();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#end();
  }

  #start(): Worker {
    const { entry, resourceLimits, hear } = this.#options;
    const worker = new Worker(entry, { execArgv: [], env: {}, resourceLimits });
    worker.on('message', hear);
    worker.on('error', (error: Error) => this.#lose(worker, error));
    worker.on('exit', () => this.#lose(worker, this.#ended()));
    return worker;
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    this.#lose(worker, this.#ended());
    await worker.terminate();
  }

  #lose(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    clearTimeout(this.#timer);
    this.#options.lose(error);
  }

  #ended(): Error {
    return new Error(`the thread that ${this.#options.does} has ended`);
  }
}
