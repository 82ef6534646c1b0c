import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, CDPSession, Page } from 'playwright-core';

const VIEW = "document.querySelector('.map')?.view";
const POLL_MS = 20;
const LOADS_MAX_MS = 60_000;
/** The browser loads pages of its own for a new window, on the same processors. */
const WINDOW_OPENS_MS = 2_000;
const POINTER_MS = 16;
const WHEEL_PX = 40;

/** The console in a browser of its own, logged in. */
export class WatchedPage implements AsyncDisposable {
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
    await this.goTo(address);
    await this.#until(`${VIEW}?.map.loaded() === true`);
    return performance.now() - startMs;
  }

  async goTo(address: string): Promise<void> {
    await this.#page.goto(`${address}/console`, { waitUntil: 'commit' });
    // All vehicles one by one, however many they are.
    await this.#page.evaluate(
      "import('/console/largeFleet.ts').then(({ LIMITS }) => { LIMITS.fleet = Infinity; })",
    );
  }

  vehicles(count: number): Promise<void> {
    return this.#until(`import('/console/liveFleet.ts').then(({ fleet }) => fleet.size >= ${count})`);
  }

  /** Looks at a place from so near that vehicles have their names beside them. While they move, a map is never `loaded`. */
  async near({ lat, lng }: { lat: number; lng: number }): Promise<void> {
    await this.#until(`${VIEW} !== undefined`);
    await this.#page.evaluate(`void ${VIEW}.map.jumpTo({ center: [${lng}, ${lat}], zoom: 13 })`);
    await this.#until(`${VIEW}.labelled.length > 0`);
  }

  async devices(): Promise<void> {
    await this.#page.evaluate("location.hash = '#devices'");
    await this.#until("document.querySelector('tbody [data-at]') !== null");
  }

  frameTimes(seconds: number): Promise<FrameTimes> {
    return this.#traced(() => sleep(seconds * 1_000));
  }

  /** The same while the pointer moves over the page, and the wheel turns where `isScrolled`. */
  frameTimesBelowPointer(seconds: number, isScrolled: boolean): Promise<FrameTimes> {
    const { mouse } = this.#page;
    return this.#traced(async () => {
      const endMs = performance.now() + seconds * 1_000;
      for (let n = 0; performance.now() < endMs; n++) {
        await mouse.move(640 + 300 * Math.cos(n / 20), 420 + 200 * Math.sin(n / 13));
        if (isScrolled) await mouse.wheel(0, WHEEL_PX);
        await sleep(POINTER_MS);
      }
    });
  }

  async #traced(meanwhile: () => Promise<unknown>): Promise<FrameTimes> {
    await this.#browser.startTracing(this.#page, { categories: TRACE_CATEGORIES });
    await meanwhile();
    return frameTimes(await this.#browser.stopTracing());
  }

  /** What scripts hold, after garbage was collected. */
  async heapBytes(): Promise<number> {
    await this.#devtools.send('HeapProfiler.collectGarbage');
    const usage: { usedSize: number; backingStorageSize?: number } =
      await this.#devtools.send('Runtime.getHeapUsage');
    return usage.usedSize + (usage.backingStorageSize ?? 0);
  }

  [Symbol.asyncDispose](): Promise<void> {
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

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  /** Of the processor, without waiting for one. */
  readonly tdur?: number;
}

const TRACE_CATEGORIES = ['devtools.timeline', 'v8', 'blink.user_timing'];

const FRAME = 'FireAnimationFrame';
/** Where the browser hands over to scripts; garbage collection outside of them counts, too. */
const SCRIPTS = new Set(
  `${FRAME} FunctionCall EvaluateScript RunMicrotasks TimerFire EventDispatch MinorGC MajorGC`.split(' '),
);
/** What the main thread does to show what scripts have changed. */
const RENDERING = new Set('UpdateLayoutTree Layout PrePaint Paint Layerize Commit'.split(' '));

const FRAME_US = 1e6 / 60;

export interface FrameTimes {
  /** Milliseconds of script for each sixtieth of a second in which there was any. */
  readonly scripts: readonly number[];
  /** The same of style, layout and paint. */
  readonly rendering: readonly number[];
  /** Frames that the browser really drew: without a graphics card they are few. */
  readonly drawn: number;
  /** Share of the time in which scripts ran. */
  readonly share: number;
}

/** Processor time of the main thread, MapLibre included. What is done counts for the frame in which it begins. */
function frameTimes(trace: Buffer): FrameTimes {
  const { traceEvents } = JSON.parse(trace.toString('utf8')) as { traceEvents: readonly TraceEvent[] };
  const counted = traceEvents.filter(
    ({ name }) => name === 'Layout' || name === 'PrePaint' || name === FRAME,
  );
  const thread = mostFrequent(counted.map(({ pid, tid }) => `${pid} ${tid}`));
  const done = traceEvents
    .filter(({ name, ph, pid, tid }) => {
      const isCounted = SCRIPTS.has(name) || RENDERING.has(name);
      return ph === 'X' && isCounted && `${pid} ${tid}` === thread;
    })
    .sort((a, b) => a.ts - b.ts);
  const scripts = new Map<number, number>();
  const rendering = new Map<number, number>();
  let endsAt = 0;
  let scriptUs = 0;
  for (const { name, ts, dur = 0, tdur = dur } of done) {
    if (ts < endsAt) continue; // within another one, which was counted: a layout that a script has asked for is the script's
    endsAt = ts + dur;
    const isScript = SCRIPTS.has(name);
    if (isScript) scriptUs += tdur;
    const frames = isScript ? scripts : rendering;
    const frame = Math.floor(ts / FRAME_US);
    frames.set(frame, (frames.get(frame) ?? 0) + tdur / 1_000);
  }
  const wholeUs = endsAt - (done[0]?.ts ?? endsAt);
  return {
    scripts: [...scripts.values()],
    rendering: [...rendering.values()],
    drawn: traceEvents.filter(({ name }) => name === FRAME).length,
    share: scriptUs / wholeUs,
  };
}

function mostFrequent(values: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}
