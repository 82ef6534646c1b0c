import { Latencies } from './latencies.ts';
import { median } from './median.ts';

const WARMUP_SHARE = 0.3;
/** Calls between two readings of the clock. */
const BLOCK = 256;

export interface CallTimes {
  readonly perSecond: number;
  /** Processor time of one call: equal to the elapsed time on an idle machine, and steadier on a busy one. */
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly p975Ms: number;
  readonly p99Ms: number;
}

/**
 * Calls a function for about `seconds`: first to warm up, then to measure the rate, then to measure single
 * calls for the percentiles, which include about 50 ns for the clock. `block` is the number of calls between two
 * readings of the clock: 1 where a call takes milliseconds.
 */
export function measureCalls(seconds: number, call: (n: number) => unknown, block = BLOCK): CallTimes {
  callFor(seconds * WARMUP_SHARE, call, block);
  const before = process.cpuUsage();
  const { calls, ms } = callFor(seconds * (1 - WARMUP_SHARE), call, block);
  const cpu = process.cpuUsage(before);
  const latencies = new Latencies();
  for (let n = 0; n < Math.min(calls, MEASURED_MAX); n++) {
    const startMs = performance.now();
    sink.result = call(n);
    latencies.add(performance.now() - startMs);
  }
  const cpuUs = (cpu.user + cpu.system) / calls;
  return { perSecond: (calls * 1_000) / ms, cpuUs, ...latencies.percentiles() };
}

/** The medians of several measurements of the same call. */
export function medianTimes(rounds: readonly CallTimes[]): CallTimes {
  const of = (metric: keyof CallTimes) => median(rounds.map((round) => round[metric]));
  return {
    perSecond: of('perSecond'),
    cpuUs: of('cpuUs'),
    p50Ms: of('p50Ms'),
    p975Ms: of('p975Ms'),
    p99Ms: of('p99Ms'),
  };
}

const MEASURED_MAX = 100_000;
/** Holds results, so that the compiler cannot remove the call. */
const sink: { result: unknown } = { result: null };

function callFor(
  seconds: number,
  call: (n: number) => unknown,
  block: number,
): { calls: number; ms: number } {
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  let calls = 0;
  do {
    for (let n = 0; n < block; n++) sink.result = call(calls + n);
    calls += block;
  } while (performance.now() < endMs);
  return { calls, ms: performance.now() - startMs };
}
