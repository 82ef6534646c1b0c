import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { ChangeOrder } from '../../src/devices/changes/changeOrder.ts';
import { MotionTable } from '../../src/devices/changes/slotColumns.ts';
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

/** The first page after some devices of very many have moved, and what remembering the order of changes takes. */
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

/** What memory keeps of each device for feeds, beside what it kept before there were any. */
function bytesPerDevice(devices: number): number {
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  const order = new ChangeOrder((slot) => slot);
  const motions = new MotionTable();
  for (let slot = 0; slot < devices; slot++) {
    order.put(slot, 1_000 + Math.floor(slot / BATCH), 1);
    motions.put(slot, { headingDeg: 90, ignition: true, revision: slot, xid: 1 });
  }
  collectGarbage();
  const bytes = process.memoryUsage().arrayBuffers - before;
  // Both are used here, so that neither is collected before.
  if (order.size !== devices || motions.revision(devices - 1) !== devices - 1)
    throw new Error('every device has its place');
  return bytes / devices;
}

setFlagsFromString('--expose-gc');
/** Frees what nothing refers to, so that the memory in use can be compared before and after. */
export const collectGarbage = runInNewContext('gc') as () => void;

export type FeedPart = Part & { readonly size: string };
