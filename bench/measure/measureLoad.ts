import autocannon from 'autocannon';
import { Latencies } from './latencies.ts';
import { cpuUs } from './usage.ts';

export interface LoadResult {
  readonly completed: number;
  /** From the first request to the last answer. */
  readonly seconds: number;
  readonly latencies: string;
  /** Share of one processor that the load generator used. Near 1 the server may have had spare capacity. */
  readonly busy: number;
}

const ANSWER_LIMIT_S = 10;
/** autocannon reads the clock this often, so a run may be longer by this much. */
const SAMPLE_MS = 50;

/**
 * Makes load with autocannon in this process, for longer than `options` say while nothing was answered. Throws when any
 * request got no answer, or one that is not 2xx: errors are fast, and their timings are worthless.
 */
export async function measureLoad(options: autocannon.Options): Promise<LoadResult> {
  const latencies = new Latencies();
  const beforeUs = cpuUs();
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
  const completed = result.requests.total;
  const longer = 2 * Number(options.duration ?? 0);
  if (completed + result.non2xx + result.errors === 0 && longer > 0 && longer < 2 * ANSWER_LIMIT_S)
    return measureLoad({ ...options, duration: Math.ceil(longer) });
  checkAnswers(result, completed, options.connections ?? 1);
  const busy = (cpuUs() - beforeUs) / 1e6 / seconds;
  return { completed, seconds, latencies: latencies.encoded(), busy };
}

/** Several at once, as one. */
export async function measureLoads(all: readonly autocannon.Options[]): Promise<LoadResult> {
  const latencies = new Latencies();
  let completed = 0;
  const results = await Promise.all(all.map(measureLoad));
  for (const result of results) {
    latencies.merge(result.latencies);
    completed += result.completed;
  }
  const most = (of: (result: LoadResult) => number) => Math.max(...results.map(of));
  const [seconds, busy] = [most((result) => result.seconds), most((result) => result.busy)];
  return { completed, seconds, latencies: latencies.encoded(), busy };
}

function checkAnswers(result: autocannon.Result, completed: number, connections: number): void {
  // What the caller has already is an answer, too.
  const unchanged = result.statusCodeStats?.['304']?.count ?? 0;
  const errors = [
    [result.non2xx - unchanged, 'answers that were not 2xx'],
    [result.errors, 'connection errors'],
    [result.timeouts, 'time-outs'],
    [result.mismatches, 'unexpected bodies'],
    // When the server closes a connection, autocannon opens another without reporting the lost request.
    [Math.max(0, result.requests.sent - completed - connections), 'requests without an answer'],
    [completed === 0 ? 1 : 0, 'run without a single answer'],
  ] as const;
  const found = errors.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  if (found.length === 0) return;
  const codes = Object.entries(result.statusCodeStats ?? {}).map(([code, { count }]) => `${code}: ${count}`);
  throw new Error(`the load failed: ${found.join(', ')} (${codes.join(', ')})`);
}
