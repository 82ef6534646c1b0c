import { simulatedImei } from '../src/cli/simulatedImei.ts';
import { Fleet } from '../src/memory/fleet.ts';
import { seededRandom } from '../test/support/seededRandom.ts';
import type { Row } from './benchCase.ts';
import { Latencies } from './latencies.ts';
import { measureCalls } from './measureCalls.ts';

const WORLD = 1;
const NOW_MS = 1_700_000_000_000;
const DEPOT = { lat: 41.9, lng: 12.5 };
const ASKED_AT = [
  { where: 'nearby', lat: 41.91, lng: 12.51 },
  { where: 'from 10 000 km', lat: -23, lng: -46 },
  { where: 'from the antipode', lat: -41.9, lng: -167.5 },
] as const;
const LIMIT = 50;

/** What is told of questions that many devices answer equally well. */
export interface TiesMeasured {
  readonly rows: readonly Row[];
  /** All on one spot against the same number around it, by the worst of the places asked at. */
  readonly spotOfOrdinary: number;
  /** What a piece takes of a question that all devices answer equally well: the median. */
  readonly stepMs: number;
}

/** All devices on one spot, asked nearby and from far away, and all on the equator, asked from a pole. */
export function measureTies(devices: number, seconds: number): TiesMeasured {
  const share = seconds / (2 * ASKED_AT.length + 1);
  const random = seededRandom(6);
  const even = (size: number) => size * (random() - 0.5);
  const ordinary = fill(devices, () => ({ lat: DEPOT.lat + even(0.5), lng: DEPOT.lng + even(0.5) }));
  const spot = fill(devices, () => DEPOT);
  const rows: Row[] = [];
  const ratios = ASKED_AT.map(({ where, lat, lng }) => {
    const ask = (fleet: Fleet) => () => finish(fleet, lat, lng).length;
    const ofOrdinary = measureCalls(share, ask(ordinary), 1);
    const ofSpot = measureCalls(share, ask(spot), 1);
    rows.push({ what: `k=${LIMIT} of ${devices} around a depot, ${where}`, unit: 'calls', ...ofOrdinary });
    rows.push({ what: `k=${LIMIT} of ${devices} on one spot, ${where}`, unit: 'calls', ...ofSpot });
    return ofSpot.cpuUs / ofOrdinary.cpuUs;
  });
  const equator = fill(devices, () => ({ lat: 0, lng: even(360) }));
  const pieceMs = new Latencies();
  const fromPole = measureCalls(share, () => finish(equator, 90, 0, (ms) => pieceMs.add(ms)).length, 1);
  rows.push({ what: `k=${LIMIT} of ${devices} on the equator, from a pole`, unit: 'calls', ...fromPole });
  const pieces = pieceMs.percentiles();
  rows.push({ what: 'the pieces of the last, while others are answered in between', ...pieces });
  return { rows, spotOfOrdinary: Math.max(...ratios), stepMs: pieces.p50Ms };
}

/** Asks as the route does. */
function finish(fleet: Fleet, lat: number, lng: number, tell: (stepMs: number) => void = () => undefined) {
  let startMs = performance.now();
  const atOnce = fleet.near([WORLD], lat, lng, LIMIT, Infinity);
  const steps = fleet.nearInSteps([WORLD], lat, lng, LIMIT, Infinity);
  for (;;) {
    tell(performance.now() - startMs);
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
