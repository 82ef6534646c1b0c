import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchCase, Row } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';
import { median } from '../measure/median.ts';
import { profile } from '../measure/profile.ts';
import { nearestPaths } from '../setup/nearestCase.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { ImportOrder, ImportReply } from '../workers/importClient.ts';
import type { ProbeQuestion, ProbeResult } from '../workers/latencyProbe.ts';

const DEVICES = 100_000;
const SMOKE_DEVICES = 500;
/** The largest import that is allowed. */
const FEATURES = 200;
const VERTICES = 2_000;
const SMOKE_FEATURES = 10;
const ROUNDS = 5;
const PATHS = 256;
const PROBES_PER_SECOND = 500;
const SMOKE_SECONDS = 0.3;

export const bench: BenchCase = {
  about: 'the largest import of areas, and its effect on nearest calls',
  run: async (context) => {
    const { databaseUrl, smoke, say } = context;
    const devices = context.sizes?.at(-1) ?? (smoke ? SMOKE_DEVICES : DEVICES);
    const features = smoke ? SMOKE_FEATURES : FEATURES;
    const world = await createWorld({ databaseUrl, devices, spread: 'towns', seed: 1, say });
    const service = await startBenchService(databaseUrl);
    const probe = openWorker<ProbeQuestion, ProbeResult>(
      new URL('../workers/latencyProbe.ts', import.meta.url),
    );
    const client = openWorker<ImportOrder, ImportReply>(
      new URL('../workers/importClient.ts', import.meta.url),
    );
    try {
      const url = `http://127.0.0.1:${service.port}`;
      const headers = { 'X-API-Key': world.key };
      const make = (times: number) => client.ask({ kind: 'make', times, features, vertices: VERTICES });
      const post = () => client.ask({ kind: 'post', url, headers });
      const probing = async (work: () => Promise<void>): Promise<Latencies> => {
        await probe.ask({
          kind: 'start',
          url,
          headers,
          paths: nearestPaths(PATHS),
          perSecond: PROBES_PER_SECOND,
        });
        await work();
        return new Latencies((await probe.ask({ kind: 'stop' })).latencies);
      };
      if (!smoke) {
        await make(1);
        await post();
      }
      const alone = await probing(() => sleep(smoke ? SMOKE_SECONDS * 1_000 : context.seconds * 500));
      const { bytes, parseSeconds } = await make(smoke ? 1 : ROUNDS);
      let times: readonly number[] = [];
      const meanwhile = await probing(async () => {
        times = (await post()).seconds;
      });
      const profiles = [];
      if (context.profile) {
        await make(ROUNDS);
        const work = async () => {
          await probing(async () => void (await post()));
          return ROUNDS;
        };
        profiles.push(await profile('an import during nearest calls, in the serving process,', work));
      }
      return {
        kind: 'measured',
        profiles,
        size: `${features} features of ${VERTICES} vertices, ${Math.round(bytes / 2 ** 20)} MB; ${devices} devices`,
        ...summarize(median(times), parseSeconds, alone, meanwhile),
      };
    } finally {
      await probe.close();
      await client.close();
      await service.stop();
    }
  },
};

function summarize(seconds: number, parseSeconds: number, alone: Latencies, meanwhile: Latencies) {
  const rows: Row[] = [
    { what: 'import', seconds, rssMb: process.memoryUsage.rss() / 2 ** 20 },
    { what: 'floor: JSON.parse of the body', seconds: parseSeconds },
    { what: `nearest alone, ${PROBES_PER_SECOND} a second`, ...alone.percentiles() },
    { what: `nearest meanwhile, ${PROBES_PER_SECOND} a second`, ...meanwhile.percentiles() },
  ];
  const metrics = {
    seconds,
    of_parsing: seconds / parseSeconds,
    p99_ms: meanwhile.percentile(0.99),
    longest_ms: meanwhile.percentile(1),
  };
  return { rows, metrics };
}
