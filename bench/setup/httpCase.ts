import { findRedisServer, startRedis } from '../../test/support/redis.ts';
import type { BenchCase, CaseContext, CaseOutcome, Part } from '../benchCase.ts';
import { profile } from '../measure/profile.ts';
import { usageNow } from '../measure/usage.ts';
import type { FloorAnswer, FloorQuestion } from '../workers/floorServer.ts';
import {
  askLoad,
  type MeasuredServer,
  measureInTurn,
  openHttpLoad,
  openServer,
  type Round,
  ratioOf,
  rowOf,
} from './measuredServer.ts';
import { startBenchService } from './service.ts';
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

const openFloor = (question: FloorQuestion) => openServer('floorServer', question);

const DEVICES = 100_000;
const SMOKE_DEVICES = 500;
const PATHS = 256;

export const httpCase = (about: string, spec: HttpCase): BenchCase => ({
  about,
  run: (context) => runHttpCase(spec, context),
});

/** The service runs in this process, the load generator in another, each floor in its own. */
export async function runHttpCase(spec: HttpCase, context: CaseContext): Promise<CaseOutcome> {
  if (spec.redis && findRedisServer() === null) {
    return { kind: 'skipped', reason: 'there is no redis-server in PATH' };
  }
  const devices = context.sizes?.at(-1) ?? (context.smoke ? SMOKE_DEVICES : DEVICES);
  const world = await createWorld(context, devices);
  const questions = await spec.prepare(world, PATHS, context);
  const redis = spec.redis ? await startRedis() : null;
  try {
    await using service = await startBenchService(context.databaseUrl, redis?.url ?? null);
    const { url } = service;
    const last = questions.at(-1) as HttpQuestion;
    const headers = { 'X-API-Key': last.keys?.[0] ?? world.key };
    const answer = await sampleAnswer(`${url}${last.paths[0]}`, headers, spec);
    await using load = openHttpLoad();
    const floor = { kind: 'start', route: spec.route, answer } as const;
    await using express = await openFloor({ ...floor, server: 'express' });
    await using node = await openFloor({ ...floor, server: 'node' });
    const asked = questions.map(
      (question): MeasuredServer => ({
        ...question,
        url,
        headers,
        usage: async () => usageNow(),
        rounds: [],
      }),
    );
    const own = { headers, paths: last.paths };
    const servers: MeasuredServer[] = [
      ...asked,
      { what: 'floor: Express + helmet', ...own, ...express, rounds: [] },
      { what: 'floor: node:http', ...own, ...node, rounds: [] },
    ];
    await measureInTurn(load, servers, context);
    const measured = asked.at(-1) as MeasuredServer;
    const calls = async () => (await askLoad(load, measured, context.seconds)).completed;
    const profiles = context.profile ? [await profile(`a call of ${measured.what}`, calls)] : [];
    return { kind: 'measured', size: `${devices} devices`, ...summarize(servers), profiles };
  } finally {
    await redis?.stop();
  }
}

function summarize(servers: readonly MeasuredServer[]): Part {
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
