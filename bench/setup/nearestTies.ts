import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { Row } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';
import { measureCalls } from '../measure/measureCalls.ts';

const WORLD = 1;
const NOW_MS = 1_700_000_000_000;
const DEPOT = { lat: 41.9, lng: 12.5 };
const ASKED_AT = [
  { where: 'nearby', lat: 41.91, lng: 12.51 },
  { where: 'from 10 000 km', lat: -23, lng: -46 },
  { where: 'from the antipode', lat: -41.9, lng: -167.5 },
] as const;
const LIMIT = 50;

/** Measurements of searches where many devices are at the same distance. */
export interface TiesMeasured {
  readonly rows: readonly Row[];
  /** Time with all devices on one spot divided by that with the same number around it: the worst of the places. */
  readonly spotOfOrdinary: number;
  /** The median duration of a step of a search where all devices are at the same distance. */
  readonly stepMs: number;
}

/** All devices on one spot, searched from nearby and from far away, and all on the equator, searched from a pole. */
export function measureTies(devices: number, seconds: number): TiesMeasured {
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
  return { rows, spotOfOrdinary: Math.max(...ratios), stepMs: steps.p50Ms };
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
  const rest = { altitudeM: 0, speedKmh: 30, odometerKm: null, recordedAtMs: NOW_MS, movedAtMs: NOW_MS };
  for (let id = 0; id < devices; id++) {
    fleet.putDevice({ ...fields, id, imei: simulatedImei(id) });
    fleet.move(id, { ...placeOf(), ...rest });
  }
  return fleet;
}
