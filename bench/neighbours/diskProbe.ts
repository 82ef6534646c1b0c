import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const EVERY_MS = 50;
/** Of Postgres. */
const PAGE_BYTES = 8_192;

/** Writes a page again and again to the disk on which the Postgres of the bench lies: what a commit waits for anyway. */
export class DiskProbe {
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
