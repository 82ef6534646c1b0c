import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { distanceM } from '../../src/geo/wgs84.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, Part, Row } from '../benchCase.ts';
import { Latencies, median } from '../measure/latencies.ts';
import { type CallTimes, measureCalls, medianTimes } from '../measure/measureCalls.ts';
import { type Profile, profileCalls } from '../measure/profile.ts';
import { placeSource, placesOf, type Spread } from '../setup/places.ts';

const SIZES = [10_000, 100_000, 1_000_000];
const SMOKE_SIZES = [1_000, 10_000];
const TIES = 100_000;
const SMOKE_TIES = 5_000;
const SPREADS: readonly Spread[] = ['towns', 'globe'];
const WORLD = 1;
const MOVED_SHARE = 0.1;
const ROUNDS = 5;
const QUERIES = 4_096;
const NOW_MS = 1_700_000_000_000;
const MOTION = { altitudeM: 0, speedKmh: 30, odometerKm: null, recordedAtMs: NOW_MS, movedAtMs: NOW_MS };

export const nearestMemory: BenchCase = {
  about: 'the nearest device in process, 10 % of them moved since the start; and with thousands equally near',
  run: async ({ smoke, seconds, sizes, profile: isProfiled, say }) => {
    const rows: Row[] = [];
    const profiles: Profile[] = [];
    const metrics: Record<string, number> = {};
    const growth: number[] = [];
    const all = sizes ?? (smoke ? SMOKE_SIZES : SIZES);
    const rounds = smoke ? 1 : ROUNDS;
    const share = smoke ? 0.05 : seconds / (2 * SPREADS.length * all.length + 2);
    for (const spread of SPREADS) {
      const asked = all.map((size) => {
        say(`${size} devices, ${spread}`);
        return fillFleet(spread, size);
      });
      takeTurns(asked, rounds, share);
      for (const { size, ask, near, move } of asked) {
        const found = medianTimes(near);
        rows.push({ what: `nearest k=1, ${size} devices, ${spread}`, unit: 'calls', ...found });
        rows.push({ what: `move, ${size} devices, ${spread}`, unit: 'moves', ...medianTimes(move) });
        const name = `us_${size}`;
        metrics[name] = Math.max(metrics[name] ?? 0, found.cpuUs);
        if (isProfiled && size === all.at(-1))
          profiles.push(await profileCalls(`nearest among ${size}, ${spread}`, ask));
      }
      growth.push(growthOf(asked));
    }
    const floor = measureFloor(share);
    rows.push({ what: 'floor: one distance on the ellipsoid', unit: 'calls', ...floor });
    say('devices that are equally near');
    const ties = measureTies(smoke ? SMOKE_TIES : TIES, share);
    rows.push(...ties.rows);
    Object.assign(metrics, ties.metrics);
    metrics['growth'] = Math.max(...growth);
    metrics['distances'] = (metrics[`us_${all.at(-1)}`] as number) / floor.cpuUs;
    return { kind: 'measured', size: `${all.join(', ')} devices`, rows, metrics, profiles };
  },
};

type MeasuredFleet = ReturnType<typeof fillFleet>;

/**
 * Measures all sizes in short rounds, in turn, so that other work on the machine affects each of them. Moves come
 * last: the garbage that they leave would be collected during the questions.
 */
function takeTurns(asked: readonly MeasuredFleet[], rounds: number, seconds: number): void {
  for (let round = 0; round < rounds; round++) {
    for (const { ask, near } of asked) near.push(measureCalls(seconds / rounds, ask));
  }
  for (let round = 0; round < rounds; round++) {
    for (const { moveAny, move } of asked) move.push(measureCalls(seconds / rounds, moveAny));
  }
}

function growthOf(asked: readonly MeasuredFleet[]): number {
  const [smallest, largest] = [asked[0], asked.at(-1)] as [MeasuredFleet, MeasuredFleet];
  return median(largest.near.map(({ cpuUs }, round) => cpuUs / (smallest.near[round] as CallTimes).cpuUs));
}

function fillFleet(spread: Spread, size: number) {
  const place = placeSource(spread, 1);
  const out = new Float64Array(2);
  const next = () => {
    place(out);
    return { lat: out[0]!, lng: out[1]! };
  };
  const fleet = fill(size, next);
  const random = seededRandom(5);
  const moveAny = () => fleet.move(Math.floor(random() * size), { ...next(), ...MOTION });
  for (let n = 0; n < size * MOVED_SHARE; n++) moveAny();
  const queries = placesOf(spread, 2, QUERIES);
  const ask = (n: number) => {
    const at = 2 * (n % QUERIES);
    return fleet.near([WORLD], queries[at] as number, queries[at + 1] as number, 1, Infinity)?.length;
  };
  const [near, move]: [CallTimes[], CallTimes[]] = [[], []];
  return { size, ask, moveAny, near, move };
}

function measureFloor(seconds: number) {
  const places = placesOf('globe', 2, QUERIES);
  return measureCalls(seconds, (n) => {
    const a = 2 * (n % QUERIES);
    const b = 2 * ((n + 1) % QUERIES);
    return distanceM(places[a]!, places[a + 1]!, places[b]!, places[b + 1]!);
  });
}

const DEPOT = { lat: 41.9, lng: 12.5 };
const ASKED_AT = [
  { where: 'nearby', lat: 41.91, lng: 12.51 },
  { where: 'from 10 000 km', lat: -23, lng: -46 },
  { where: 'from the antipode', lat: -41.9, lng: -167.5 },
] as const;
const LIMIT = 50;

/** `spot_of_ordinary`: the time with all on one spot by that with as many around it, the worst of the places. */
function measureTies(devices: number, seconds: number): Part {
  const share = seconds / (2 * ASKED_AT.length + 1);
  const random = seededRandom(6);
  const even = (size: number) => size * (random() - 0.5);
  const ordinary = fill(devices, () => ({ lat: DEPOT.lat + even(0.5), lng: DEPOT.lng + even(0.5) }));
  const spot = fill(devices, () => DEPOT);
  const rows: Row[] = [];
  const ratios = ASKED_AT.map(({ where, lat, lng }) => {
    const ask = (fleet: Fleet) => () => askAsRoute(fleet, lat, lng).length;
    const ofOrdinary = measureCalls(share, ask(ordinary), 1);
    const ofSpot = measureCalls(share, ask(spot), 1);
    rows.push({ what: `k=${LIMIT} of ${devices} around a depot, ${where}`, unit: 'calls', ...ofOrdinary });
    rows.push({ what: `k=${LIMIT} of ${devices} on one spot, ${where}`, unit: 'calls', ...ofSpot });
    return ofSpot.cpuUs / ofOrdinary.cpuUs;
  });
  const equator = fill(devices, () => ({ lat: 0, lng: even(360) }));
  const stepMs = new Latencies();
  const fromPole = measureCalls(share, () => askAsRoute(equator, 90, 0, (ms) => stepMs.add(ms)).length, 1);
  rows.push({ what: `k=${LIMIT} of ${devices} on the equator, from a pole`, unit: 'calls', ...fromPole });
  const steps = stepMs.percentiles();
  rows.push({ what: 'one step of the last, with other calls between steps', ...steps });
  return { rows, metrics: { spot_of_ordinary: Math.max(...ratios), step_ms: steps.p50Ms } };
}

/** Searches as the route does. */
function askAsRoute(
  fleet: Fleet,
  lat: number,
  lng: number,
  report: (stepMs: number) => void = () => undefined,
) {
  let startMs = performance.now();
  const atOnce = fleet.near([WORLD], lat, lng, LIMIT, Infinity);
  const steps = fleet.nearInSteps([WORLD], lat, lng, LIMIT, Infinity);
  for (;;) {
    report(performance.now() - startMs);
    if (atOnce !== null) return atOnce;
    startMs = performance.now();
    const next = steps.next();
    if (next.done === true) return next.value;
  }
}

function fill(devices: number, placeOf: () => { lat: number; lng: number }): Fleet {
  const fleet = new Fleet();
  const fields = { worldId: WORLD, name: null, plate: null, model: null, groups: [], editedAtMs: NOW_MS };
  for (let id = 0; id < devices; id++) {
    fleet.putDevice({ ...fields, id, imei: simulatedImei(id) });
    fleet.move(id, { ...placeOf(), ...MOTION });
  }
  return fleet;
}
