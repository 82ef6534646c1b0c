import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { type ScriptTimes, scriptTimes, TRACE_CATEGORIES } from './scriptTimes.ts';

const VIEW = "document.querySelector('.map')?.view";
const POLL_MS = 20;
const LOADS_MAX_MS = 60_000;
/** The browser loads pages of its own for a new window, on the same processors. */
const WINDOW_OPENS_MS = 2_000;

/** The console in a browser of its own, logged in. */
export class WatchedPage {
  readonly #browser: Browser;
  readonly #page: Page;
  readonly #devtools: CDPSession;

  private constructor(browser: Browser, page: Page, devtools: CDPSession) {
    this.#browser = browser;
    this.#page = page;
    this.#devtools = devtools;
  }

  static async open(browser: Browser): Promise<WatchedPage> {
    const context = await browser.newContext({ viewport: { width: 1_280, height: 720 } });
    const page = await context.newPage();
    await page.addInitScript("sessionStorage.setItem('fleet-session', 'fs_bench')");
    await sleep(WINDOW_OPENS_MS);
    return new WatchedPage(browser, page, await context.newCDPSession(page));
  }

  /** Milliseconds until the map is drawn, with nothing in the cache of the browser. */
  async load(address: string): Promise<number> {
    const startMs = performance.now();
    await this.#page.goto(`${address}/console`, { waitUntil: 'commit' });
    await this.#until(`${VIEW}?.map.loaded() === true`);
    return performance.now() - startMs;
  }

  /** Waits until so many vehicles are there. */
  vehicles(count: number): Promise<void> {
    return this.#until(`import('/console/liveFleet.ts').then(({ fleet }) => fleet.size >= ${count})`);
  }

  /** While the page runs for that long. */
  async scriptTimes(seconds: number): Promise<ScriptTimes> {
    await this.#browser.startTracing(this.#page, { categories: TRACE_CATEGORIES });
    await sleep(seconds * 1_000);
    return scriptTimes(await this.#browser.stopTracing());
  }

  /** What scripts hold, after garbage was collected. */
  async heapBytes(): Promise<number> {
    await this.#devtools.send('HeapProfiler.collectGarbage');
    const { usedSize, backingStorageSize = 0 } = (await this.#devtools.send('Runtime.getHeapUsage')) as {
      usedSize: number;
      backingStorageSize?: number;
    };
    return usedSize + backingStorageSize;
  }

  close(): Promise<void> {
    return this.#page.context().close();
  }

  async #until(condition: string): Promise<void> {
    const untilMs = performance.now() + LOADS_MAX_MS;
    // Not waitForFunction: it evaluates text in the page, which the policy of the page forbids.
    while ((await this.#page.evaluate(condition)) !== true) {
      if (performance.now() > untilMs) throw new Error(`it did not come true in the page: ${condition}`);
      await sleep(POLL_MS);
    }
  }
}
