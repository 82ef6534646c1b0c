import { createDatabase } from '../support/postgres/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { startCollector } from '../support/traces/collector.ts';
import { type Fault, openSite, pointOf, repeat, type Site, type Stage, throttle, VANS } from './site.ts';

const open = async (stage: Stage): Promise<Site> => openSite(stage, (await createDatabase(stage.t)).url);

/** What happens to pods, their machines and what is beside them, but not to Postgres. */
export const POD_FAULTS: Readonly<Record<string, Fault>> = {
  FleetPodDown: {
    fault: 'a pod is killed',
    prepare: async (stage) => {
      const pod = await (await open(stage)).pod();
      return { cause: async () => pod.signal('SIGKILL'), mend: () => pod.restart() };
    },
  },
  FleetPollsSlow: {
    fault: 'Redis answers after a seventh of a second',
    needsRedis: true,
    prepare: async (stage) => {
      const redis = await startRedis(stage.t);
      const { pod: start, key } = await open(stage);
      const pod = await start({ REDIS_URL: redis.url });
      await pod.points([pointOf(VANS[0])]);
      for (let n = 0; n < 4; n++)
        repeat(stage.t, () => pod.get('/api/v3/devices/nearest?lat=41.9&lng=12.5', key));
      let stop = async (): Promise<void> => undefined;
      const signal = (name: string) => (name === 'SIGSTOP' ? redis.pause() : redis.resume());
      return {
        cause: async () => {
          stop = throttle(stage, signal, { runMs: 20, stopMs: 150 });
        },
        mend: () => stop(),
      };
    },
  },
  FleetEventLoopSlow: {
    fault: 'the machine gives a pod a sixth of a core, in parts',
    prepare: (stage) => prepareThrottled(stage, async () => undefined),
  },
  FleetCallsShed: {
    fault: 'lists are called from a pod with a sixth of a core, in parts',
    prepare: (stage) =>
      prepareThrottled(stage, async (site, pod) => {
        for (let n = 0; n < 4; n++) repeat(stage.t, () => pod.get('/api/v3/events', site.key));
      }),
  },
  FleetRedisLost: {
    fault: 'Redis is killed',
    needsRedis: true,
    prepare: async (stage) => {
      const redis = await startRedis(stage.t);
      await (await open(stage)).pod({ REDIS_URL: redis.url });
      return { cause: redis.stop, mend: redis.restart };
    },
  },
  FleetTraceSpansLost: {
    fault: 'the collector of traces refuses what it is sent',
    prepare: async (stage) => {
      const collector = await startCollector(stage.t);
      const site = await open(stage);
      const traced = (endpoint: string) => ({
        OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
        OTEL_TRACES_SAMPLER: 'always_on',
      });
      const pod = await site.pod(traced(collector.url));
      repeat(stage.t, () => pod.get('/api/v3/devices', site.key));
      return {
        cause: async () => collector.behave(503),
        mend: async () => collector.behave(200),
      };
    },
  },
  FleetMemoryDiffers: {
    fault: 'a device is deleted past the triggers, and one of two pods starts anew',
    prepare: async (stage) => {
      const site = await open(stage);
      const [pod, other] = [await site.pod(), await site.pod()];
      return {
        cause: async () => {
          await site.sql.begin(async (tx) => {
            await tx`set local session_replication_role = replica`;
            await tx`delete from device where imei = ${VANS[1]}`;
          });
          await other.restart();
        },
        mend: () => pod.restart(),
      };
    },
  },
  FleetVersionsDiffer: {
    fault: 'one of two pods is upgraded',
    prepare: async (stage) => {
      const site = await open(stage);
      const [before, after] = [{ BUILD_COMMIT: 'before' }, { BUILD_COMMIT: 'after' }];
      const [pod, other] = [await site.pod(before), await site.pod(before)];
      return { cause: () => pod.restart(after), mend: () => other.restart(after) };
    },
  },
};

async function prepareThrottled(
  stage: Stage,
  load: (site: Site, pod: Awaited<ReturnType<Site['pod']>>) => Promise<unknown>,
) {
  const site = await open(stage);
  const pod = await site.pod();
  await load(site, pod);
  let stop = async (): Promise<void> => undefined;
  return {
    cause: async () => {
      stop = throttle(stage, pod.signal, { runMs: 40, stopMs: 200 });
    },
    mend: () => stop(),
  };
}
