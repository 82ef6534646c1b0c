import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const EVERY_MS = 50;

/** Samples the resident memory of a process and its descendants, in MB. */
export class PodMemory {
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
      await sleep(EVERY_MS);
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
