import type { Service } from '../../src/wiring.ts';
import { Latencies } from '../measure/latencies.ts';
import { openWorker } from '../worker.ts';
import type { ProbeQuestion, ProbeResult } from '../workers/latencyProbe.ts';
import { nearestPaths } from './places.ts';
import { INGEST_TOKEN } from './service.ts';

const PATHS = 256;
export const PROBES_PER_SECOND = 500;

/** A customer in another process that calls nearest at a steady rate. */
export interface NearestProbe {
  /** The times of its calls while `work` goes on. */
  during(work: () => Promise<unknown>): Promise<Latencies>;
  close(): Promise<void>;
}

export function openNearestProbe(
  { port }: Service,
  key: string,
  perSecond = PROBES_PER_SECOND,
): NearestProbe {
  const probe = openWorker<ProbeQuestion, ProbeResult>(
    new URL('../workers/latencyProbe.ts', import.meta.url),
  );
  const [url, headers, paths] = [`http://127.0.0.1:${port}`, { 'X-API-Key': key }, nearestPaths(PATHS)];
  return {
    during: async (work) => {
      await probe.ask({ kind: 'start', url, headers, paths, perSecond });
      await work();
      return new Latencies((await probe.ask({ kind: 'stop' })).latencies);
    },
    close: () => probe.close(),
  };
}

/** Sends points to the ingest port and reads the answer; throws unless it is 200. */
export async function sendPoints({ ingestPort }: Service, points: readonly object[]): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${ingestPort}/positions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN },
    body: JSON.stringify(points),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`/positions answered ${response.status}: ${text}`);
}
