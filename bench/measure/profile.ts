import type { Profiler, Runtime } from 'node:inspector';
import { Session } from 'node:inspector/promises';

export interface Profile {
  /** What one call is: `a call of nearest k=1`, `the start`. */
  readonly of: string;
  /** Microseconds for each call, the largest first. The last entry is the rest. */
  readonly parts: readonly { readonly part: string; readonly us: number }[];
  /** All of it, for a file that DevTools opens. Records do not have it. */
  readonly cpuProfile?: Profiler.Profile;
}

const SAMPLE_US = 100;
const PARTS = 14;
const PROJECT_URL = new URL('../..', import.meta.url).href;

/**
 * Profiles this process with V8's sampling profiler while `work` runs. `work` returns how many calls it made. Time is
 * self time by function, without idle time.
 */
export async function profile(of: string, work: () => Promise<number>): Promise<Profile> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
    await session.post('Profiler.start');
    const calls = await work();
    const { profile } = await session.post('Profiler.stop');
    // Paths of this machine are of no use elsewhere.
    for (const { callFrame } of profile.nodes)
      callFrame.url = callFrame.url.replace(PROJECT_URL, '').replace(/^.*(?=node_modules\/)/, '');
    return { of, parts: greatest(selfTimesUs(profile), calls), cpuProfile: profile };
  } finally {
    session.disconnect();
  }
}

const CALLS = 500_000;

export function profileCalls(what: string, call: (n: number) => unknown): Promise<Profile> {
  return profile(`a call of ${what}`, async () => {
    for (let n = 0; n < CALLS; n++) call(n);
    return CALLS;
  });
}

const NO_WORK = ['(idle)', '(root)'];

function selfTimesUs({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Map<string, number> {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const times = new Map<string, number>();
  for (const [n, id] of samples.entries()) {
    const frame = frames.get(id);
    if (frame === undefined || NO_WORK.includes(frame.functionName) || frame.url.startsWith('node:inspector'))
      continue;
    const name = nameOf(frame);
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[n] ?? 0));
  }
  return times;
}

function nameOf({ functionName, url }: Runtime.CallFrame): string {
  const name = functionName === '' ? 'anonymous' : functionName;
  if (url === '') return name;
  return `${name}, ${url.replace('node_modules/', '')}`;
}

function greatest(times: ReadonlyMap<string, number>, calls: number): Profile['parts'] {
  const parts = [...times].map(([part, us]) => ({ part, us: us / calls })).sort((a, b) => b.us - a.us);
  const rest = parts.slice(PARTS).reduce((sum, { us }) => sum + us, 0);
  return [...parts.slice(0, PARTS), { part: `${Math.max(0, parts.length - PARTS)} others`, us: rest }];
}
