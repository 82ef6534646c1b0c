import type { TestContext } from 'node:test';
import { type ServiceProcess, startProcess } from '../service.ts';

/** Nobody listens there: calls are refused at once. */
const NOWHERE = 'http://127.0.0.1:9';

interface RunningPod {
  readonly service: ServiceProcess;
  readonly api: string;
  readonly ingest: string;
}

/** Pods of one service in processes of their own, to be killed and stopped. */
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
    await Promise.all(Array.from({ length: count }, (_, n) => pods.start(n)));
    return pods;
  }

  async start(n: number): Promise<void> {
    const service = startProcess(this.#t, this.#env);
    this.#running[n] = null;
    this.#running[n] = { service, ...(await service.listening) };
  }

  /** What each has logged since it started last. */
  get logs(): readonly (readonly string[])[] {
    return this.#running.map((pod) => pod?.service.lines ?? []);
  }

  get apis(): readonly string[] {
    return this.#running.map((pod) => pod?.api ?? NOWHERE);
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
    this.#running[n]?.service.child.kill('SIGSTOP');
  }

  resume(n: number): void {
    this.#paused.delete(n);
    this.#running[n]?.service.child.kill('SIGCONT');
  }

  async #end(n: number, name: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const pod = this.#running[n];
    pod?.service.child.kill(name);
    await pod?.service.ended;
    this.#running[n] = null;
  }
}
