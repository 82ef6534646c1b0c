import type { CaseContext, Row } from '../benchCase.ts';
import { Latencies, median } from '../measure/latencies.ts';
import type { LoadResult } from '../measure/measureLoad.ts';
import type { HttpCalls } from '../measure/openLoop.ts';
import type { ServerUsage, Usage } from '../measure/usage.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { FloorQuestion } from '../workers/floorServer.ts';
import type { HttpLoad } from '../workers/httpLoad.ts';

/** A server and what it is asked, measured as one row. */
export interface MeasuredServer extends HttpCalls {
  readonly what: string;
  /** Processor time and memory of the serving process so far. */
  usage(): Promise<Usage>;
  readonly rounds: Round[];
}

export interface Round {
  readonly load: LoadResult;
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly rssMb: number;
}

type LoadWorker = Worker<HttpLoad, LoadResult>;
export const openHttpLoad = (): LoadWorker => openWorker('httpLoad');

/** Starts a floor in its own process. */
export async function openFloor(question: FloorQuestion) {
  const worker = openWorker<FloorQuestion, ServerUsage>('floorServer');
  const { port } = await worker.ask(question);
  return {
    urls: [`http://127.0.0.1:${port}`],
    usage: (): Promise<Usage> => worker.ask({ kind: 'usage' }),
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
}

const CONNECTIONS = 32;
/** Short and many: the machine may change its speed several times in a second. */
const ROUNDS = 20;
const WARMUP_SECONDS = 1.5;
const SMOKE_SECONDS = 0.3;

/** Puts load on servers in short rounds, in turn, so that other work on the machine affects all of them. */
export async function measureInTurn(
  load: LoadWorker,
  servers: readonly MeasuredServer[],
  { smoke, seconds }: CaseContext,
): Promise<void> {
  if (!smoke) for (const measured of servers) await askLoad(load, measured, WARMUP_SECONDS);
  const time = smoke ? SMOKE_SECONDS : seconds / ROUNDS;
  for (let round = 0; round < (smoke ? 1 : ROUNDS); round++) {
    for (const measured of servers) measured.rounds.push(await runRound(load, measured, time));
  }
}

export function askLoad(
  load: LoadWorker,
  { urls, headers, paths, keys = [] }: HttpCalls,
  seconds: number,
): Promise<LoadResult> {
  return load.ask({ urls, headers, paths, keys, connections: CONNECTIONS, seconds });
}

async function runRound(worker: LoadWorker, measured: MeasuredServer, time: number): Promise<Round> {
  const before = await measured.usage();
  const load = await askLoad(worker, measured, time);
  const after = await measured.usage();
  const { completed, seconds } = load;
  const cpuUs = (after.cpuUs - before.cpuUs) / completed;
  return { load, perSecond: completed / seconds, cpuUs, rssMb: after.rssMb };
}

/** What one server measured divided by what another did, round by round. */
export function ratiosOf(a: MeasuredServer, b: MeasuredServer, metric: (round: Round) => number): number[] {
  return a.rounds.map((round, n) => metric(round) / metric(b.rounds[n] as Round));
}

export function rowOf({ what, rounds }: MeasuredServer): Row {
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
