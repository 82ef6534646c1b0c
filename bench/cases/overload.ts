import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchCase, CaseContext, CaseOutcome, Row } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';
import type { LoadResult } from '../measure/measureLoad.ts';
import type { OpenResult } from '../measure/openLoop.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { nearestPaths } from '../setup/places.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld, splitAmong } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { HttpLoad } from '../workers/httpLoad.ts';
import type { ProbeQuestion } from '../workers/latencyProbe.ts';
import type { ThrottleQuestion } from '../workers/throttle.ts';
import type { TrafficQuestion, TrafficReply } from '../workers/traffic.ts';

const DEVICES = { usual: 20_000, smoke: 500 };
const SMOKE_SECONDS = 0.5;
/** What the pod has of a core, so that two cores are enough to ask for three times what it can do. */
const SHARE_OF_CORE = 1 / 2;
/** So many devices has each account: what is done for one may not hold up another. */
const LIST_LIMIT = 200;
/** Of the calls whose rate is measured alone. */
const CONNECTIONS = 32;
/** So many that their calls of one turn of the event loop make it late. */
const WAITING = { polls: 1_000 * SHARE_OF_CORE, lists: 3_000 * SHARE_OF_CORE };
/** What a few connections get says roughly what the pod can do; what it does with all of them is measured with more than that. */
const MORE_THAN_CAPACITY = 1.5;
/** Lists are offered at twice the rate that a pod can answer when it does nothing else. */
const LISTS_OF_CAPACITY = 2;
/** The next batch is sent when the one before is stored, so they must not come too often to see how long one takes. */
const POINTS = { perSecond: 200, batch: 100 };
/** Until the pod has taken all connections, of which Node takes one in a turn, and refuses as much as it has to. */
const SETTLE_MS = 20_000;

export const overload: BenchCase = {
  about:
    'three times what a pod with little of a core can do: polls at its capacity, lists at twice that, and points',
  run: runOverload,
};

async function runOverload(context: CaseContext): Promise<CaseOutcome> {
  const { databaseUrl, smoke } = context;
  const seconds = smoke ? SMOKE_SECONDS : context.seconds;
  const devices = context.sizes?.at(-1) ?? (smoke ? DEVICES.smoke : DEVICES.usual);
  const { key } = await createWorld(context, devices);
  const keys = await splitAmong(databaseUrl, Math.ceil(devices / LIST_LIMIT));
  await using service = await startBenchService(databaseUrl);
  const headers = { 'X-API-Key': key };
  const polls = nearestPaths(1_000);
  // For each key one, since calls and keys are taken in turn.
  const lists = keys.map(() => `/api/v3/devices?limit=${LIST_LIMIT}`);
  await using load = openWorker<HttpLoad, LoadResult>('httpLoad');
  const rateOf = async (paths: string[]) => {
    const asked = { urls: [service.url], headers, keys, paths, connections: CONNECTIONS, seconds };
    const { completed, seconds: took } = await load.ask(asked);
    return completed / took;
  };
  await rateOf(polls); // warm
  await using throttle = openWorker<ThrottleQuestion, null>('throttle');
  await throttle.ask({ share: SHARE_OF_CORE });
  const roughly = { polls: await rateOf(polls), lists: await rateOf(lists) };
  await using polling = openWorker<ProbeQuestion, OpenResult>('latencyProbe');
  await using listing = openWorker<ProbeQuestion, OpenResult>('latencyProbe');
  const settleMs = smoke ? 0 : SETTLE_MS;
  const asked = { kind: 'start', urls: [service.url], headers, keys, overloads: true, settleMs } as const;
  const startPolls = async (perSecond: number) => {
    await polling.ask({ ...asked, paths: polls, perSecond, connectionsMax: WAITING.polls });
    await sleep(settleMs);
  };
  await startPolls(MORE_THAN_CAPACITY * roughly.polls);
  await sleep(seconds * 1_000);
  const alone = await polling.ask({ kind: 'stop' });
  const capacity = { polls: alone.completed / alone.seconds, lists: roughly.lists };
  await using traffic = openWorker<TrafficQuestion, TrafficReply>('traffic');
  const perSecond = LISTS_OF_CAPACITY * capacity.lists;
  await listing.ask({ ...asked, paths: lists, perSecond, connectionsMax: WAITING.lists });
  await startPolls(capacity.polls);
  await traffic.ask({
    kind: 'start',
    ingestUrl: service.ingestUrl,
    apiUrl: service.url,
    key,
    source: { devices, senders: 1, batch: POINTS.batch, startMs: Date.now() },
    pointsPerSecond: POINTS.perSecond,
    areaIds: [],
    areasPerSecond: 0,
  });
  await sleep(seconds * 1_000);
  const measured = {
    polls: await polling.ask({ kind: 'stop' }),
    points: await traffic.ask({ kind: 'stop' }),
    lists: await listing.ask({ kind: 'stop' }),
  };
  await throttle.ask({ share: 1 });
  const stored = await countPoints(databaseUrl);
  return { kind: 'measured', size: `${devices} devices`, ...summarize(capacity, measured, stored) };
}

async function countPoints(databaseUrl: string): Promise<number> {
  await using sql = openBenchSql(databaseUrl);
  const [row] = await sql<{ points: number }[]>`select count(*)::int as points from position`;
  return row?.points ?? 0;
}

function summarize(
  capacity: { readonly polls: number; readonly lists: number },
  {
    polls,
    points,
    lists,
  }: { readonly polls: OpenResult; readonly points: TrafficReply; readonly lists: OpenResult },
  stored: number,
) {
  const pollTimes = new Latencies(polls.latencies);
  const pointTimes = new Latencies(points.latencies);
  const rows: Row[] = [
    { what: 'nearest alone', perSecond: capacity.polls },
    { what: `lists of ${LIST_LIMIT} alone`, perSecond: capacity.lists },
    {
      what: 'nearest, answered at three times the capacity',
      perSecond: polls.completed / polls.seconds,
      ...pollTimes.percentiles(),
    },
    { what: 'lists, answered', perSecond: lists.completed / lists.seconds },
    { what: 'lists, refused', perSecond: lists.refused / lists.seconds },
    {
      what: 'points, stored',
      unit: 'points',
      perSecond: points.points / points.seconds,
      ...pointTimes.percentiles(),
    },
  ];
  const metrics = {
    polls_of_capacity: polls.completed / polls.seconds / capacity.polls,
    polls_refused: polls.refused,
    ingest_p99_ms: pointTimes.percentile(0.99),
    points_lost: points.points - stored,
  };
  return { rows, metrics };
}
