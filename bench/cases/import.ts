import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchCase } from '../benchCase.ts';
import { median } from '../measure/latencies.ts';
import { profile } from '../measure/profile.ts';
import { rssMb } from '../measure/usage.ts';
import { openNearestProbe, PROBES_PER_SECOND } from '../setup/nearestProbe.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { ImportOrder, ImportReply } from '../workers/importClient.ts';

const DEVICES = 100_000;
const SMOKE_DEVICES = 500;
const FEATURES = 200;
const VERTICES = 2_000;
const SMOKE_FEATURES = 10;
const ROUNDS = 5;
const SMOKE_SECONDS = 0.3;

export const importCase: BenchCase = {
  about: 'the largest import of areas, and its effect on nearest calls',
  run: async (context) => {
    const { smoke, seconds } = context;
    const devices = context.sizes?.at(-1) ?? (smoke ? SMOKE_DEVICES : DEVICES);
    const features = smoke ? SMOKE_FEATURES : FEATURES;
    const world = await createWorld(context, devices);
    await using service = await startBenchService(context.databaseUrl);
    await using probe = openNearestProbe(service.url, world.key);
    await using client = openWorker<ImportOrder, ImportReply>('importClient');
    const headers = { 'X-API-Key': world.key };
    const make = (times: number) => client.ask({ kind: 'make', times, features, vertices: VERTICES });
    const post = () => client.ask({ kind: 'post', url: service.url, headers });
    if (!smoke) {
      await make(1);
      await post();
    }
    const alone = await probe.during(() => sleep(smoke ? SMOKE_SECONDS * 1_000 : seconds * 500));
    const { bytes, parseSeconds } = await make(smoke ? 1 : ROUNDS);
    let times: readonly number[] = [];
    const meanwhile = await probe.during(async () => {
      times = (await post()).seconds;
    });
    const profiles = [];
    if (context.profile) {
      await make(ROUNDS);
      const work = () => probe.during(post).then(() => ROUNDS);
      profiles.push(await profile('an import during nearest calls, in the serving process,', work));
    }
    const importSeconds = median(times);
    return {
      kind: 'measured',
      profiles,
      size: `${features} features of ${VERTICES} vertices, ${Math.round(bytes / 2 ** 20)} MB; ${devices} devices`,
      rows: [
        { what: 'import', seconds: importSeconds, rssMb: rssMb() },
        { what: 'floor: JSON.parse of the body', seconds: parseSeconds },
        { what: `nearest alone, ${PROBES_PER_SECOND} a second`, ...alone.percentiles() },
        { what: `nearest meanwhile, ${PROBES_PER_SECOND} a second`, ...meanwhile.percentiles() },
      ],
      metrics: {
        seconds: importSeconds,
        of_parsing: importSeconds / parseSeconds,
        p99_ms: meanwhile.percentile(0.99),
        longest_ms: meanwhile.percentile(1),
      },
    };
  },
};
