import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { distanceM } from '../../src/geo/distance.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, Curve, Row } from '../benchCase.ts';
import { type CallTimes, measureCalls, medianTimes } from '../measure/measureCalls.ts';
import { median } from '../measure/median.ts';
import { type Profile, profileCalls } from '../measure/profile.ts';
import { measureTies } from '../setup/nearestTies.ts';
import { placeSource, type Spread } from '../setup/places.ts';

const SIZES = [10_000, 100_000, 1_000_000];
const SMOKE_SIZES = [1_000, 10_000];
/** Devices at the same distance. */
const TIES = 100_000;
const SMOKE_TIES = 5_000;
const SPREADS: readonly Spread[] = ['towns', 'globe'];
const WORLD = 1;
const MOVED_SHARE = 0.1;
const ROUNDS = 5;
const QUERIES = 4_096;
const NOW_MS = 1_700_000_000_000;

export const bench: BenchCase = {
  about: 'the nearest device in process, 10 % of them moved since the start; and with thousands equally near',
  run: async ({ smoke, seconds, sizes, profile: isProfiled, say }) => {
    const rows: Row[] = [];
    const curves: Curve[] = [];
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
      const points: [number, number][] = [];
      for (const { size, ask, near, move } of asked) {
        const found = medianTimes(near);
        rows.push({ what: `nearest k=1, ${size} devices, ${spread}`, unit: 'calls', ...found });
        rows.push({ what: `move, ${size} devices, ${spread}`, unit: 'moves', ...medianTimes(move) });
        const name = `us_${size}`;
        metrics[name] = Math.max(metrics[name] ?? 0, found.cpuUs);
        points.push([size, found.cpuUs]);
        if (isProfiled && size === all.at(-1))
          profiles.push(await profileCalls(`nearest among ${size}, ${spread}`, ask));
      }
      curves.push({ name: `nearest among devices, ${spread}`, points });
      growth.push(growthOf(asked));
    }
    const floor = measureFloor(share);
    rows.push({ what: 'floor: one distance on the ellipsoid', unit: 'calls', ...floor });
    say('devices that are equally near');
    const ties = measureTies(smoke ? SMOKE_TIES : TIES, share);
    rows.push(...ties.rows);
    metrics['spot_of_ordinary'] = ties.spotOfOrdinary;
    metrics['step_ms'] = ties.stepMs;
    metrics['growth'] = Math.max(...growth);
    metrics['distances'] = (metrics[`us_${all.at(-1)}`] as number) / floor.cpuUs;
    return { kind: 'measured', size: `${all.join(', ')} devices`, rows, metrics, curves, profiles };
  },
};

interface MeasuredFleet {
  readonly size: number;
  readonly ask: (n: number) => unknown;
  readonly moveAny: () => void;
  readonly near: CallTimes[];
  readonly move: CallTimes[];
}

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

/** The time in the largest fleet divided by that in the smallest: the median of the rounds. */
function growthOf(asked: readonly MeasuredFleet[]): number {
  const [smallest, largest] = [asked[0], asked.at(-1)] as [MeasuredFleet, MeasuredFleet];
  return median(largest.near.map(({ cpuUs }, round) => cpuUs / (smallest.near[round] as CallTimes).cpuUs));
}

function fillFleet(spread: Spread, size: number): MeasuredFleet {
  const fleet = new Fleet();
  const place = placeSource(spread, 1);
  const out = new Float64Array(2);
  const move = (id: number) => {
    place(out);
    const [lat, lng] = out as unknown as [number, number];
    const position = { lat, lng, altitudeM: 0, speedKmh: 30, odometerKm: null };
    fleet.move(id, { ...position, recordedAtMs: NOW_MS, movedAtMs: NOW_MS });
  };
  const fields = { worldId: WORLD, name: null, plate: null, model: null, groups: [], editedAtMs: NOW_MS };
  for (let id = 0; id < size; id++) {
    fleet.putDevice({ ...fields, id, imei: simulatedImei(id) });
    move(id);
  }
  const random = seededRandom(5);
  const moveAny = () => move(Math.floor(random() * size));
  for (let n = 0; n < size * MOVED_SHARE; n++) moveAny();
  const queries = queryPlaces(spread);
  const ask = (n: number) => {
    const at = 2 * (n % QUERIES);
    return fleet.near([WORLD], queries[at] as number, queries[at + 1] as number, 1, Infinity)?.length;
  };
  return { size, ask, moveAny, near: [], move: [] };
}

function measureFloor(seconds: number) {
  const places = queryPlaces('globe');
  return measureCalls(seconds, (n) => {
    const a = 2 * (n % QUERIES);
    const b = 2 * ((n + 1) % QUERIES);
    return distanceM(
      places[a] as number,
      places[a + 1] as number,
      places[b] as number,
      places[b + 1] as number,
    );
  });
}

function queryPlaces(spread: Spread): Float64Array {
  const place = placeSource(spread, 2);
  const places = new Float64Array(2 * QUERIES);
  for (let n = 0; n < QUERIES; n++) place(places.subarray(2 * n, 2 * n + 2));
  return places;
}
