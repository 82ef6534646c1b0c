import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';
import type { BenchCase, CaseContext, CaseOutcome } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';
import { postgresCpuUs } from '../measure/postgresCpu.ts';
import type { Profile } from '../measure/profile.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { callWebhooks, openTwoPods, type PodWorker } from '../setup/pods.ts';
import { HANGING_PATH, HEALTHY_PATH, trustReceivers } from '../setup/receivers.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { PodReply } from '../workers/webhookPod.ts';
import type { PointOrder, RoundTripQuestion, RoundTripReply } from '../workers/webhookRoundTrip.ts';

const ACCOUNTS = 8;
/** For each account, 96 in all. One of the first account is dead, one is slow. */
const ENDPOINTS = 12;
/** Later, for each account: 24 in all. In the last round one of each account hangs. */
const FEW_ENDPOINTS = 3;
const DEVICES = 1_000;
const POINTS_PER_SECOND = 1_000;
/**
 * Every 67th point is an event: 15 a second, each for all endpoints of its account, so 180 deliveries a second. A
 * prime, so that the events come from all devices and accounts.
 */
const EVENT_EVERY = 67;
/** With few endpoints: 200 deliveries a second. Also a prime. */
const FEW_POINTS_PER_SECOND = 200;
const FEW_EVENT_EVERY = 3;
/** Points of a request, like those of a gateway that forwards a few trackers. */
const BATCH = 10;
/** A request of each may take half a second before it falls behind, so shorter stalls do not delay later points. */
const SENDERS = 50;
/** Points of the backlog for each second of the case. All are events. They are sent as fast as possible. */
const BACKLOG_PER_SECOND = 50;
const SMOKE_BACKLOG = 500;
/** Also a prime. */
const SMOKE_EVENT_EVERY = 11;
const AT_ONCE_PER_SECOND = 1e6;
const WARMUP_SECONDS = 3;
const SMOKE_SECONDS = 1;
const SPAN_MS = 6 * 3_600_000;
const DEAD_URL = 'https://127.0.0.1:1/';

export const webhooks: BenchCase = {
  about:
    'from a point to the deliveries of its event, with endpoints that are dead, slow or hang, and with a backlog',
  run: async (context) => {
    await using trusted = await trustReceivers();
    await using sql = openBenchSql(context.databaseUrl);
    await using opened = await openTwoPods();
    // Ends before the pods, so that none waits for the slow endpoint when it stops.
    await using client = openWorker<RoundTripQuestion, RoundTripReply>('webhookRoundTrip');
    const { receiver } = await client.ask({ kind: 'listen', certificate: trusted.certificate });
    return await measure(context, { sql, client, receiver, ...opened });
  },
};

interface WebhookPorts {
  readonly sql: Sql;
  readonly pods: readonly PodWorker[];
  readonly client: Worker<RoundTripQuestion, RoundTripReply>;
  readonly receiver: string;
  readonly redisUrl: string | null;
}

type Round = Awaited<ReturnType<typeof runRound>>;

async function measure(context: CaseContext, ports: WebhookPorts): Promise<CaseOutcome> {
  const { smoke } = context;
  const world = await prepare(context, ports);
  const seconds = smoke ? SMOKE_SECONDS : context.seconds;
  const run = (endpoints: Endpoints, points: number, pointsPerSecond: number, eventEvery: number) =>
    runRound(ports, endpoints, {
      kind: 'send',
      urls: world.ingestUrls,
      source: { devices: DEVICES, senders: SENDERS, batch: BATCH, startMs: Date.now() - SPAN_MS },
      batchesPerSender: Math.max(1, Math.round(points / BATCH / SENDERS)),
      pointsPerSecond,
      eventEvery,
    });
  const podCount = ports.pods.length;

  const many = await world.makeEndpoints(ENDPOINTS, ({ index, receiver }) => {
    if (index === 0) return DEAD_URL;
    return `${receiver}${index === 1 ? '/slow/' : HEALTHY_PATH}${index}`;
  });
  const send = () => run(many, seconds * POINTS_PER_SECOND, POINTS_PER_SECOND, EVENT_EVERY);
  if (!smoke) await run(many, WARMUP_SECONDS * POINTS_PER_SECOND, POINTS_PER_SECOND, EVENT_EVERY);
  const steady = await send();
  const profiles: Profile[] = [];
  if (context.profile) {
    const [pod] = ports.pods as [PodWorker];
    await pod.ask({ kind: 'profile', of: `a second with ${POINTS_PER_SECOND} points, on one of the pods,` });
    await send();
    const { profile } = await pod.ask({ kind: 'profiled', calls: seconds });
    if (profile !== null) profiles.push(profile);
  }

  await Promise.all(ports.pods.slice(1).map((pod) => pod.ask({ kind: 'stop' })));
  world.ingestUrls.splice(1);
  const full = smoke
    ? await run(many, SMOKE_BACKLOG, AT_ONCE_PER_SECOND, SMOKE_EVENT_EVERY)
    : await run(many, seconds * BACKLOG_PER_SECOND, AT_ONCE_PER_SECOND, 1);

  const runFew = async (url: AddressOf): Promise<Round> => {
    const few = await world.makeEndpoints(FEW_ENDPOINTS, url);
    return run(few, seconds * FEW_POINTS_PER_SECOND, FEW_POINTS_PER_SECOND, FEW_EVENT_EVERY);
  };
  const calm = await runFew(({ index, receiver }) => `${receiver}${HEALTHY_PATH}calm/${index}`);
  const hanging = await runFew(({ index, receiver }) => {
    const isHanging = index % FEW_ENDPOINTS === 0;
    return `${receiver}${isHanging ? HANGING_PATH : HEALTHY_PATH}beside/${index}`;
  });

  const cpuUs = (full.cpuUs + (full.postgresCpuUs ?? 0)) / full.healthy;
  return {
    kind: 'measured',
    profiles,
    size:
      `${podCount === 1 ? 'one pod, since there is no redis-server in PATH' : `${podCount} pods, then one`}, ` +
      `${ACCOUNTS * ENDPOINTS} endpoints of ${ACCOUNTS} accounts (one refuses connections, one answers after 5 s), ` +
      `then ${ACCOUNTS * FEW_ENDPOINTS}, ${DEVICES} devices`,
    rows: [
      { what: `point in to webhook out, ${POINTS_PER_SECOND} points/s`, ...timed(steady) },
      { what: `backlog of ${full.healthy} deliveries, one pod`, ...load(full), cpuUs },
      { what: `one pod, ${ACCOUNTS * FEW_ENDPOINTS} endpoints`, ...timed(calm) },
      { what: 'the same, a third of them hang', ...timed(hanging) },
    ],
    metrics: {
      p99_ms: steady.latencies.percentile(0.99),
      points_per_second: steady.pointsPerSecond,
      deliveries_per_second: full.healthy / full.seconds,
      cpu_us_per_delivery: cpuUs,
      calm_p50_ms: calm.latencies.percentile(0.5),
      calm_p99_ms: calm.latencies.percentile(0.99),
      hanging_p50_ms: hanging.latencies.percentile(0.5),
      hanging_p99_ms: hanging.latencies.percentile(0.99),
    },
    notes: [
      'Only healthy endpoints count. Time runs from just before a point is posted until the request reaches its receiver. ' +
        `The processor time of a delivery is that of the pod${full.postgresCpuUs === null ? '' : ' and of Postgres'}, ` +
        'points and queueing included. Trackers and receivers run on the same machine.',
    ],
  };
}

const timed = (round: Round) => ({ ...load(round), ...round.latencies.percentiles() });

function load({ healthy, seconds, cpuUs, clientCpuUs, rssMb }: Round) {
  return {
    unit: 'deliveries',
    perSecond: healthy / seconds,
    rssMb,
    serverBusy: cpuUs / 1e6 / seconds,
    loadBusy: clientCpuUs / 1e6 / seconds,
  };
}

type Key = Readonly<Record<string, string>>;

/** Every account has the same number of endpoints. Those of `unhealthyIds` do not count. */
interface Endpoints {
  readonly perAccount: number;
  readonly unhealthyIds: readonly number[];
}

/** The address of an endpoint by its number. `receiver` is the address of the receivers. */
type AddressOf = (of: { index: number; receiver: string }) => string;

async function prepare({ databaseUrl }: CaseContext, ports: WebhookPorts) {
  const { sql, pods, redisUrl, receiver } = ports;
  await migrate(sql, () => undefined);
  const started: PodReply[] = [];
  for (const pod of pods) started.push(await pod.ask({ kind: 'start', databaseUrl, redisUrl }));
  const admin = adminOf(databaseUrl, redisUrl ?? undefined);
  const api = `${started[0]?.url}/api/webhooks`;
  const keys: Key[] = [];
  for (let account = 0; account < ACCOUNTS; account++) {
    const email = `bench-${account}@example.com`;
    await admin.account(email);
    keys.push({ 'X-API-Key': (await admin.key(email)).key });
    const share = DEVICES / ACCOUNTS;
    const lines = Array.from({ length: share }, (_, n) => ({ imei: simulatedImei(account * share + n) }));
    await admin.importDevices(email, lines);
  }
  let made: { id: number; key: Key }[] = [];
  return {
    ingestUrls: started.map(({ ingestUrl }) => ingestUrl),
    makeEndpoints: async (perAccount: number, addressOf: AddressOf): Promise<Endpoints> => {
      for (const { id, key } of made) await callWebhooks(`${api}/${id}`, 'DELETE', key);
      made = [];
      const unhealthyIds: number[] = [];
      for (const key of keys) {
        for (let n = 0; n < perAccount; n++) {
          const url = addressOf({ index: made.length, receiver });
          const { id } = await callWebhooks(api, 'POST', key, { url, events: ['rfid'] });
          made.push({ id, key });
          if (!url.startsWith(`${receiver}${HEALTHY_PATH}`)) unhealthyIds.push(id);
        }
      }
      return { perAccount, unhealthyIds };
    },
  };
}

async function runRound(
  { sql, pods, client }: WebhookPorts,
  { perAccount, unhealthyIds }: Endpoints,
  order: PointOrder,
) {
  const usage = () => Promise.all(pods.map((pod) => pod.ask({ kind: 'usage' })));
  const before = await countQueued(sql, unhealthyIds);
  const podsBefore = await usage();
  const postgresBeforeUs = await postgresCpuUs(sql);
  const { events, sentSeconds } = await client.ask(order);
  const queued = await countAllQueued(sql, unhealthyIds, before.all + events * perAccount);
  const healthy = queued.healthy - before.healthy;
  const { latencies, seconds, cpuUs } = await client.ask({ kind: 'receive', deliveries: healthy });
  const podsAfter = await usage();
  const postgresAfterUs = await postgresCpuUs(sql);
  const sumUs = (replies: readonly PodReply[]) => replies.reduce((sum, reply) => sum + reply.cpuUs, 0);
  return {
    healthy,
    seconds,
    pointsPerSecond: (order.batchesPerSender * BATCH * SENDERS) / sentSeconds,
    latencies: new Latencies(latencies),
    cpuUs: sumUs(podsAfter) - sumUs(podsBefore),
    /** null where Postgres is on another machine. */
    postgresCpuUs:
      postgresAfterUs === null || postgresBeforeUs === null ? null : postgresAfterUs - postgresBeforeUs,
    clientCpuUs: cpuUs,
    rssMb: Math.max(...podsAfter.map(({ rssMb }) => rssMb)),
  };
}

/** Deliveries of large events are queued some time after their points were answered. */
const QUEUED_LIMIT_MS = 10_000;
const QUEUED_POLL_MS = 50;

async function countAllQueued(sql: Sql, unhealthyIds: readonly number[], all: number) {
  for (const startMs = performance.now(); ; await sleep(QUEUED_POLL_MS)) {
    const queued = await countQueued(sql, unhealthyIds);
    if (queued.all === all) return queued;
    if (queued.all > all || performance.now() - startMs > QUEUED_LIMIT_MS) {
      throw new Error(`${queued.all} deliveries were queued, not ${all}`);
    }
  }
}

/** Only of existing endpoints: the deliveries of deleted ones are being removed. */
async function countQueued(sql: Sql, unhealthyIds: readonly number[]) {
  const [row] = await sql<{ all: number; healthy: number }[]>`
    select count(*)::int as all, (count(*) filter (where webhook_id <> all(${[...unhealthyIds]}::bigint[])))::int as healthy
    from webhook_delivery where webhook_id in (select id from webhook)`;
  if (row === undefined) throw new Error('a count has one row');
  return row;
}
