import autocannon from 'autocannon';
import { Latencies } from './latencies.ts';

export interface LoadResult {
  readonly completed: number;
  /** From the first request to the last answer. */
  readonly seconds: number;
  /** Buckets of Latencies. */
  readonly latencies: readonly number[];
  /** Share of one processor that making the load took; near 1 the server may have been able to do more. */
  readonly busy: number;
}

const ANSWER_LIMIT_S = 10;
/** autocannon looks at the clock this often, so a run is at most so much longer than asked for. */
const SAMPLE_MS = 50;

/**
 * Makes load with autocannon in this process. Throws when any request was not answered, or not with 2xx: a server
 * that refuses is quick, and its figures are worth nothing.
 */
export async function measureLoad(options: autocannon.Options): Promise<LoadResult> {
  const latencies = new Latencies();
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  let lastMs = startMs;
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const run = autocannon(
      { ...options, timeout: ANSWER_LIMIT_S, sampleInt: SAMPLE_MS },
      (error: Error | null, result) => (error === null ? resolve(result) : reject(error)),
    );
    run.on('response', (_client, _status, _bytes, ms) => {
      latencies.add(ms);
      lastMs = performance.now();
    });
  });
  const seconds = (lastMs - startMs) / 1_000;
  const cpu = process.cpuUsage(cpuBefore);
  const completed = result.requests.total;
  refuse(result, completed, options.connections ?? 1);
  return { completed, seconds, latencies: latencies.counts, busy: (cpu.user + cpu.system) / 1e6 / seconds };
}

function refuse(result: autocannon.Result, completed: number, connections: number): void {
  const problems = [
    [result.non2xx, 'answers that were not 2xx'],
    [result.errors, 'connection errors'],
    [result.timeouts, 'time-outs'],
    [result.mismatches, 'unexpected bodies'],
    // A connection that the server closes takes its request with it, and autocannon silently opens another.
    [Math.max(0, result.requests.sent - completed - connections), 'requests without an answer'],
    [completed === 0 ? 1 : 0, 'run without a single answer'],
  ] as const;
  const found = problems.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  if (found.length === 0) return;
  const codes = Object.entries(result.statusCodeStats ?? {}).map(([code, { count }]) => `${code}: ${count}`);
  throw new Error(`the load failed: ${found.join(', ')} (${codes.join(', ')})`);
}
