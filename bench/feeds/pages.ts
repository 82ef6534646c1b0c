import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import type { CaseContext } from '../benchCase.ts';
import type { LoadResult } from '../measure/measureLoad.ts';
import { type MeasuredServer, measureInTurn, ownUsage, ratioOf, rowOf } from '../setup/measuredServer.ts';
import { INGEST_TOKEN, startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker } from '../worker.ts';
import type { HttpLoad } from '../workers/httpLoad.ts';
import type { Part } from './changes.ts';

const DEVICES = 100_000;
const SMOKE_DEVICES = 1_000;
const PAGE = 500;
const LISTED = 50;
const LIST_PAGES = PAGE / LISTED;

/** What polls for changes cost the pod, compared with what integrators would call without them. */
export async function measurePages(context: CaseContext): Promise<Part> {
  const devices = context.smoke ? SMOKE_DEVICES : DEVICES;
  const { databaseUrl, say } = context;
  const world = await createWorld({ databaseUrl, devices, spread: 'towns', seed: 1, say });
  const service = await startBenchService(databaseUrl, null);
  const load = openWorker<HttpLoad, LoadResult>(new URL('../workers/httpLoad.ts', import.meta.url));
  try {
    const url = `http://127.0.0.1:${service.port}`;
    const headers = { 'X-API-Key': world.key };
    const follow = (cursor: string | null) => lastCursor(url, headers, cursor);
    const before = await follow(null);
    await movePage(`http://127.0.0.1:${service.ingestPort}`);
    const path = (cursor: string, limit: number) => `/api/v3/devices/changes?limit=${limit}&cursor=${cursor}`;
    const full = path(before, PAGE);
    const now = await follow(before);
    const server = (what: string, paths: readonly string[]): MeasuredServer => ({
      what,
      url,
      headers,
      paths,
      usage: ownUsage,
      rounds: [],
    });
    const lists = Array.from(
      { length: LIST_PAGES },
      (_, n) => `/api/v3/devices?limit=${LISTED}&offset=${n * LISTED}`,
    );
    const location = server('location', [`/api/v3/devices/${simulatedImei(1)}/location`]);
    const empty = server('changes: nothing new', [path(now, PAGE)]);
    const list = server(`list of ${LISTED}`, lists);
    const page = server(`changes: a page of ${PAGE}`, [full]);
    const servers = [location, empty, list, page];
    await measureInTurn(load, servers, context);
    return {
      size: `${devices} devices over HTTP`,
      rows: servers.map(rowOf),
      metrics: {
        empty_of_location_by_cpu: ratioOf(empty, location, ({ cpuUs }) => cpuUs),
        page_of_lists_by_cpu: ratioOf(page, list, ({ cpuUs }) => cpuUs) / LIST_PAGES,
      },
    };
  } finally {
    await load.close();
    await service.stop();
  }
}

interface ChangesPage {
  readonly data: readonly object[];
  readonly meta: { readonly cursor: string; readonly has_more: boolean };
}

/** Follows until nothing comes any more; a pod sends its own commits once more when it has followed them. */
async function lastCursor(
  url: string,
  headers: Readonly<Record<string, string>>,
  from: string | null,
): Promise<string> {
  for (let cursor = from; ; ) {
    const query = cursor === null ? '' : `&cursor=${cursor}`;
    const reply = await fetch(`${url}/api/v3/devices/changes?limit=1000${query}`, { headers });
    if (reply.status !== 200) throw new Error(`changes answered ${reply.status}: ${await reply.text()}`);
    const { data, meta } = (await reply.json()) as ChangesPage;
    cursor = meta.cursor;
    if (data.length === 0 && !meta.has_more) return cursor;
  }
}

async function movePage(ingest: string): Promise<void> {
  const points = Array.from({ length: PAGE }, (_, n) => ({
    imei: simulatedImei(n),
    recorded_at: Date.now() + 1_000,
    latitude: 45,
    longitude: 9 + n / 1000,
    speed_kmh: 50,
  }));
  const reply = await fetch(`${ingest}/positions`, {
    method: 'POST',
    headers: { 'X-Ingest-Token': INGEST_TOKEN, 'Content-Type': 'application/json' },
    body: JSON.stringify(points),
  });
  if (reply.status !== 200) throw new Error(`points: ${reply.status} ${await reply.text()}`);
}
