import type { Row } from '../benchCase.ts';
import { Latencies, median } from './latencies.ts';
import { cpuUs } from './usage.ts';

const WARMUP_SHARE = 0.3;
const BLOCK = 256;

export type CallTimes = Required<Pick<Row, 'perSecond' | 'cpuUs' | 'p50Ms' | 'p99Ms' | 'p999Ms'>>;

/**
 * Calls a function for about `seconds`: first to warm up, then to measure the rate, then to measure single
 * calls for the percentiles, which include about 50 ns for the clock. `block` is the number of calls between two
 * readings of the clock: 1 where a call takes milliseconds.
 */
export function measureCalls(seconds: number, call: (n: number) => unknown, block = BLOCK): CallTimes {
  callFor(seconds * WARMUP_SHARE, call, block);
  const beforeUs = cpuUs();
  const { calls, ms } = callFor(seconds * (1 - WARMUP_SHARE), call, block);
  const usedUs = cpuUs() - beforeUs;
  const latencies = new Latencies();
  for (let n = 0; n < Math.min(calls, MEASURED_MAX); n++) {
    const startMs = performance.now();
    sink.result = call(n);
    latencies.add(performance.now() - startMs);
  }
  return { perSecond: (calls * 1_000) / ms, cpuUs: usedUs / calls, ...latencies.percentiles() };
}

export function medianTimes(rounds: readonly CallTimes[]): CallTimes {
  const of = (metric: keyof CallTimes) => median(rounds.map((round) => round[metric]));
  const [perSecond, cpuUs] = [of('perSecond'), of('cpuUs')];
  return { perSecond, cpuUs, p50Ms: of('p50Ms'), p99Ms: of('p99Ms'), p999Ms: of('p999Ms') };
}

const MEASURED_MAX = 100_000;
/** Holds results, so that the compiler cannot remove the call. */
const sink: { result: unknown } = { result: null };

function callFor(seconds: number, call: (n: number) => unknown, block: number) {
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  let calls = 0;
  do {
    for (let n = 0; n < block; n++) sink.result = call(calls + n);
    calls += block;
  } while (performance.now() < endMs);
  return { calls, ms: performance.now() - startMs };
}

export interface Contender {
  readonly what: string;
  readonly call: (n: number) => unknown;
  /** Calls between two readings of the clock: 1 where a call takes milliseconds. */
  readonly block?: number;
}

/** How many short rounds, and the seconds of one measurement in all rounds together. */
export interface Effort {
  readonly rounds: number;
  readonly seconds: number;
}

/** Ratios are the contender's processor time (or memory) divided by ours. */
export interface Compared {
  readonly rows: readonly Row[];
  readonly ratios: Readonly<Record<string, number>>;
}

export interface MeasuredContender {
  readonly row: Row;
  readonly rounds: readonly CallTimes[];
}

/** Measures contenders in short rounds, in turn and in alternating order, so that other work affects all of them. */
export function measureAlternately(
  contenders: readonly Contender[],
  { rounds, seconds }: Effort,
): MeasuredContender[] {
  const times = contenders.map((): CallTimes[] => []);
  for (let round = 0; round < rounds; round++) {
    const order = [...contenders.keys()];
    if (round % 2 === 1) order.reverse();
    for (const n of order) {
      const { call, block } = contenders[n]!;
      times[n]!.push(measureCalls(seconds / rounds, call, block));
    }
  }
  return contenders.map(({ what }, n) => {
    const row = { what, unit: 'calls', ...medianTimes(times[n]!) };
    return { row, rounds: times[n]! };
  });
}

/** How many times the processor time of `ours` a contender takes: the median of the rounds. */
export function ratioTo(ours: MeasuredContender, other: MeasuredContender): number {
  return median(ours.rounds.map(({ cpuUs }, round) => other.rounds[round]!.cpuUs / cpuUs));
}

/** As measureCalls, with `parallel` calls always under way. Processor time is that of this process. */
export async function measureAsyncCalls(
  seconds: number,
  parallel: number,
  call: (n: number) => Promise<unknown>,
): Promise<CallTimes> {
  await callInParallel(seconds * WARMUP_SHARE, parallel, call, new Latencies());
  const latencies = new Latencies();
  const beforeUs = cpuUs();
  const startMs = performance.now();
  const calls = await callInParallel(seconds * (1 - WARMUP_SHARE), parallel, call, latencies);
  const ms = performance.now() - startMs;
  const usedUs = cpuUs() - beforeUs;
  return { perSecond: (calls * 1_000) / ms, cpuUs: usedUs / calls, ...latencies.percentiles() };
}

async function callInParallel(
  seconds: number,
  parallel: number,
  call: (n: number) => Promise<unknown>,
  latencies: Latencies,
): Promise<number> {
  const endMs = performance.now() + seconds * 1_000;
  let calls = 0;
  const callInTurn = async () => {
    do {
      const startMs = performance.now();
      await call(calls++);
      latencies.add(performance.now() - startMs);
    } while (performance.now() < endMs);
  };
  await Promise.all(Array.from({ length: parallel }, callInTurn));
  return calls;
}
