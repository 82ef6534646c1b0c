import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { startPod } from '../pod.ts';
import { startProcess } from '../service.ts';
import { IS_TORTURE } from '../torture.ts';

/** Nobody listens there: calls are refused at once. */
const NOWHERE = 'http://127.0.0.1:9';

interface RunningPod {
  readonly api: string;
  readonly ingest: string;
  readonly lines: readonly string[];
  signal(name: NodeJS.Signals): void;
  readonly end: (signal: 'SIGKILL' | 'SIGTERM') => Promise<unknown>;
}

/** Pods of one service, to be killed and stopped: in processes of their own under torture, in the short form only the first. */
export class ServicePods {
  readonly #t: TestContext;
  readonly #env: Readonly<Record<string, string>>;
  readonly #running: (RunningPod | null)[] = [];
  readonly #paused = new Set<number>();

  private constructor(t: TestContext, env: Readonly<Record<string, string>>) {
    this.#t = t;
    this.#env = env;
  }

  static async start(t: TestContext, env: Readonly<Record<string, string>>, count: number) {
    const pods = new ServicePods(t, env);
    await Promise.all(Array.from({ length: count }, (_, n) => pods.start(n, IS_TORTURE || n === 0)));
    return pods;
  }

  async start(n: number, hasProcess = IS_TORTURE): Promise<void> {
    this.#running[n] = null;
    this.#running[n] = hasProcess ? await this.#startProcess() : await this.#startHere();
  }

  async #startProcess(): Promise<RunningPod> {
    const { child, lines, listening, ended } = startProcess(this.#t, this.#env);
    const signal = (name: NodeJS.Signals) => void child.kill(name);
    const end = (name: NodeJS.Signals) => {
      signal(name);
      return ended;
    };
    return { ...(await listening), lines, signal, end };
  }

  /** One that nothing is done to but an end in good order: it has a tenth of the cost. */
  async #startHere(): Promise<RunningPod> {
    const { api, ingest, stop } = await startPod(this.#env['DATABASE_URL'] ?? '', {
      t: this.#t,
      env: this.#env,
    });
    const signal = (name: NodeJS.Signals) => assert.fail(`${name} to a pod without a process of its own`);
    return { api, ingest, lines: [], signal, end: stop };
  }

  /** What each has logged since it started last. */
  get logs(): readonly (readonly string[])[] {
    return this.#running.map((pod) => pod?.lines ?? []);
  }

  get apis(): readonly string[] {
    return this.#running.map((pod) => pod?.api ?? NOWHERE);
  }

  get runningApis(): readonly string[] {
    return this.#running.flatMap((pod) => pod?.api ?? []);
  }

  /** As one sees it who sends to pods that answer only. */
  get ingests(): readonly string[] {
    return this.#running.map((pod, n) => (this.#paused.has(n) ? NOWHERE : (pod?.ingest ?? NOWHERE)));
  }

  async kill(n: number): Promise<void> {
    await this.#end(n, 'SIGKILL');
  }

  /** As an update does it. */
  async stop(n: number): Promise<void> {
    await this.#end(n, 'SIGTERM');
  }

  /** Lets it stand still until `resume`. */
  pause(n: number): void {
    this.#paused.add(n);
    this.#running[n]?.signal('SIGSTOP');
  }

  resume(n: number): void {
    this.#paused.delete(n);
    this.#running[n]?.signal('SIGCONT');
  }

  async #end(n: number, name: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await this.#running[n]?.end(name);
    this.#running[n] = null;
  }
}
