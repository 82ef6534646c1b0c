import { simulatedImei } from '../../src/cli/simulatedImei.ts';
import { distanceM } from '../../src/geometry/distance.ts';
import { Fleet } from '../../src/memory/fleet.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, Curve, Row } from '../benchCase.ts';
import { measureCalls } from '../measureCalls.ts';
import { placeSource, type Spread } from '../places.ts';
import { type Profile, profileCalls } from '../profile.ts';

const SIZES = [10_000, 100_000, 1_000_000];
const SMOKE_SIZES = [1_000, 10_000];
const SPREADS: readonly Spread[] = ['towns', 'globe'];
const WORLD = 1;
const MOVED_SHARE = 0.1;
const QUERIES = 4_096;
const NOW_MS = 1_700_000_000_000;

export const bench: BenchCase = {
  about: 'the nearest device in process, 10 % of all moved since they were loaded',
  run: async ({ smoke, seconds, sizes, profile: isProfiled, say }) => {
    const rows: Row[] = [];
    const figures: Record<string, number> = {};
    const all = sizes ?? (smoke ? SMOKE_SIZES : SIZES);
    const slices = 2 * (SPREADS.length * all.length) + 1;
    const share = smoke ? 0.05 : seconds / slices;
    const curves: Curve[] = [];
    const profiles: Profile[] = [];
    for (const spread of SPREADS) {
      const points: [number, number][] = [];
      for (const size of all) {
        say(`${size} devices, ${spread}`);
        const { ask, near, move } = measureSize(spread, size, share);
        if (isProfiled && size === all.at(-1)) {
          profiles.push(await profileCalls(`nearest among ${size}, ${spread}`, ask));
        }
        rows.push({ what: `nearest k=1, ${size} devices, ${spread}`, unit: 'calls', ...near });
        rows.push({ what: `move, ${size} devices, ${spread}`, unit: 'moves', ...move });
        const name = `us_${size}`;
        figures[name] = Math.max(figures[name] ?? 0, near.cpuUs);
        points.push([size, near.cpuUs]);
      }
      curves.push({ name: `nearest among devices, ${spread}`, points });
    }
    const floor = measureFloor(share);
    rows.push({ what: 'floor: one distance on the ellipsoid', unit: 'calls', ...floor });
    const smallest = figures[`us_${all[0]}`] as number;
    const largest = figures[`us_${all.at(-1)}`] as number;
    figures['growth'] = largest / smallest;
    figures['distances'] = largest / floor.cpuUs;
    return { kind: 'measured', size: `${all.join(', ')} devices`, rows, figures, curves, profiles };
  },
};

function measureSize(spread: Spread, size: number, seconds: number) {
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
    return fleet.near([WORLD], queries[at] as number, queries[at + 1] as number, 1, Infinity).length;
  };
  return { ask, near: measureCalls(seconds, ask), move: measureCalls(seconds, moveAny) };
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
