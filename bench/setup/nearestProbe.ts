import { Latencies } from '../measure/latencies.ts';
import type { OpenResult } from '../measure/openLoop.ts';
import { openWorker } from '../worker.ts';
import type { ProbeQuestion } from '../workers/latencyProbe.ts';
import { nearestPaths } from './places.ts';

const PATHS = 256;
export const PROBES_PER_SECOND = 500;

/** A customer in another process that calls nearest at a steady rate. */
export interface NearestProbe extends AsyncDisposable {
  /** The times of its calls while `work` goes on. */
  during(work: () => Promise<unknown>): Promise<Latencies>;
}

export function openNearestProbe(url: string, key: string, perSecond = PROBES_PER_SECOND): NearestProbe {
  const probe = openWorker<ProbeQuestion, OpenResult>('latencyProbe');
  const [headers, paths] = [{ 'X-API-Key': key }, nearestPaths(PATHS)];
  return {
    during: async (work) => {
      await probe.ask({ kind: 'start', urls: [url], headers, paths, perSecond });
      await work();
      return new Latencies((await probe.ask({ kind: 'stop' })).latencies);
    },
    [Symbol.asyncDispose]: () => probe[Symbol.asyncDispose](),
  };
}
