import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';

import { Fleet } from '../../src/devices/fleet.memory.ts';
import { boxRegion } from '../../src/devices/living/boxRegion.ts';
import { type DeviceFilter, readFilter } from '../../src/devices/living/deviceFilter.ts';
import { countOf, deviceTile } from '../../src/devices/tiles/deviceTile.ts';
import { mapX, mapY, type Tile, tileAt } from '../../src/geo/vectorTile.ts';
import { invariant } from '../../src/lib/errors.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, CaseContext, Part, Row } from '../benchCase.ts';
import { lastCursor } from '../feeds/pages.ts';
import { measureCalls, medianTimes } from '../measure/measureCalls.ts';
import { metricsOf } from '../measure/noise.ts';
import { usageNow } from '../measure/usage.ts';
import {
  type MeasuredServer,
  measureInTurn,
  openHttpLoad,
  ratiosOf,
  rowOf,
} from '../setup/measuredServer.ts';
import { openNearestProbe } from '../setup/nearestProbe.ts';
import { startBenchService } from '../setup/service.ts';
import { createWorld } from '../setup/world.ts';

const SIZE = 1_000_000;
const SMOKE_SIZE = 10_000;
const HTTP_SIZE = 100_000;
/** Of the first zoom from here up whose tiles have so many devices. */
const TILE_ZOOM = 12;
const TILE_DEVICES = 10_000;
const WORLD = 1;
const ASKER = { accountId: 1, worldIds: [WORLD] };
const NOW_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const QUERIES = 4_096;
const ROUNDS = 3;
const BOX_HITS = 1_000;
const PAGE = 200;
/** Degrees that the fleet is spread over, in both directions. */
const SPAN = 10;
const CORNER = { lat: 40, lng: 5 };

/** One device in two, or in a thousand. */
const FILTERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'moving, 1 in 2': { status: 'moving' },
  'offline, 1 in 1 000': { status: 'offline' },
  'a group, 1 in 2': { group: 'half' },
  'a group, 1 in 1 000': { group: 'rare' },
  'heard of within a second, 1 in 1 000': { max_age_seconds: '1' },
};

export const living: BenchCase = {
  about:
    'filtered nearest, the devices in a box and tiles of them; in process, and beside a caller of nearest',
  run: async (context) => {
    const memory = measureMemory(context);
    context.say('over HTTP');
    const http = await measureHttp(context);
    return {
      kind: 'measured',
      size: `${memory.size}, ${http.size}`,
      rows: [...memory.rows, ...http.rows],
      metrics: { ...memory.metrics, ...http.metrics },
      noise: { ...http.noise },
    };
  },
};

type SizedPart = Part & { readonly size: string };

function measureMemory({ smoke, seconds, sizes, say }: CaseContext): SizedPart {
  const size = sizes?.at(-1) ?? (smoke ? SMOKE_SIZE : SIZE);
  say(`${size} devices`);
  const random = seededRandom(7);
  const fleet = fillFleet(size, random);
  const share = (smoke ? 0.05 : seconds) / (ROUNDS * (Object.keys(FILTERS).length + 4));
  const places = Array.from({ length: QUERIES }, () => anyPlace(random));
  const placeOf = (n: number) => places[n % QUERIES] as ReturnType<typeof anyPlace>;
  const plain = (n: number) => {
    const { lat, lng } = placeOf(n);
    return fleet.near([WORLD], lat, lng, 1, Infinity)?.length;
  };
  const questions = Object.values(FILTERS)
    .map(filterOf)
    .map((filter) => {
      const ask = (n: number) =>
        fleet.living.near(ASKER, { ...placeOf(n), limit: 1, maxM: Infinity }, filter, NOW_MS)?.length;
      // As long as it pays off to make an index.
      for (let n = 0; n < QUERIES; n++) {
        ask(n);
        const due = fleet.living.due(ASKER, filter, NOW_MS);
        if (due !== null) inOneGo(due);
      }
      return ask;
    });
  const half = (SPAN * Math.sqrt(Math.min(1, BOX_HITS / size))) / 2;
  const box = (n: number) => {
    const { lat, lng } = placeOf(n);
    const region = boxRegion({ west: lng - half, south: lat - half, east: lng + half, north: lat + half });
    const page = { afterImei: null, limit: PAGE };
    return inOneGo(fleet.living.within([WORLD], region, null, NOW_MS, page)).devices;
  };
  const boxJson = (n: number) => {
    let chars = 0;
    for (const device of box(n)) chars += fleet.texts.text(device, NOW_MS).length;
    return chars;
  };
  const counts = { z: TILE_ZOOM, devices: 0 };
  const tiles = tilesOf(fleet, random, counts);
  say(`${Math.round(counts.devices)} devices in a tile of zoom ${counts.z}`);
  const asked = [plain, ...questions, tiles, box, boxJson];
  const longOnes: readonly unknown[] = [tiles, box, boxJson];
  // In turn, so that other work on the machine affects each of them.
  const times = asked.map(() => [] as ReturnType<typeof measureCalls>[]);
  for (let round = 0; round < ROUNDS; round++)
    for (const [n, ask] of asked.entries())
      times[n]?.push(longOnes.includes(ask) ? measureCalls(share, ask, 1) : measureCalls(share, ask));
  const medians = times.map(medianTimes);
  const names = [
    'nearest k=1, without a filter',
    ...Object.keys(FILTERS),
    `a tile with ${Math.round(counts.devices)} devices after one of them has moved`,
    `a box with ${BOX_HITS} devices, of which ${PAGE} are read`,
    'the same, and the JSON of those',
  ];
  const rows: Row[] = names.map((what, n) => ({
    what,
    unit: 'calls',
    ...(medians[n] as (typeof medians)[0]),
  }));
  const plainUs = medians[0]?.cpuUs as number;
  const worst = Math.max(...medians.slice(1, -longOnes.length).map(({ cpuUs }) => cpuUs));
  const metrics = {
    filtered_of_plain: worst / plainUs,
    tile_ms: (medians.at(-3)?.cpuUs as number) / 1_000,
    box_ms: (medians.at(-2)?.cpuUs as number) / 1_000,
    box_json_ms: (medians.at(-1)?.cpuUs as number) / 1_000,
  };
  return { size: `${size} devices`, rows, metrics };
}

/** Asks for tiles of some ten thousand devices, of which one has moved before each. */
function tilesOf(fleet: Fleet, random: () => number, counts: { z: number; devices: number }) {
  const ofZoom = (z: number) =>
    Array.from({ length: QUERIES }, () => {
      const { lat, lng } = anyPlace(random);
      return { z, x: tileAt(mapX(lng), z), y: tileAt(mapY(lat), z), lat, lng };
    });
  const ask = (tile: Tile) => {
    const mark = inOneGo(fleet.living.tileMark([WORLD], tile, NOW_MS));
    const { content } = inOneGo(fleet.living.tile([WORLD], tile, null, mark));
    const devices =
      'clusters' in content ? content.clusters.reduce((sum, each) => sum + countOf(each), 0) : 0;
    return { devices, bytes: inOneGo(deviceTile(content, tile))?.length };
  };
  const mean = (tiles: readonly Tile[]) =>
    tiles.slice(0, 64).reduce((sum, tile) => sum + ask(tile).devices / 64, 0);
  while (counts.z > 0 && mean(ofZoom(counts.z)) < TILE_DEVICES) counts.z--;
  const tiles = ofZoom(counts.z);
  counts.devices = mean(tiles);
  return (n: number) => {
    const tile = tiles[n % QUERIES] as (typeof tiles)[0];
    const times = { recordedAtMs: NOW_MS + n, movedAtMs: NOW_MS + n };
    fleet.move(1, { lat: tile.lat, lng: tile.lng, ...times, altitudeM: 0, speedKmh: 40, odometerKm: null });
    return ask(tile).bytes;
  };
}

/** An unchanged tile by an empty poll for changes, and a caller of nearest beside pages of the whole fleet. */
async function measureHttp(context: CaseContext): Promise<SizedPart> {
  const devices = context.smoke ? SMOKE_SIZE : HTTP_SIZE;
  const world = await createWorld(context, devices);
  await using service = await startBenchService(context.databaseUrl);
  await using load = openHttpLoad();
  const { url } = service;
  const headers = { 'X-API-Key': world.key };
  const tileUrl = `${url}/api/v3/tiles/devices/0/0/0.mvt`;
  const etag = (await fetch(tileUrl, { headers })).headers.get('etag') ?? '';
  const known = { ...headers, 'If-None-Match': etag };
  const cursor = await lastCursor(url, headers, null);
  const server = (what: string, path: string, sent: typeof headers): MeasuredServer => ({
    ...{ what, urls: [url], headers: sent, usage: async () => usageNow(), paths: [path], rounds: [] },
  });
  const empty = server('changes: nothing new', `/api/v3/devices/changes?cursor=${cursor}`, headers);
  const tile = server(`an unchanged tile of ${devices} devices`, new URL(tileUrl).pathname, known);
  await measureInTurn(load, [empty, tile], context);
  invariant((await fetch(tileUrl, { headers: known })).status === 304, 'nothing has changed in the tile');
  await using probe = openNearestProbe(url, world.key);
  const forMs = context.smoke ? 300 : (1_000 * context.seconds) / 2;
  const calm = await probe.during(() => new Promise((resolve) => setTimeout(resolve, forMs)));
  const boxPath = '/api/v3/devices/within?bbox=-180,-90,180,90';
  const page = await (await fetch(url + boxPath, { headers })).json();
  invariant(
    (page as { meta: { total: number } }).meta.total === devices,
    'every device is in the whole world',
  );
  const pages = { urls: [url], headers, paths: [boxPath], connections: 1, seconds: forMs / 1_000 };
  const beside = await probe.during(() => load.ask(pages));
  const unchanged = metricsOf({ unchanged_tile_of_poll_by_cpu: ratiosOf(tile, empty, ({ cpuUs }) => cpuUs) });
  return {
    size: `${devices} devices over HTTP`,
    rows: [
      ...[empty, tile].map(rowOf),
      { what: 'nearest, calm', ...calm.percentiles() },
      { what: `nearest beside pages of ${devices} devices in a box`, ...beside.percentiles() },
    ],
    ...unchanged,
    metrics: {
      ...unchanged.metrics,
      nearest_p99_beside_box: beside.percentile(0.99) / calm.percentile(0.99),
    },
  };
}

function filterOf(asked: Readonly<Record<string, string>>): DeviceFilter {
  const filter = readFilter(asked, []);
  invariant(filter.ok && filter.value !== null, 'the filter can be read');
  return filter.value;
}

function anyPlace(random: () => number) {
  return { lat: CORNER.lat + SPAN * random(), lng: CORNER.lng + SPAN * random() };
}

function fillFleet(size: number, random: () => number): Fleet {
  const fleet = new Fleet();
  for (let id = 1; id <= size; id++) {
    const groups = [id % 2 === 0 ? 'half' : 'other', ...(id % 1_000 === 0 ? ['rare'] : [])];
    const fields = {
      id,
      imei: simulatedImei(id),
      worldId: WORLD,
      name: `Van ${id}`,
      plate: null,
      model: null,
    };
    fleet.putDevice({ ...fields, groups, editedAtMs: NOW_MS });
    const one = Math.floor(random() * 1_000);
    const ageMs = one === 0 ? 48 * HOUR_MS : one === 1 ? 500 : 2_000 + 100_000 * random();
    const times = { recordedAtMs: NOW_MS - Math.round(ageMs), movedAtMs: NOW_MS };
    const speedKmh = random() < 0.5 ? 0 : 40;
    fleet.move(id, { ...anyPlace(random), ...times, altitudeM: 0, speedKmh, odometerKm: null });
  }
  return fleet;
}
