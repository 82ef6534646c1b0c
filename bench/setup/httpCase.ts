import type { Service } from '../../src/wiring.ts';
import { findRedisServer, startRedis } from '../../test/support/redis.ts';
import type { CaseContext, CaseOutcome, Row } from '../benchCase.ts';
import type { LoadResult } from '../measure/measureLoad.ts';
import { type Profile, profile } from '../measure/profile.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { FloorAnswer, FloorQuestion, FloorReply } from '../workers/floorServer.ts';
import type { HttpLoad } from '../workers/httpLoad.ts';
import {
  askLoad,
  type MeasuredServer,
  measureInTurn,
  ownUsage,
  type Round,
  ratioOf,
  rowOf,
} from './measuredServer.ts';
import { startBenchService } from './service.ts';
import { type BenchWorld, createWorld } from './world.ts';

/** A polling route under load, compared with floors: minimal servers that answer the same bytes. */
export interface HttpCase {
  /** The route in Express' notation. */
  readonly route: string;
  readonly redis: boolean;
  /** Stores what the route needs and returns the questions. The floors answer the last question. */
  prepare(world: BenchWorld, paths: number): Promise<HttpQuestion[]>;
  /** Whether this is the answer that should be measured. */
  isGood(data: unknown): boolean;
}

/** Measured as one row. */
export interface HttpQuestion {
  readonly what: string;
  /** Every connection asks them in turn. */
  readonly paths: readonly string[];
  /** Keys to use in turn. Default: the key of the world. */
  readonly keys?: readonly string[];
}

const DEVICES = 100_000;
const SMOKE_DEVICES = 500;
const PATHS = 256;

/**
 * Measures a route on a world of devices: the service in this process, the load generator in another, each floor in
 * its own.
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
  const url = `http://127.0.0.1:${service.port}`;
  const last = questions.at(-1) as HttpQuestion;
  const headers = { 'X-API-Key': last.keys?.[0] ?? key };
  const answer = await sampleAnswer(`${url}${last.paths[0]}`, headers, spec);
  const load = openWorker<HttpLoad, LoadResult>(new URL('../workers/httpLoad.ts', import.meta.url));
  const floors = [
    await openFloor('express', spec.route, answer, { headers, paths: last.paths }),
    await openFloor('node', spec.route, answer, { headers, paths: last.paths }),
  ];
  try {
    const asked = questions.map(
      (question): MeasuredServer => ({ ...question, url, headers, usage: ownUsage, rounds: [] }),
    );
    const servers = [...asked, ...floors.map(({ measured }) => measured)];
    await measureInTurn(load, servers, context);
    const profiles = context.profile
      ? [await profileLoad(load, asked.at(-1) as MeasuredServer, context)]
      : [];
    return { ...summarize(servers), profiles };
  } finally {
    await Promise.all([load.close(), ...floors.map(({ worker }) => worker.close())]);
  }
}

function profileLoad(
  load: Worker<HttpLoad, LoadResult>,
  measured: MeasuredServer,
  { seconds }: CaseContext,
): Promise<Profile> {
  return profile(
    `a call of ${measured.what}`,
    async () => (await askLoad(load, measured, seconds)).completed,
  );
}

function summarize(servers: readonly MeasuredServer[]): { rows: Row[]; metrics: Record<string, number> } {
  const [service, express, node] = servers.slice(-3) as [MeasuredServer, MeasuredServer, MeasuredServer];
  const perSecond = (round: Round) => round.perSecond;
  return {
    rows: servers.map(rowOf),
    metrics: {
      of_express: ratioOf(service, express, perSecond),
      of_node: ratioOf(service, node, perSecond),
      // By processor time: the same value when the server is the bottleneck, and steadier on a busy machine.
      of_express_by_cpu: 1 / ratioOf(service, express, (round) => round.cpuUs),
    },
  };
}

/** Headers that Node itself adds to each answer. */
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
  asked: Pick<MeasuredServer, 'headers' | 'paths'>,
) {
  const worker: Worker<FloorQuestion, FloorReply> = openWorker(
    new URL('../workers/floorServer.ts', import.meta.url),
  );
  const { port } = await worker.ask({ kind: 'start', server, route, answer });
  const measured: MeasuredServer = {
    what: server === 'express' ? 'floor: Express + helmet' : 'floor: node:http',
    ...asked,
    url: `http://127.0.0.1:${port}`,
    usage: () => worker.ask({ kind: 'usage' }),
    rounds: [],
  };
  return { worker, measured };
}
