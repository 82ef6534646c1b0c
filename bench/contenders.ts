import type { CaseContext, Row } from './benchCase.ts';
import { Latencies } from './latencies.ts';
import type { LoadResult } from './measureLoad.ts';
import { median } from './median.ts';
import type { Worker } from './worker.ts';
import type { HttpLoad } from './workers/httpLoad.ts';

/** A server that is asked something, measured as one row. */
export interface Contender {
  readonly what: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Asked in turn by every connection. */
  readonly paths: readonly string[];
  /** API keys that ask in turn, in place of the one of the headers. */
  readonly keys?: readonly string[];
  /** Processor time and memory of the serving process so far. */
  usage(): Promise<{ usage: NodeJS.CpuUsage; rssMb: number }>;
  readonly rounds: Round[];
}

export interface Round {
  readonly load: LoadResult;
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly rssMb: number;
}

const CONNECTIONS = 32;
const ROUNDS = 5;
const WARMUP_SECONDS = 1.5;
const SMOKE_SECONDS = 0.3;

/**
 * Puts load on contenders in short rounds, in turn, so that whatever else the machine does meets all of them; a ratio
 * of two is the median of their rounds' ratios.
 */
export async function takeTurns(
  load: Worker<HttpLoad, LoadResult>,
  contenders: readonly Contender[],
  { smoke, seconds }: CaseContext,
): Promise<void> {
  const ask = (contender: Contender, time: number) => askLoad(load, contender, time);
  if (!smoke) for (const contender of contenders) await ask(contender, WARMUP_SECONDS);
  for (let round = 0; round < (smoke ? 1 : ROUNDS); round++) {
    for (const contender of contenders) {
      contender.rounds.push(
        await runRound(contender, () => ask(contender, smoke ? SMOKE_SECONDS : seconds / ROUNDS)),
      );
    }
  }
}

/** Load on one of them for some seconds. */
export function askLoad(
  load: Worker<HttpLoad, LoadResult>,
  { url, headers, paths, keys = [] }: Contender,
  seconds: number,
): Promise<LoadResult> {
  return load.ask({ url, headers, paths, keys, connections: CONNECTIONS, seconds });
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

export function ratioOf(a: Contender, b: Contender, figure: (round: Round) => number): number {
  return median(a.rounds.map((round, n) => figure(round) / figure(b.rounds[n] as Round)));
}

/** Of this process, where a service is measured that runs in it. */
export async function ownUsage() {
  return { usage: process.cpuUsage(), rssMb: process.memoryUsage.rss() / 2 ** 20 };
}

export function rowOf({ what, rounds }: Contender): Row {
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
