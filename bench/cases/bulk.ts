import { areaDevicesRoute } from '../../src/areas/areaReads.routes.ts';
import { areasContainingRoutes } from '../../src/areas/areasContaining.routes.ts';
import { areaOverlapsRoute } from '../../src/areas/overlap/areaOverlaps.routes.ts';
import { Overlaps } from '../../src/areas/overlap/overlaps.ts';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { nearestBatchRoute } from '../../src/devices/nearestBatch.routes.ts';
import { packStays } from '../../src/devices/stays/packedStays.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { BulkCalls } from '../../src/http/bulkCalls.ts';
import { AtOnce, inOneGo, WorkTurns } from '../../src/lib/workTurns.ts';
import { RouteCalls, readPieces } from '../../test/support/http/routeCalls.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, CaseContext, Row } from '../benchCase.ts';
import { measureAsyncCalls, measureCalls } from '../measure/measureCalls.ts';
import { attackBenchFor } from '../neighbours/attackBench.ts';
import { LARGEST_BATCHES } from '../neighbours/requestAttacks.ts';
import { limitUseOf, percentilesOf } from '../neighbours/summary.ts';
import { countryAreas, countryPlaces, fillCatalog } from '../setup/areas.ts';
import { placesOf } from '../setup/places.ts';

const SIZES = { devices: 1_000_000, areas: 100_000, points: 1_000, inside: 10_000 };
const SMOKE_SIZES = { devices: 2_000, areas: 500, points: 50, inside: 200 };
type Sizes = typeof SIZES;
const WORLD = 1;
const NOW_MS = 1_700_000_000_000;
const BODIES = 16;
const FULL_AREA = 1;
const PAGE = 200;

export const bulk: BenchCase = {
  about:
    'batches of nearest and of areas around points, who is in an area, overlaps; in process, and beside a victim',
  run: async (context) => {
    const { smoke, seconds, say } = context;
    const sizes = smoke ? SMOKE_SIZES : SIZES;
    const share = smoke ? 0.05 : seconds / 4;
    say(`${sizes.devices} devices, ${sizes.areas} areas`);
    const fleet = filledFleet(sizes);
    const areas = fillCatalog(countryAreas(sizes.areas), WORLD);
    const turns = new WorkTurns<string | number>(3);
    const bulkCalls = new BulkCalls(turns);
    const measured = new Overlaps();
    const calls = new RouteCalls(
      [
        nearestBatchRoute({ fleet, bulkCalls }),
        ...areasContainingRoutes({ areas, bulkCalls, atOnce: new AtOnce(turns) }),
        areaDevicesRoute({ areas, fleet, bulkCalls, atOnce: new AtOnce(turns) }),
        areaOverlapsRoute({ areas, overlaps: measured, bulkCalls }),
      ],
      { worldIds: [WORLD], nowMs: NOW_MS },
    );
    const ask = (path: string, bodies: readonly string[]) => (n: number) =>
      Promise.resolve(calls.post(path, bodies[n % BODIES] as string)).then(readPieces);
    const inTowns = batchBodies((n) => townPlaces(sizes.points, 100 + n));
    const nearest = await measureAsyncCalls(share, 1, ask('/devices/nearest/batch', inTowns));
    const inCountry = batchBodies((n) => countryPlaces(sizes.points, 100 + n));
    const containing = await measureAsyncCalls(share, 1, ask('/areas/containing/batch', inCountry));
    const random = seededRandom(4);
    const occupancy = measureCalls(
      share,
      () => {
        const offset = Math.floor(random() * (sizes.inside - PAGE));
        return calls.get('/areas/:id/devices', `?limit=${PAGE}&offset=${offset}`, { id: String(FULL_AREA) });
      },
      1,
    );
    const change = measureCalls(share, stayChanges(fleet, sizes));
    const overlaps = await measureAsyncCalls(share, 1, () => {
      const id = String(1 + Math.floor(random() * sizes.areas));
      return Promise.resolve(calls.get('/areas/:id/overlaps', '', { id }));
    });
    await measured.close();
    say('a victim beside the largest batches');
    const victim = await measureVictim(context);
    const rows: Row[] = [
      { what: `${sizes.points} nearest among ${sizes.devices}`, unit: 'batches', ...nearest },
      { what: `areas around ${sizes.points} points among ${sizes.areas}`, unit: 'batches', ...containing },
      { what: `${PAGE} of ${sizes.inside} devices in an area`, unit: 'calls', ...occupancy },
      { what: 'a device enters or leaves that area', unit: 'changes', ...change },
      { what: `overlaps of one area among ${sizes.areas}`, unit: 'calls', ...overlaps },
      ...victim.rows,
    ];
    const metrics = {
      nearest_batch_ms: nearest.cpuUs / 1_000,
      containing_batch_ms: containing.cpuUs / 1_000,
      occupancy_p99_ms: occupancy.p99Ms,
      overlaps_ms: overlaps.cpuUs / 1_000,
      ...victim.metrics,
    };
    const size = `${sizes.devices} devices, ${sizes.areas} areas, batches of ${sizes.points}`;
    return { kind: 'measured', size, rows, metrics };
  },
};

function filledFleet({ devices, areas, inside }: Sizes): Fleet {
  const fleet = new Fleet();
  const places = placesOf('towns', 1, devices);
  const fields = { worldId: WORLD, plate: null, model: null, groups: [], editedAtMs: NOW_MS };
  const rest = { altitudeM: 0, speedKmh: 30, odometerKm: null, recordedAtMs: NOW_MS, movedAtMs: NOW_MS };
  for (let id = 1; id <= devices; id++) {
    fleet.putDevice({ ...fields, id, imei: simulatedImei(id), name: `Vehicle ${id}` });
    fleet.move(id, { lat: places[2 * id - 2]!, lng: places[2 * id - 1]!, ...rest });
    const areaId = id <= inside ? FULL_AREA : 2 + (id % (areas - 1));
    const insideSinceMs = NOW_MS - ((id * 7_919) % 100_000) * 100;
    const confirmedAtMs = id % 4 === 0 ? null : insideSinceMs;
    inOneGo(fleet.putStays(id, packStays([{ areaId, insideSinceMs, confirmedAtMs }]), 0));
  }
  return fleet;
}

function stayChanges(fleet: Fleet, { inside }: Sizes): (n: number) => unknown {
  return (n) => {
    const id = 1 + ((n >> 1) % inside);
    const insideSinceMs = NOW_MS - ((n * 7_919) % 100_000) * 100;
    const stays = n % 2 === 0 ? [] : [{ areaId: FULL_AREA, insideSinceMs, confirmedAtMs: insideSinceMs }];
    return inOneGo(fleet.putStays(id, packStays(stays), n + 1));
  };
}

function batchBodies(placesOf: (n: number) => Iterable<LatLng>): string[] {
  return Array.from({ length: BODIES }, (_, body) =>
    JSON.stringify({
      points: Array.from(placesOf(body), ({ lat, lng }, n) => ({
        ref: `stop ${n}`,
        lat: Number(lat.toFixed(6)),
        lng: Number(lng.toFixed(6)),
      })),
    }),
  );
}

function* townPlaces(count: number, seed: number): Generator<LatLng> {
  const places = placesOf('towns', seed, count);
  for (let n = 0; n < count; n++) yield { lat: places[2 * n]!, lng: places[2 * n + 1]! };
}

/** The worst answer to a customer who polls, beside another who sends the largest batches, and before. */
async function measureVictim(context: CaseContext) {
  await using attackBench = await attackBenchFor(context, context.seconds * 1_000);
  const result = context.smoke
    ? (await attackBench.together([LARGEST_BATCHES]))[0]
    : await attackBench.apart([LARGEST_BATCHES]);
  if (result === undefined) throw new Error('no result');
  const { calm, during } = result;
  const [before, beside] = [percentilesOf(calm.polls), percentilesOf(during.polls)];
  const { polls, failedCalls } = limitUseOf(result);
  return {
    rows: [
      { what: 'a customer polls', ...before },
      { what: 'a customer polls beside the largest batches', ...beside },
    ],
    metrics: {
      // A busy machine may not answer one poll in the time of a smoke run.
      victim_p99_of_calm: (beside.p99Ms ?? 0) / (before.p99Ms ?? 1),
      victim_worst_of_limit: polls,
      victim_failed_calls: failedCalls,
    },
  };
}
