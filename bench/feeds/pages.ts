import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import type { CaseContext } from '../benchCase.ts';
import { metricsOf } from '../measure/noise.ts';
import { usageNow } from '../measure/usage.ts';
import {
  type MeasuredServer,
  measureInTurn,
  openHttpLoad,
  ratiosOf,
  rowOf,
} from '../setup/measuredServer.ts';
import { postPoints } from '../setup/points.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import type { FeedPart } from './changes.ts';

const DEVICES = 100_000;
const SMOKE_DEVICES = 1_000;
const PAGE = 500;
const LISTED = 50;
const LIST_PAGES = PAGE / LISTED;

/** What polls for changes cost the pod, compared with what integrators would call without them. */
export async function measurePages(context: CaseContext): Promise<FeedPart> {
  const devices = context.smoke ? SMOKE_DEVICES : DEVICES;
  const world = await createWorld(context, devices);
  await using service = await startBenchService(context.databaseUrl);
  await using load = openHttpLoad();
  const { url, ingestUrl } = service;
  const headers = { 'X-API-Key': world.key };
  const before = await lastCursor(url, headers, null);
  await movePage(ingestUrl);
  const now = await lastCursor(url, headers, before);
  const path = (cursor: string) => `/api/v3/devices/changes?limit=${PAGE}&cursor=${cursor}`;
  const own = { urls: [url], headers, usage: async () => usageNow() };
  const server = (what: string, paths: string[]): MeasuredServer => ({ what, ...own, paths, rounds: [] });
  const listPath = (n: number) => `/api/v3/devices?limit=${LISTED}&offset=${n * LISTED}`;
  const listPaths = Array.from({ length: LIST_PAGES }, (_, n) => listPath(n));
  const location = server('location', [`/api/v3/devices/${simulatedImei(1)}/location`]);
  const empty = server('changes: nothing new', [path(now)]);
  const list = server(`list of ${LISTED}`, listPaths);
  const page = server(`changes: a page of ${PAGE}`, [path(before)]);
  const servers = [location, empty, list, page];
  await measureInTurn(load, servers, context);
  return {
    size: `${devices} devices over HTTP`,
    rows: servers.map(rowOf),
    ...metricsOf({
      empty_of_location_by_cpu: ratiosOf(empty, location, ({ cpuUs }) => cpuUs),
      page_of_lists_by_cpu: ratiosOf(page, list, ({ cpuUs }) => cpuUs).map((ratio) => ratio / LIST_PAGES),
    }),
  };
}

/** Follows until nothing comes any more; a pod sends its own commits once more when it has followed them. */
export async function lastCursor(url: string, headers: { 'X-API-Key': string }, from: string | null) {
  for (let cursor = from; ; ) {
    const query = cursor === null ? '' : `&cursor=${cursor}`;
    const reply = await fetch(`${url}/api/v3/devices/changes?limit=1000${query}`, { headers });
    if (reply.status !== 200) throw new Error(`changes answered ${reply.status}: ${await reply.text()}`);
    const page = (await reply.json()) as { data: object[]; meta: { cursor: string; has_more: boolean } };
    const { data, meta } = page;
    cursor = meta.cursor;
    if (data.length === 0 && !meta.has_more) return cursor;
  }
}

async function movePage(ingestUrl: string): Promise<void> {
  const points = Array.from({ length: PAGE }, (_, n) => ({
    imei: simulatedImei(n),
    recorded_at: Date.now() + 1_000,
    latitude: 45,
    longitude: 9 + n / 1000,
    speed_kmh: 50,
  }));
  await postPoints(ingestUrl, points);
}
