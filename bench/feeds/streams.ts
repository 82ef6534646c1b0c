import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';
import type { CaseContext } from '../benchCase.ts';
import { Latencies, median } from '../measure/latencies.ts';
import { seedAccount, seedKey } from '../neighbours/seeds.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { openHttpLoad } from '../setup/measuredServer.ts';
import { openTwoPods, type PodWorker } from '../setup/pods.ts';
import { WORLD_EMAIL } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { ReadersQuestion, ReadersReply } from '../workers/streamReaders.ts';
import type { PodReply } from '../workers/webhookPod.ts';
import type { FeedPart } from './changes.ts';

const PER_KEY = 10;
const [IDLE, BESIDE_INGEST] = [5_000, 1_000];
const SMOKE_STREAMS = 50;
const POINTS_PER_SECOND = 1_000;
const DEVICES = 1_000;
/** Devices of other accounts, which the streams beside ingest follow: behind those of the world. */
const FIRST_FOLLOWED = 200_000;
/** Few connections: how long an answer takes is asked, not how many there are. */
const POLLERS = 4;
const ROUNDS = 3;
const SMOKE_SECONDS = 0.3;
const SETTLE_MS = 2_000;

/** Streams on two pods, on the world that is there: idle ones, beside ingest, and how soon they bring a point. */
export async function measureStreams(context: CaseContext): Promise<FeedPart> {
  const { databaseUrl, smoke, say } = context;
  const [idle, beside] = smoke ? [SMOKE_STREAMS, SMOKE_STREAMS] : [IDLE, BESIDE_INGEST];
  const admin = adminOf(databaseUrl);
  const keys: string[] = [];
  while (keys.length < idle / PER_KEY) keys.push((await admin.key(WORLD_EMAIL)).key);
  const followers = await seedFollowers(databaseUrl, beside / PER_KEY);
  await using opened = await openTwoPods();
  const { pods, redisUrl } = opened;
  await using readers = openWorker<ReadersQuestion, ReadersReply>('streamReaders');
  await using load = openHttpLoad();
  const started: PodReply[] = [];
  for (const pod of pods) started.push(await pod.ask({ kind: 'start', databaseUrl, redisUrl }));
  const [first, last] = [started[0], started.at(-1)] as [PodReply, PodReply];
  const pod = pods.at(-1) as PodWorker;
  const { url: api, ingestUrl: ownIngest } = last;
  const [key = ''] = keys;
  const seconds = smoke ? SMOKE_SECONDS : context.seconds;
  const nearest = async (): Promise<Latencies> => {
    const headers = { 'X-API-Key': key };
    const paths = ['/api/v3/devices/nearest?lat=45.05&lng=9.1'];
    const asked = { urls: [api], headers, paths, connections: POLLERS, seconds };
    return new Latencies((await load.ask(asked)).latencies);
  };
  const fleet = { devices: DEVICES, seconds };
  const own = { kind: 'ingest', ingest: ownIngest, firstDevice: FIRST_FOLLOWED, ...fleet } as const;
  const take = async () => (await readers.ask(own)).pointsPerSecond;

  if (!smoke) await nearest();
  say('point in to stream');
  const rate = { pointsPerSecond: POINTS_PER_SECOND, ...fleet };
  const followed = await readers.ask({ kind: 'follow', api, ingest: first.ingestUrl, key, ...rate });
  const latencies = Latencies.of(followed.latenciesMs);

  say('ingest beside streams');
  const ratios: number[] = [];
  for (let round = 0; round < (smoke ? 1 : ROUNDS); round++) {
    const without = await take();
    await readers.ask({ kind: 'open', api, keys: followers, perKey: PER_KEY });
    ratios.push((await take()) / without);
    await readers.ask({ kind: 'close' });
  }

  say('idle streams');
  const [calm, besideIdle] = [new Latencies(), new Latencies()];
  const [idleMb, shares]: [number[], number[]] = [[], []];
  let rssMb = 0;
  for (let round = 0; round < (smoke ? 1 : ROUNDS); round++) {
    const without = await nearest();
    const before = await pod.ask({ kind: 'usage' });
    const { open } = await readers.ask({ kind: 'open', api, keys, perKey: PER_KEY });
    if (open !== idle) throw new Error(`${open} streams are open`);
    // What a stream costs when it is opened is not what it costs while it is idle.
    await sleep(smoke ? 0 : SETTLE_MS);
    const withIdle = await nearest();
    rssMb = (await pod.ask({ kind: 'usage' })).rssMb;
    await readers.ask({ kind: 'close' });
    idleMb.push(rssMb - before.rssMb);
    shares.push(withIdle.percentile(0.99) / without.percentile(0.99));
    calm.merge(without.encoded());
    besideIdle.merge(withIdle.encoded());
  }
  return {
    size: `${pods.length === 1 ? 'one pod, since there is no redis-server in PATH' : 'two pods'}, ${idle} streams`,
    rows: [
      { what: `point in to stream, ${POINTS_PER_SECOND} points/s`, ...latencies.percentiles() },
      { what: 'nearest, no streams', ...calm.percentiles() },
      { what: `nearest, ${idle} idle streams`, ...besideIdle.percentiles(), rssMb },
    ],
    metrics: {
      stream_p99_ms: latencies.percentile(0.99),
      ingest_beside_streams: median(ratios),
      // The first round: memory that Node has freed is not given back.
      idle_streams_mb: idleMb[0] as number,
      nearest_p99_beside_idle: median(shares),
    },
  };
}

/** Accounts that share the devices which points come for. Returns a key of each. */
async function seedFollowers(databaseUrl: string, accounts: number): Promise<string[]> {
  await using sql = openBenchSql(databaseUrl);
  const keys: string[] = [];
  for (let n = 0; n < accounts; n++) {
    const { accountId, worldId } = await seedAccount(sql, `follower-${n}@example.com`);
    keys.push(await seedKey(sql, accountId));
    const imeis: string[] = [];
    for (let device = n; device < DEVICES; device += accounts)
      imeis.push(simulatedImei(FIRST_FOLLOWED + device));
    await sql`insert into device (imei, world_id) select imei, ${worldId} from unnest(${imeis}::text[]) as imei`;
  }
  return keys;
}
