import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { FileOrder, FileResult } from './messages.ts';

const WORKER = join(import.meta.dirname, 'worker.ts');
const REPORTER = join(import.meta.dirname, 'reporter.ts');
const END_GRACE_MS = 5_000;

export interface WorkerOptions {
  readonly workers: number;
  readonly testSeconds: number;
  /** See FileOrder. */
  readonly openLimitMs: number;
  /** Only tests whose names fit this regular expression. */
  readonly name: string | null;
  readonly env: NodeJS.ProcessEnv;
}

/** Runs test files in a few processes, in their order; a process that ends too early fails its file and is replaced. */
export class Workers {
  readonly #options: WorkerOptions;
  readonly #queue: string[];
  readonly #take: (result: FileResult) => void;
  readonly #running = new Set<ChildProcess>();
  #isEnded = false;

  constructor(files: readonly string[], options: WorkerOptions, take: (result: FileResult) => void) {
    this.#queue = [...files];
    this.#options = options;
    this.#take = take;
  }

  /** Settles when all files have run, or after `end`. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.workers }, () => this.#work()));
  }

  /** Ends the tests together with all that they have started. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await Promise.all([...this.#running].map(endGroup));
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0 && !this.#isEnded) await this.#runWorker();
  }

  /** One process, for as many files as it survives. */
  async #runWorker(): Promise<void> {
    const child = this.#spawn();
    let current: string | undefined;
    let last = '';
    let hasFailed = false;
    const sendNext = (): void => {
      current = this.#isEnded ? undefined : this.#queue.shift();
      if (current === undefined && hasFailed) killGroup(child, 'SIGKILL');
      else if (current === undefined) child.disconnect();
      else child.send({ file: current, openLimitMs: this.#options.openLimitMs } satisfies FileOrder);
    };
    child.on('message', (result: FileResult) => {
      hasFailed ||= result.failures.length > 0;
      last = result.file;
      this.#take(result);
      sendNext();
    });
    const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    sendNext();
    const [code, signal] = await exited;
    killGroup(child, 'SIGKILL'); // what a test has started and left behind
    this.#running.delete(child);
    if (this.#isEnded) return;
    if (current !== undefined) this.#take(crash(current, `ended before it did: ${signal ?? `code ${code}`}`));
    else if (!hasFailed && code !== 0)
      this.#take(crash(last, `failed when it ended: ${signal ?? `code ${code}`}`));
  }

  #spawn(): ChildProcess {
    const { testSeconds, name, env } = this.#options;
    const flags = [`--test-timeout=${Math.ceil(testSeconds * 1_000)}`, `--test-reporter=${REPORTER}`];
    if (name !== null) flags.push(`--test-name-pattern=${name}`);
    const child = spawn(process.execPath, [...flags, '--test-reporter-destination=stdout', WORKER], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      detached: true, // a process group, to end it together with everything that it has started
      env,
    });
    this.#running.add(child);
    return child;
  }
}

function crash(file: string, what: string): FileResult {
  const failure = `${file}\n  Its process ${what}.`;
  return { file, counts: { passed: 0, failed: 1, skipped: 0 }, failures: [failure], skipped: [], seconds: 0 };
}

async function endGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  killGroup(child, 'SIGINT');
  const timer = setTimeout(() => killGroup(child, 'SIGKILL'), END_GRACE_MS);
  await exited;
  clearTimeout(timer);
}

function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody of the group is left.
  }
}
