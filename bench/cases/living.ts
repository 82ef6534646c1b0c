import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { deviceJson } from '../../src/devices/device.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { boxRegion } from '../../src/devices/living/boxRegion.ts';
import { type DeviceFilter, readFilter } from '../../src/devices/living/deviceFilter.ts';
import { invariant } from '../../src/lib/errors.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, Row } from '../benchCase.ts';
import { measureCalls, medianTimes } from '../measure/measureCalls.ts';

const SIZE = 1_000_000;
const SMOKE_SIZE = 10_000;
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

export const filteredMemory: BenchCase = {
  about: 'in process: the nearest device that passes a filter, by that without one, and the devices in a box',
  run: async ({ smoke, seconds, sizes, say }) => {
    const size = sizes?.at(-1) ?? (smoke ? SMOKE_SIZE : SIZE);
    say(`${size} devices`);
    const random = seededRandom(7);
    const fleet = fillFleet(size, random);
    const share = (smoke ? 0.05 : seconds) / (ROUNDS * (Object.keys(FILTERS).length + 2));
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
      const { devices } = inOneGo(fleet.living.within([WORLD], region, null, NOW_MS, page));
      let chars = 0;
      for (const device of devices) chars += deviceJson(device, NOW_MS).length;
      return chars;
    };
    const asked = [plain, ...questions, box];
    // In turn, so that other work on the machine affects each of them.
    const times = asked.map(() => [] as ReturnType<typeof measureCalls>[]);
    for (let round = 0; round < ROUNDS; round++)
      for (const [n, ask] of asked.entries())
        times[n]?.push(ask === box ? measureCalls(share, ask, 1) : measureCalls(share, ask));
    const medians = times.map(medianTimes);
    const names = [
      'nearest k=1, without a filter',
      ...Object.keys(FILTERS),
      `a box with ${BOX_HITS} devices, ${PAGE} shown`,
    ];
    const rows: Row[] = names.map((what, n) => ({
      what,
      unit: 'calls',
      ...(medians[n] as (typeof medians)[0]),
    }));
    const plainUs = medians[0]?.cpuUs as number;
    const worst = Math.max(...medians.slice(1, -1).map(({ cpuUs }) => cpuUs));
    const metrics = { filtered_of_plain: worst / plainUs, box_ms: (medians.at(-1)?.cpuUs as number) / 1_000 };
    return { kind: 'measured', size: `${size} devices`, rows, metrics };
  },
};

function filterOf(asked: Readonly<Record<string, string>>): DeviceFilter {
  const filter = readFilter(asked);
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
