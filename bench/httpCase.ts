import type { Service } from '../src/wiring.ts';
import { findRedisServer, startRedis } from '../test/support/redis.ts';
import type { CaseContext, CaseOutcome, Row } from './benchCase.ts';
import { Latencies } from './latencies.ts';
import type { LoadResult } from './measureLoad.ts';
import { median } from './median.ts';
import { startBenchService } from './service.ts';
import { openWorker, type Worker } from './worker.ts';
import type { FloorAnswer, FloorQuestion, FloorReply } from './workers/floorServer.ts';
import type { HttpLoad } from './workers/httpLoad.ts';
import { type BenchWorld, createWorld } from './world.ts';

/** A polling route under load, against the floors that answer the same bytes. */
export interface HttpCase {
  /** The route in Express' notation. */
  readonly route: string;
  readonly redis: boolean;
  /** Puts into the world whatever the route needs, and says what is asked; the floors answer what the last asks for. */
  prepare(world: BenchWorld, paths: number): Promise<HttpQuestion[]>;
  /** Whether an answer is one that is meant to be measured. */
  isGood(data: unknown): boolean;
}

/** Measured as one row. */
export interface HttpQuestion {
  readonly what: string;
  /** Asked in turn by every connection. */
  readonly paths: readonly string[];
}

const DEVICES = 100_000;
const SMOKE_DEVICES = 500;
const PATHS = 256;
const CONNECTIONS = 32;
const ROUNDS = 3;
const WARMUP_SECONDS = 1.5;
const SMOKE_SECONDS = 0.3;

/**
 * Measures a route on a world of devices: the service in this process, the load in another, each floor in one of
 * its own. They take turns in short rounds, so that whatever else the machine does meets all of them; a ratio is
 * the median of the rounds' ratios.
 */
export async function runHttpCase(spec: HttpCase, context: CaseContext): Promise<CaseOutcome> {
  if (spec.redis && findRedisServer() === null) {
    return { kind: 'skipped', reason: 'there is no redis-server in PATH' };
  }
  const devices = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_DEVICES : DEVICES);
  const { databaseUrl, say } = context;
  const world = await createWorld({ databaseUrl, devices, spread: 'towns', seed: 1, say });
  const questions = await spec.prepare(world, PATHS);
  const redis = spec.redis ? await startRedis() : null;
  const service = await startBenchService(databaseUrl, redis?.url ?? null);
  try {
    const rows = await measure(spec, context, service, world.key, questions);
    return { kind: 'measured', size: `${devices} devices`, ...rows };
  } finally {
    await service.stop();
    await redis?.stop();
  }
}

async function measure(
  spec: HttpCase,
  context: CaseContext,
  service: Service,
  key: string,
  questions: readonly HttpQuestion[],
) {
  const headers = { 'X-API-Key': key };
  const url = `http://127.0.0.1:${service.port}`;
  const last = questions.at(-1) as HttpQuestion;
  const answer = await sampleAnswer(`${url}${last.paths[0]}`, headers, spec);
  const load = openWorker<HttpLoad, LoadResult>(new URL('./workers/httpLoad.ts', import.meta.url));
  const floors = [
    await openFloor('express', spec.route, answer, last.paths),
    await openFloor('node', spec.route, answer, last.paths),
  ];
  try {
    const usage = async () => ({ usage: process.cpuUsage(), rssMb: process.memoryUsage.rss() / 2 ** 20 });
    const asked = questions.map((question): Contender => ({ ...question, url, usage, rounds: [] }));
    const contenders = [...asked, ...floors.map(({ contender }) => contender)];
    const rounds = context.smoke ? 1 : ROUNDS;
    const seconds = context.smoke ? SMOKE_SECONDS : context.seconds / rounds;
    const ask = ({ url, paths }: Contender, time: number) =>
      load.ask({ url, headers, paths, connections: CONNECTIONS, seconds: time });
    if (!context.smoke) for (const contender of contenders) await ask(contender, WARMUP_SECONDS);
    for (let round = 0; round < rounds; round++) {
      for (const contender of contenders) {
        contender.rounds.push(await runRound(contender, () => ask(contender, seconds)));
      }
    }
    return summarize(contenders);
  } finally {
    await Promise.all([load.close(), ...floors.map(({ worker }) => worker.close())]);
  }
}

interface Contender extends HttpQuestion {
  readonly url: string;
  usage(): Promise<{ usage: NodeJS.CpuUsage; rssMb: number }>;
  readonly rounds: Round[];
}

interface Round {
  readonly load: LoadResult;
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly rssMb: number;
}

async function runRound(contender: Contender, ask: () => Promise<LoadResult>): Promise<Round> {
  const before = await contender.usage();
  const load = await ask();
  const after = await contender.usage();
  const cpuUs = after.usage.user + after.usage.system - before.usage.user - before.usage.system;
  return {
    load,
    perSecond: load.completed / load.seconds,
    cpuUs: cpuUs / load.completed,
    rssMb: after.rssMb,
  };
}

function summarize(contenders: readonly Contender[]): { rows: Row[]; figures: Record<string, number> } {
  const [service, express, node] = contenders.slice(-3) as [Contender, Contender, Contender];
  const ratio = (floor: Contender, of: (round: Round) => number) =>
    median(service.rounds.map((round, n) => of(round) / of(floor.rounds[n] as Round)));
  return {
    rows: contenders.map(rowOf),
    figures: {
      of_express: ratio(express, (round) => round.perSecond),
      of_node: ratio(node, (round) => round.perSecond),
      // By processor time: the same when the server is what is busy, and steadier on a machine with other work.
      of_express_by_cpu: 1 / ratio(express, (round) => round.cpuUs),
    },
  };
}

function rowOf({ what, rounds }: Contender): Row {
  const latencies = new Latencies();
  for (const { load } of rounds) latencies.merge(load.latencies);
  return {
    what,
    perSecond: median(rounds.map((round) => round.perSecond)),
    ...latencies.percentiles(),
    cpuUs: median(rounds.map((round) => round.cpuUs)),
    rssMb: Math.max(...rounds.map((round) => round.rssMb)),
    serverBusy: median(rounds.map((round) => (round.cpuUs * round.perSecond) / 1e6)),
    loadBusy: median(rounds.map((round) => round.load.busy)),
  };
}

/** Headers that Node writes itself for each answer. */
const OWN_HEADERS = ['connection', 'date', 'keep-alive', 'transfer-encoding'];

async function sampleAnswer(
  url: string,
  headers: Record<string, string>,
  spec: HttpCase,
): Promise<FloorAnswer> {
  const response = await fetch(url, { headers });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${url} answers ${response.status}: ${body}`);
  if (!spec.isGood((JSON.parse(body) as { data: unknown }).data))
    throw new Error(`not the answer to measure: ${body}`);
  const all = [...response.headers].filter(([name]) => !OWN_HEADERS.includes(name));
  return { headers: Object.fromEntries(all), body };
}

async function openFloor(
  server: 'express' | 'node',
  route: string,
  answer: FloorAnswer,
  paths: readonly string[],
) {
  const worker: Worker<FloorQuestion, FloorReply> = openWorker(
    new URL('./workers/floorServer.ts', import.meta.url),
  );
  const { port } = await worker.ask({ kind: 'start', server, route, answer });
  const contender: Contender = {
    what: server === 'express' ? 'floor: Express + helmet' : 'floor: node:http',
    paths,
    url: `http://127.0.0.1:${port}`,
    usage: () => worker.ask({ kind: 'usage' }),
    rounds: [],
  };
  return { worker, contender };
}
