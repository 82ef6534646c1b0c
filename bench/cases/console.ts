import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { startBrowser, withoutBrowser } from '../../test/support/http/browser.ts';
import type { BenchCase, Row } from '../benchCase.ts';
import { type ScriptTimes, WatchedPage } from '../console/watchedPage.ts';
import { Latencies, median } from '../measure/latencies.ts';
import { openWorker } from '../worker.ts';
import type { ConsoleQuestion } from '../workers/consoleServer.ts';

const VEHICLES = [1_000, 10_000, 100_000];
const SMOKE_VEHICLES = [100];
const SMOKE_SECONDS = 0.5;
const FIRST_VIEWS = 3;
/** Until caches of the engine are warm, and the first view is drawn. */
const WARMUP_MS = 3_000;
/** The long form is ten minutes: --seconds 600. */
const HEAP_SECONDS_MIN = 60;
/** A longer trace does not fit into a string. */
const TRACE_SECONDS_MAX = 60;

export const console: BenchCase = {
  about:
    'the map of the console in a browser without a graphics card; a tenth of the vehicles changes each second',
  run: async ({ smoke, seconds, sizes, say }) => {
    const missing = withoutBrowser();
    if (missing !== false) return { kind: 'skipped', reason: missing };
    await using server = openWorker<ConsoleQuestion, number>('consoleServer');
    await using browser = await startBrowser({ hasWebGl: true });
    const address = `http://127.0.0.1:${await server.ask({ kind: 'start' })}`;
    const counts = sizes ?? (smoke ? SMOKE_VEHICLES : VEHICLES);
    const rows: Row[] = [];
    const metrics: Record<string, number> = {};
    const measuredSeconds = smoke ? SMOKE_SECONDS : seconds;
    const tracedSeconds = Math.min(measuredSeconds, TRACE_SECONDS_MAX);
    for (const count of counts) {
      await server.ask({ kind: 'vehicles', count });
      say(`${count} vehicles`);
      const asked = { smoke, seconds: measuredSeconds, tracedSeconds };
      const { times, grown } = await watch(browser, address, count, asked);
      const latencies = Latencies.of(times.frames);
      rows.push({
        what: `script time of a frame, ${count} vehicles`,
        unit: 'drawn frames',
        perSecond: times.drawn / tracedSeconds,
        ...latencies.percentiles(),
        worstMs: latencies.percentile(1),
        serverBusy: times.share,
      });
      const p99Ms = latencies.percentile(0.99);
      metrics[`frame_p99_ms_${count}`] = p99Ms;
      if (grown === null) continue;
      say(
        `  ${p99Ms.toFixed(2)} ms of script a frame (p99), heap ${grown.toFixed(2)} times as large at the end`,
      );
      metrics[`heap_growth_${count}`] = grown;
    }
    await server.ask({ kind: 'vehicles', count: VEHICLES[0] as number });
    const ms = await firstView(browser, address, smoke ? 1 : FIRST_VIEWS);
    rows.push({ what: 'first view of the map, nothing in the cache', seconds: ms / 1_000 });
    const compressed = (await compressedBytes(address)) / 1_000;
    return {
      kind: 'measured',
      size: `${counts.join(', ')} vehicles`,
      rows,
      metrics: { ...metrics, first_view_ms: ms, compressed_kb: compressed },
    };
  },
};

/** Script times of frames, and by how much the heap grows while the page goes on for a minute at least. */
async function watch(
  browser: Browser,
  address: string,
  count: number,
  { smoke, seconds, tracedSeconds }: { smoke: boolean; seconds: number; tracedSeconds: number },
): Promise<{ times: ScriptTimes; grown: number | null }> {
  await using page = await WatchedPage.open(browser);
  await page.load(address);
  await page.vehicles(count);
  if (smoke) return { times: await page.scriptTimes(seconds), grown: null };
  await sleep(WARMUP_MS);
  const before = await page.heapBytes();
  // First: the browser collects garbage more often for some seconds after a collection that was asked for.
  await sleep((Math.max(HEAP_SECONDS_MIN, seconds) - tracedSeconds) * 1_000);
  const times = await page.scriptTimes(tracedSeconds);
  return { times, grown: (await page.heapBytes()) / before };
}

async function firstView(browser: Browser, address: string, rounds: number): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await using page = await WatchedPage.open(browser);
    times.push(await page.load(address));
  }
  return median(times);
}

/** Bytes of everything that the page loads, as brotli: what it names itself, and what its modules ask for. */
async function compressedBytes(address: string): Promise<number> {
  const html = await (await fetch(`${address}/console`)).text();
  const [, importMap = '{}'] = /<script type="importmap">(.*?)<\/script>/.exec(html) ?? [];
  const { imports = {} } = JSON.parse(importMap) as { imports?: Record<string, string> };
  const named = Array.from(html.matchAll(/(?:href|src)="(\/console[^"]+)"/g), ([, path]) => path as string);
  let bytes = 0;
  for (const path of new Set(['/console', ...named, ...Object.values(imports)])) {
    const headers = { 'Accept-Encoding': 'br' };
    const { headers: answered } = await fetch(address + path, { method: 'HEAD', headers });
    bytes += Number(answered.get('content-length'));
  }
  return bytes;
}
