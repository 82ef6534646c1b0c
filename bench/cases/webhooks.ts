import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { selfSignedCertificate } from '../../src/cli/selfSignedCertificate.ts';
import { simulatedImei } from '../../src/cli/simulatedImei.ts';
import { migrate } from '../../src/store/migrate.ts';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { adminOf } from '../../test/support/admin.ts';
import { findRedisServer, startRedis } from '../../test/support/redis.ts';
import type { BenchCase, CaseContext, CaseOutcome } from '../benchCase.ts';
import { Latencies } from '../latencies.ts';
import type { Profile } from '../profile.ts';
import { INGEST_TOKEN } from '../service.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { PodQuestion, PodReply } from '../workers/webhookPod.ts';
import type { PointOrder, RoundTripQuestion, RoundTripReply } from '../workers/webhookRoundTrip.ts';

const ACCOUNTS = 10;
/** Of each account. The first account has one that is dead and one that is slow among them. */
const ENDPOINTS = 10;
const DEVICES = 1_000;
const POINTS_PER_SECOND = 1_000;
/**
 * Every so many-th point is an event: 15 a second, each for all endpoints of its account, so 150 deliveries a second.
 * A prime, so that the events wander through all devices and accounts.
 */
const EVENT_EVERY = 67;
/** Points of a request, as a gateway that forwards a few trackers sends them. */
const BATCH = 10;
/** Each has half a second for a request until it falls behind: shorter stalls hold back no point that would see them. */
const LANES = 50;
/** Points of the backlog, all of them events, by the seconds that the case may take; sent as fast as they are taken. */
const BACKLOG_PER_SECOND = 50;
const SMOKE_BACKLOG = 500;
/** A prime, likewise. */
const SMOKE_EVENT_EVERY = 11;
const AT_ONCE_PER_SECOND = 1e6;
const WARMUP_SECONDS = 3;
const SMOKE_SECONDS = 1;
/** Of the past that the points come from. */
const SPAN_MS = 6 * 3_600_000;
const DAY_MS = 86_400_000;
/** Nothing listens there. */
const DEAD_URL = 'https://127.0.0.1:1/';

export const bench: BenchCase = {
  about: 'from a point to the webhooks of its event, one endpoint dead and one slow, and a backlog of them',
  run: async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'fleet-bench-webhooks-'));
    const redis = findRedisServer() === null ? null : await startRedis();
    const certificate = selfSignedCertificate(['127.0.0.1'], Date.now() - DAY_MS, Date.now() + DAY_MS);
    const trusted = join(folder, 'receiver.pem');
    await writeFile(trusted, certificate.certificatePem);
    // Read by Node when a process starts: the pods inherit it.
    process.env['NODE_EXTRA_CA_CERTS'] = trusted;
    const pods = Array.from({ length: redis === null ? 1 : 2 }, () =>
      openWorker<PodQuestion, PodReply>(new URL('../workers/webhookPod.ts', import.meta.url)),
    );
    const client = openWorker<RoundTripQuestion, RoundTripReply>(
      new URL('../workers/webhookRoundTrip.ts', import.meta.url),
    );
    const sql = openSql(context.databaseUrl, { maxConnections: 1, name: 'bench' });
    try {
      const { port } = await client.ask({ kind: 'listen', certificate });
      return await measure(context, { sql, pods, client, receiverPort: port, redisUrl: redis?.url ?? null });
    } finally {
      // First of all, so that no pod waits for the slow endpoint when it stops.
      await client.close();
      await Promise.allSettled(pods.map((pod) => pod.ask({ kind: 'stop' })));
      await Promise.all(pods.map((pod) => pod.close()));
      await sql.end();
      await redis?.stop();
      await rm(folder, { recursive: true });
    }
  },
};

interface WebhookPorts {
  readonly sql: Sql;
  readonly pods: readonly Worker<PodQuestion, PodReply>[];
  readonly client: Worker<RoundTripQuestion, RoundTripReply>;
  readonly receiverPort: number;
  readonly redisUrl: string | null;
}

/** One load: what came of it, and what the pods spent on it. */
interface Round {
  readonly healthy: number;
  readonly seconds: number;
  readonly pointsPerSecond: number;
  readonly latencies: readonly number[];
  readonly cpuUs: number;
  readonly clientCpuUs: number;
  readonly rssMb: number;
}

async function measure(context: CaseContext, ports: WebhookPorts): Promise<CaseOutcome> {
  const { smoke } = context;
  const { ingestPorts, unhealthyIds } = await prepare(context, ports);
  const order = {
    kind: 'send',
    urls: ingestPorts.map((port) => `http://127.0.0.1:${port}`),
    token: INGEST_TOKEN,
    source: { devices: DEVICES, lanes: LANES, batch: BATCH, startMs: Date.now() - SPAN_MS },
  } as const;
  const run = (points: number, pointsPerSecond: number, eventEvery: number): Promise<Round> => {
    const batchesPerLane = Math.max(1, Math.round(points / BATCH / LANES));
    return runRound(ports, { ...order, batchesPerLane, pointsPerSecond, eventEvery }, unhealthyIds);
  };
  const seconds = smoke ? SMOKE_SECONDS : context.seconds;
  if (!smoke) await run(WARMUP_SECONDS * POINTS_PER_SECOND, POINTS_PER_SECOND, EVENT_EVERY);
  const steady = await run(seconds * POINTS_PER_SECOND, POINTS_PER_SECOND, EVENT_EVERY);
  const full = smoke
    ? await run(SMOKE_BACKLOG, AT_ONCE_PER_SECOND, SMOKE_EVENT_EVERY)
    : await run(seconds * BACKLOG_PER_SECOND, AT_ONCE_PER_SECOND, 1);

  const profiles: Profile[] = [];
  if (context.profile) {
    const [pod] = ports.pods as [Worker<PodQuestion, PodReply>];
    await pod.ask({ kind: 'profile', of: `a second with ${POINTS_PER_SECOND} points, on one of the pods,` });
    await run(seconds * POINTS_PER_SECOND, POINTS_PER_SECOND, EVENT_EVERY);
    const { profile } = await pod.ask({ kind: 'profiled', calls: seconds });
    if (profile !== null) profiles.push(profile);
  }
  const latencies = new Latencies(steady.latencies);
  const cpuUs = full.cpuUs / full.healthy;
  return {
    kind: 'measured',
    profiles,
    size:
      `${ports.pods.length === 1 ? 'one pod, since there is no redis-server in PATH' : `${ports.pods.length} pods`}, ` +
      `${ACCOUNTS * ENDPOINTS} endpoints of ${ACCOUNTS} accounts (one refuses connections, one answers after 5 s), ` +
      `${DEVICES} devices`,
    rows: [
      {
        what: `point in to webhook out, ${POINTS_PER_SECOND} points/s`,
        ...load(steady),
        ...latencies.percentiles(),
      },
      { what: `backlog of ${full.healthy} deliveries`, ...load(full), cpuUs },
    ],
    figures: {
      p99_ms: latencies.percentile(0.99),
      points_per_second: steady.pointsPerSecond,
      deliveries_per_second: full.healthy / full.seconds,
      cpu_us_per_delivery: cpuUs,
    },
    notes: [
      `Counted are the ${ACCOUNTS * ENDPOINTS - unhealthyIds.length} healthy endpoints; time runs from just before a ` +
        'point is posted until the request reaches its receiver. The processor time is that of the pods.',
    ],
  };
}

function load({ healthy, seconds, cpuUs, clientCpuUs, rssMb }: Round) {
  return {
    unit: 'deliveries',
    perSecond: healthy / seconds,
    rssMb,
    serverBusy: cpuUs / 1e6 / seconds,
    loadBusy: clientCpuUs / 1e6 / seconds,
  };
}

/** The accounts with their devices and endpoints, and the pods. */
async function prepare(
  { databaseUrl, say }: CaseContext,
  { sql, pods, redisUrl, receiverPort }: WebhookPorts,
): Promise<{ ingestPorts: number[]; unhealthyIds: number[] }> {
  await migrate(sql, () => undefined);
  const started: PodReply[] = [];
  for (const pod of pods) started.push(await pod.ask({ kind: 'start', databaseUrl, redisUrl }));
  const admin = adminOf(databaseUrl, redisUrl ?? undefined);
  const url = `http://127.0.0.1:${started[0]?.port}`;
  const ids: number[] = [];
  for (let account = 0; account < ACCOUNTS; account++) {
    const email = `bench-${account}@example.com`;
    await admin.account(email);
    const { key } = await admin.key(email);
    const share = DEVICES / ACCOUNTS;
    const imeis = Array.from({ length: share }, (_, n) => simulatedImei(account * share + n));
    await admin.importDevices(
      email,
      imeis.map((imei) => ({ imei })),
    );
    for (let n = 0; n < ENDPOINTS; n++) ids.push(await makeEndpoint(url, key, endpointUrl(ids.length)));
  }
  say(`${ids.length} endpoints made`);
  return { ingestPorts: started.map(({ ingestPort }) => ingestPort), unhealthyIds: ids.slice(0, 2) };

  function endpointUrl(index: number): string {
    if (index === 0) return DEAD_URL;
    return `https://127.0.0.1:${receiverPort}/${index === 1 ? 'slow' : 'healthy'}/${index}`;
  }
}

async function makeEndpoint(url: string, key: string, endpoint: string): Promise<number> {
  const response = await fetch(`${url}/api/webhooks`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ url: endpoint, events: ['rfid'] }),
  });
  const text = await response.text();
  if (response.status !== 201) throw new Error(`an endpoint cannot be made: ${text}`);
  return (JSON.parse(text) as { data: { id: number } }).data.id;
}

/** Sends the points and waits until every delivery that Postgres holds for the healthy endpoints has come. */
async function runRound(
  { sql, pods, client }: WebhookPorts,
  order: PointOrder,
  unhealthyIds: readonly number[],
): Promise<Round> {
  const usage = () => Promise.all(pods.map((pod) => pod.ask({ kind: 'usage' })));
  const before = await countQueued(sql, unhealthyIds);
  const podsBefore = await usage();
  const { events, sentSeconds } = await client.ask(order);
  const queued = await countQueued(sql, unhealthyIds);
  if (queued.all - before.all !== events * ENDPOINTS) {
    throw new Error(`${queued.all - before.all} deliveries of ${events} events were queued`);
  }
  const healthy = queued.healthy - before.healthy;
  const { latencies, seconds, cpuUs } = await client.ask({ kind: 'receive', deliveries: healthy });
  const podsAfter = await usage();
  const sumUs = (replies: readonly PodReply[]) => replies.reduce((sum, reply) => sum + reply.cpuUs, 0);
  return {
    healthy,
    seconds,
    pointsPerSecond: (order.batchesPerLane * BATCH * LANES) / sentSeconds,
    latencies,
    cpuUs: sumUs(podsAfter) - sumUs(podsBefore),
    clientCpuUs: cpuUs,
    rssMb: Math.max(...podsAfter.map(({ rssMb }) => rssMb)),
  };
}

async function countQueued(sql: Sql, unhealthyIds: readonly number[]) {
  const [row] = await sql<{ all: number; healthy: number }[]>`
    select count(*)::int as all, (count(*) filter (where webhook_id <> all(${[...unhealthyIds]}::bigint[])))::int as healthy
    from webhook_delivery`;
  if (row === undefined) throw new Error('a count has one row');
  return row;
}
