import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { type FleetView, readDevices, readUpTo } from '../../src/feeds/readDevices.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { CaseContext, Part } from '../benchCase.ts';
import { Latencies } from '../measure/latencies.ts';

const DEVICES = 1_000_000;
const MOVED = 10_000;
const SMOKE_DEVICES = 20_000;
const SMOKE_MOVED = 1_000;
const BATCH = 10;
const PAGE = 500;
const ROUNDS = 200;
const WORLD = 1;
const NOW_MS = 1_700_000_000_000;

/** The first page after some devices of very many have moved, and what a device takes in memory. */
export function measureChanges({ smoke }: CaseContext): FeedPart {
  const [devices, moved] = smoke ? [SMOKE_DEVICES, SMOKE_MOVED] : [DEVICES, MOVED];
  const { fleet, xid: loadedXid } = loadedFleet(devices);
  const random = seededRandom(15);
  let xid = loadedXid;
  for (let n = 0; n < moved; n++) {
    if (n % BATCH === 0) xid++;
    move(fleet, Math.floor(random() * devices), NOW_MS + n + 1, xid);
  }
  const view: FleetView = { fleet, followed: new Snapshot(xid + 1, xid + 1, []), own: new Set() };
  const before = readUpTo(new Snapshot(loadedXid + 1, loadedXid + 1, []));
  const times = new Latencies();
  for (let round = 0; round < ROUNDS; round++) {
    const startMs = performance.now();
    const { items } = readDevices(view, [WORLD], before, PAGE);
    times.add(performance.now() - startMs);
    if (items.length !== PAGE) throw new Error(`a page of ${items.length}`);
  }
  return {
    size: `${devices} devices in memory`,
    rows: [{ what: `first page of ${PAGE} after ${moved} of ${devices} moved`, ...times.percentiles() }],
    metrics: { first_page_p99_ms: times.percentile(0.99), bytes_per_device: bytesPerDevice(devices) },
  };
}

function loadedFleet(devices: number): { fleet: Fleet; xid: number } {
  const fleet = new Fleet();
  const fields = { worldId: WORLD, name: null, plate: null, model: null, groups: [], editedAtMs: 0 };
  let xid = 1_000;
  for (let id = 0; id < devices; id++) {
    if (id % BATCH === 0) xid++;
    fleet.putDevice({ ...fields, id, imei: simulatedImei(id) }, 1);
    move(fleet, id, NOW_MS, xid);
  }
  return { fleet, xid };
}

function move(fleet: Fleet, id: number, recordedAtMs: number, xid: number): void {
  const place = { lat: (id % 170) - 85, lng: (id % 359) - 179, altitudeM: 0 };
  const position = { ...place, speedKmh: 30, odometerKm: null, recordedAtMs, movedAtMs: recordedAtMs };
  fleet.move(id, position, { headingDeg: 0, ignition: null, revision: recordedAtMs - NOW_MS, xid });
}

/** What memory takes of each device without a name, with everything by which it is found and followed. */
function bytesPerDevice(devices: number): number {
  const usedBytes = (): number => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = usedBytes();
  const { fleet } = loadedFleet(devices);
  const bytes = usedBytes() - before;
  // It is used here, so that it is not collected before.
  if (fleet.deviceCount !== devices) throw new Error('every device is in memory');
  return bytes / devices;
}

setFlagsFromString('--expose-gc');
/** Frees what nothing refers to, so that the memory in use can be compared before and after. */
export const collectGarbage = runInNewContext('gc') as () => void;

export type FeedPart = Part & { readonly size: string };
