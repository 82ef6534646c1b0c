import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchCase, CaseContext, CaseOutcome, Part, Row } from '../benchCase.ts';
import { Latencies, median } from '../measure/latencies.ts';
import { metricsOf } from '../measure/noise.ts';
import type { OpenResult } from '../measure/openLoop.ts';
import { profile } from '../measure/profile.ts';
import { openWorker } from '../worker.ts';
import type { FloorAnswer } from '../workers/floorServer.ts';
import type { ProbeQuestion } from '../workers/latencyProbe.ts';
import {
  askLoad,
  type MeasuredServer,
  measureInTurn,
  openFloor,
  openHttpLoad,
  ratiosOf,
  rowOf,
} from './measuredServer.ts';
import { startPods } from './pods.ts';
import { type BenchWorld, createWorld } from './world.ts';

/** A polling route under load, compared with floors: minimal servers that answer the same bytes. */
export interface HttpCase {
  readonly route: string;
  readonly redis?: boolean;
  /** Stores what the route needs and returns the questions. The floors answer the last question. */
  prepare(world: BenchWorld, paths: number, context: CaseContext): Promise<HttpQuestion[]>;
  isGood(data: unknown): boolean;
}

type HttpQuestion = Pick<MeasuredServer, 'what' | 'paths' | 'keys'>;

const DEVICES = 100_000;
const SMOKE_DEVICES = 500;
const PATHS = 256;
const SHARES = [0.25, 0.5, 0.75];
const SMOKE_SECONDS = 0.1;

export const httpCase = (about: string, spec: HttpCase): BenchCase => ({
  about,
  run: (context) => runHttpCase(spec, context),
});

/** The service runs in this process, the load generator in another, each floor in its own. */
export async function runHttpCase(spec: HttpCase, context: CaseContext): Promise<CaseOutcome> {
  const devices = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_DEVICES : DEVICES);
  const world = await createWorld(context, devices);
  const questions = await spec.prepare(world, PATHS, context);
  await using pods = await startPods(context, spec.redis);
  if (pods === null) return { kind: 'skipped', reason: 'there is no redis-server in PATH' };
  const { urls, usage } = pods;
  const last = questions.at(-1) as HttpQuestion;
  const headers = { 'X-API-Key': last.keys?.[0] ?? world.key };
  const answer = await sampleAnswer(`${urls[0]}${last.paths[0]}`, headers, spec);
  await using load = openHttpLoad();
  const floor = { kind: 'start', route: spec.route, answer } as const;
  await using express = await openFloor({ ...floor, server: 'express' });
  await using together = await openFloor({ ...floor, server: 'nodeTogether' });
  await using node = await openFloor({ ...floor, server: 'node' });
  const asked = questions.map(
    (question): MeasuredServer => ({ ...question, urls, headers, usage, rounds: [] }),
  );
  const own = { headers, paths: last.paths };
  const servers: MeasuredServer[] = [
    ...asked,
    { what: 'floor: Express + helmet', ...own, ...express, rounds: [] },
    { what: 'floor: node:http, answers together', ...own, ...together, rounds: [] },
    { what: 'floor: node:http', ...own, ...node, rounds: [] },
  ];
  await measureInTurn(load, servers, context);
  const measured = asked.at(-1) as MeasuredServer;
  const openLoop = await measureOpenLoop([measured, servers.at(-1) as MeasuredServer], context);
  const calls = async () => (await askLoad(load, measured, context.seconds)).completed;
  const profiles = context.profile ? [await profile(`a call of ${measured.what}`, calls)] : [];
  const { rows, metrics, noise } = summarize(servers);
  return {
    kind: 'measured',
    size: `${devices} devices${urls.length > 1 ? `, ${urls.length} pods` : ''}`,
    rows: [...rows, ...openLoop.rows],
    metrics: { ...metrics, ...openLoop.metrics },
    noise,
    profiles,
  };
}

function summarize(servers: readonly MeasuredServer[]) {
  type Last = [MeasuredServer, MeasuredServer, MeasuredServer, MeasuredServer];
  const [service, express, together, node] = servers.slice(-4) as Last;
  const rate = (floor: MeasuredServer) => ratiosOf(service, floor, ({ perSecond }) => perSecond);
  // A load generator that is the bottleneck makes rates equal, but not the processor time of the servers.
  const byCpu = (floor: MeasuredServer) => ratiosOf(floor, service, ({ cpuUs }) => cpuUs);
  return {
    rows: servers.map(rowOf),
    ...metricsOf({
      of_express: rate(express),
      of_node: rate(node),
      of_express_by_cpu: byCpu(express),
      of_node_together_by_cpu: byCpu(together),
      of_node_by_cpu: byCpu(node),
    }),
  };
}

/**
 * How long calls take at shares of the rate that `service` was measured at before, and at the same rates of a floor,
 * which has the share of the load generator and the machine.
 */
async function measureOpenLoop(
  [service, floor]: readonly [MeasuredServer, MeasuredServer],
  { smoke, seconds }: CaseContext,
): Promise<Part> {
  await using probe = openWorker<ProbeQuestion, OpenResult>('latencyProbe');
  const capacity = median(service.rounds.map(({ perSecond }) => perSecond));
  const rows: Row[] = [];
  const metrics: Record<string, number> = {};
  const measure = async (what: string, share: number, server: MeasuredServer) => {
    const { urls, headers, paths, keys = [] } = server;
    await probe.ask({ kind: 'start', urls, headers, paths, keys, perSecond: share * capacity });
    await sleep(1_000 * (smoke ? SMOKE_SECONDS : seconds / SHARES.length));
    const { completed, seconds: took, latencies } = await probe.ask({ kind: 'stop' });
    const times = new Latencies(latencies).percentiles();
    rows.push({ what, perSecond: completed / took, ...times, histogram: latencies });
    return times;
  };
  for (const share of SHARES) {
    const percent = 100 * share;
    const what = `${service.what}, ${percent} % of that rate`;
    const { p50Ms, p99Ms, p999Ms } = await measure(what, share, service);
    await measure('node:http at the same rate', share, floor);
    metrics[`p50_ms_at_${percent}`] = p50Ms;
    metrics[`p99_ms_at_${percent}`] = p99Ms;
    metrics[`p999_ms_at_${percent}`] = p999Ms;
  }
  return { rows, metrics };
}

/** Headers that Node itself adds to each answer. */
const OWN_HEADERS = ['connection', 'date', 'keep-alive', 'transfer-encoding'];

async function sampleAnswer(
  url: string,
  headers: Record<string, string>,
  { isGood }: HttpCase,
): Promise<FloorAnswer> {
  const response = await fetch(url, { headers });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${url} answers ${response.status}: ${body}`);
  if (!isGood((JSON.parse(body) as { data: unknown }).data))
    throw new Error(`not the answer to measure: ${body}`);
  const all = [...response.headers].filter(([name]) => !OWN_HEADERS.includes(name));
  return { headers: Object.fromEntries(all), body };
}
