import { Latencies } from './latencies.ts';
import type { CallTimes } from './measureCalls.ts';

const WARMUP_SHARE = 0.3;

/**
 * Calls an asynchronous function for about `seconds`, first to warm up, with `parallel` calls always under way.
 * Processor time is that of this process.
 */
export async function measureAsyncCalls(
  seconds: number,
  parallel: number,
  call: (n: number) => Promise<unknown>,
): Promise<CallTimes> {
  await callFor(seconds * WARMUP_SHARE, parallel, call, new Latencies());
  const latencies = new Latencies();
  const before = process.cpuUsage();
  const startMs = performance.now();
  const calls = await callFor(seconds * (1 - WARMUP_SHARE), parallel, call, latencies);
  const ms = performance.now() - startMs;
  const { user, system } = process.cpuUsage(before);
  return { perSecond: (calls * 1_000) / ms, cpuUs: (user + system) / calls, ...latencies.percentiles() };
}

async function callFor(
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
