import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { startBrowser, withoutBrowser } from '../../test/support/http/browser.ts';
import type { BenchCase, Row } from '../benchCase.ts';
import { type FrameTimes, WatchedPage } from '../console/watchedPage.ts';
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
/** Where names are beside vehicles. */
const TOWN = { lat: 48.2, lng: 16.37 };
/** A longer trace does not fit into a string. */
const TRACE_SECONDS_MAX = 60;

export const console: BenchCase = {
  about: 'the console in a browser without a graphics card; a tenth of the vehicles changes each second',
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
      await server.ask({ kind: 'vehicles', count, town: null });
      say(`${count} vehicles`);
      const asked = { smoke, seconds: measuredSeconds, tracedSeconds };
      const { times, grown } = await watch(browser, address, count, asked);
      const plain = framesOf(`${count} vehicles`, times, tracedSeconds);
      rows.push(...plain.rows);
      metrics[`frame_p99_ms_${count}`] = plain.scriptP99Ms;
      if (grown !== null) {
        say(
          `  ${plain.scriptP99Ms.toFixed(2)} ms of script a frame (p99), heap ${grown.toFixed(2)} times as large at the end`,
        );
        metrics[`heap_growth_${count}`] = grown;
      }
      await server.ask({ kind: 'vehicles', count, town: TOWN });
      for (const { name, what, times } of await watchUsed(browser, address, count, asked)) {
        const used = framesOf(`${count} vehicles, ${what}`, times, tracedSeconds);
        rows.push(...used.rows);
        metrics[`${name}_frame_p99_ms_${count}`] = used.scriptP99Ms;
        metrics[`${name}_rendering_p99_ms_${count}`] = used.renderingP99Ms;
      }
    }
    await server.ask({ kind: 'vehicles', count: VEHICLES[0] as number, town: null });
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

/** What frames have cost, as rows. */
function framesOf(
  what: string,
  { scripts, rendering, drawn, share }: FrameTimes,
  seconds: number,
): { rows: Row[]; scriptP99Ms: number; renderingP99Ms: number } {
  // On a busy machine half a second may be without a frame.
  const timesOf = (ms: readonly number[]): Latencies => Latencies.of(ms.length > 0 ? ms : [0]);
  const [scriptMs, renderingMs] = [timesOf(scripts), timesOf(rendering)];
  const counted = { unit: 'drawn frames', perSecond: drawn / seconds };
  const timed = (ms: Latencies) => ({ ...counted, ...ms.percentiles(), worstMs: ms.percentile(1) });
  return {
    rows: [
      { what: `script time of a frame, ${what}`, ...timed(scriptMs), serverBusy: share },
      { what: `style, layout and paint of a frame, ${what}`, ...timed(renderingMs) },
    ],
    scriptP99Ms: scriptMs.percentile(0.99),
    renderingP99Ms: renderingMs.percentile(0.99),
  };
}

interface Asked {
  readonly smoke: boolean;
  readonly seconds: number;
  readonly tracedSeconds: number;
}

/** Frame times below a moving pointer: on the map of a town with names and the list beside it, and in the list of devices. */
async function watchUsed(
  browser: Browser,
  address: string,
  count: number,
  { smoke, tracedSeconds }: Asked,
): Promise<{ name: string; what: string; times: FrameTimes }[]> {
  await using page = await WatchedPage.open(browser);
  await page.goTo(address);
  await page.vehicles(count);
  await page.near(TOWN);
  if (!smoke) await sleep(WARMUP_MS);
  const town = await page.frameTimesBelowPointer(tracedSeconds, false);
  await page.devices();
  if (!smoke) await sleep(WARMUP_MS);
  const devices = await page.frameTimesBelowPointer(tracedSeconds, true);
  return [
    { name: 'town', what: 'names and list shown, the pointer moves', times: town },
    { name: 'devices', what: 'their list is scrolled', times: devices },
  ];
}

/** Frame times, and by how much the heap grows while the page goes on for a minute at least. */
async function watch(
  browser: Browser,
  address: string,
  count: number,
  { smoke, seconds, tracedSeconds }: Asked,
): Promise<{ times: FrameTimes; grown: number | null }> {
  await using page = await WatchedPage.open(browser);
  await page.load(address);
  await page.vehicles(count);
  if (smoke) return { times: await page.frameTimes(seconds), grown: null };
  await sleep(WARMUP_MS);
  const before = await page.heapBytes();
  // First: the browser collects garbage more often for some seconds after a collection that was asked for.
  await sleep((Math.max(HEAP_SECONDS_MIN, seconds) - tracedSeconds) * 1_000);
  const times = await page.frameTimes(tracedSeconds);
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
