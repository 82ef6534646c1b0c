import { Latencies } from './latencies.ts';
import { median } from './median.ts';

const WARMUP_SHARE = 0.3;
/** Calls between two looks at the clock, where they take microseconds. */
const BLOCK = 256;

export interface CallFigures {
  readonly perSecond: number;
  /** Processor time of one call: the same where nothing else runs, and steadier where something does. */
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly p975Ms: number;
  readonly p99Ms: number;
}

/**
 * Calls a function of this process for about so long, once to be compiled and once to be measured: the rate without
 * looking at the clock in between, then as many percentiles of single calls, which contain some 50 ns for the clock.
 * `block`: how many calls there are between two looks, 1 where a call takes milliseconds.
 */
export function measureCalls(seconds: number, call: (n: number) => unknown, block = BLOCK): CallFigures {
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
export function medianFigures(rounds: readonly CallFigures[]): CallFigures {
  const of = (figure: keyof CallFigures) => median(rounds.map((round) => round[figure]));
  return {
    perSecond: of('perSecond'),
    cpuUs: of('cpuUs'),
    p50Ms: of('p50Ms'),
    p975Ms: of('p975Ms'),
    p99Ms: of('p99Ms'),
  };
}

const MEASURED_MAX = 100_000;
/** Where results go, so that no compiler finds the call to be in vain. */
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
