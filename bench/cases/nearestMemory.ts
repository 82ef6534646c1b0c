import { simulatedImei } from '../../src/cli/simulatedImei.ts';
import { distanceM } from '../../src/geometry/distance.ts';
import { Fleet } from '../../src/memory/fleet.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, Curve, Row } from '../benchCase.ts';
import { type CallFigures, measureCalls, medianFigures } from '../measureCalls.ts';
import { median } from '../median.ts';
import { measureTies } from '../nearestTies.ts';
import { placeSource, type Spread } from '../places.ts';
import { type Profile, profileCalls } from '../profile.ts';

const SIZES = [10_000, 100_000, 1_000_000];
const SMOKE_SIZES = [1_000, 10_000];
/** Devices that are equally near. */
const TIES = 100_000;
const SMOKE_TIES = 5_000;
const SPREADS: readonly Spread[] = ['towns', 'globe'];
const WORLD = 1;
const MOVED_SHARE = 0.1;
const ROUNDS = 5;
const QUERIES = 4_096;
const NOW_MS = 1_700_000_000_000;

export const bench: BenchCase = {
  about:
    'the nearest device in process, 10 % of all moved since they were loaded; and where thousands are equally near',
  run: async ({ smoke, seconds, sizes, profile: isProfiled, say }) => {
    const rows: Row[] = [];
    const curves: Curve[] = [];
    const profiles: Profile[] = [];
    const figures: Record<string, number> = {};
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
        const found = medianFigures(near);
        rows.push({ what: `nearest k=1, ${size} devices, ${spread}`, unit: 'calls', ...found });
        rows.push({ what: `move, ${size} devices, ${spread}`, unit: 'moves', ...medianFigures(move) });
        const name = `us_${size}`;
        figures[name] = Math.max(figures[name] ?? 0, found.cpuUs);
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
    figures['spot_of_ordinary'] = ties.spotOfOrdinary;
    figures['step_ms'] = ties.stepMs;
    figures['growth'] = Math.max(...growth);
    figures['distances'] = (figures[`us_${all.at(-1)}`] as number) / floor.cpuUs;
    return { kind: 'measured', size: `${all.join(', ')} devices`, rows, figures, curves, profiles };
  },
};

interface AskedFleet {
  readonly size: number;
  readonly ask: (n: number) => unknown;
  readonly moveAny: () => void;
  readonly near: CallFigures[];
  readonly move: CallFigures[];
}

/**
 * All sizes in short rounds, in turn, so that whatever else the machine does meets each of them. The moves come last:
 * V8's collector threads look through a million devices for what moves leave, which is none of a question's time.
 */
function takeTurns(asked: readonly AskedFleet[], rounds: number, seconds: number): void {
  for (let round = 0; round < rounds; round++) {
    for (const { ask, near } of asked) near.push(measureCalls(seconds / rounds, ask));
  }
  for (let round = 0; round < rounds; round++) {
    for (const { moveAny, move } of asked) move.push(measureCalls(seconds / rounds, moveAny));
  }
}

/** How many times the time of the smallest fleet the largest takes: the median of the rounds. */
function growthOf(asked: readonly AskedFleet[]): number {
  const [smallest, largest] = [asked[0], asked.at(-1)] as [AskedFleet, AskedFleet];
  return median(largest.near.map(({ cpuUs }, round) => cpuUs / (smallest.near[round] as CallFigures).cpuUs));
}

function fillFleet(spread: Spread, size: number): AskedFleet {
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
