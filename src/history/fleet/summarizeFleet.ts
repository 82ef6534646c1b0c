import type { Device } from '../../devices/device.ts';
import { DAY_MS } from '../../lib/time.ts';
import { inTurns } from '../../lib/workTurns.ts';
import type { PointRange } from '../packedPoints.sql.ts';
import { MANY_RANGES, MOTION, readInOrder, selectPoints } from '../points.sql.ts';
import type { HistoryReader } from '../readHistoryCall.ts';
import type { Period } from '../summary/calendarLedger.ts';
import { chosenDevices, type DeviceChoice } from './chosenDevices.ts';
import { DeviceSums, type FleetSummaryRequest } from './deviceSums.ts';
import type { FleetPointPorts } from './fleetPoints.ts';
import type { FleetSums, SumsOfCall } from './fleetSums.ts';

/** Devices that are looked up in memory at a time. */
const DEVICES_AT_A_TIME = 1_024;
/** Days of devices that are added up without the thread, which takes longer to start than they take. */
const FEW_DAYS = 100;

/** A device, and what it did. */
export interface DeviceSummary {
  readonly device: Device;
  readonly periods: readonly Period[];
}

export interface FleetSummaryPorts extends FleetPointPorts {
  readonly sums: FleetSums;
}

/**
 * What each of many devices did in a period, in the order of IMEIs. Each item has the devices whose points end with what one
 * statement has read, which may be none. While the points of one statement are added up, those of the next wait for it and
 * the one after runs; no connection is held between statements. A device that is deleted or leaves the worlds of the reader is
 * left out. Takes memory for the points of three statements, and for the periods of some devices. Rejects with DamagedPoints.
 */
export async function* summarizeFleet(
  ports: FleetSummaryPorts,
  { accountId, worldIds }: HistoryReader,
  choice: DeviceChoice,
  request: FleetSummaryRequest,
): AsyncGenerator<readonly DeviceSummary[], void, undefined> {
  const { fleet, reads, turns } = ports;
  const { fromMs, toMs } = request;
  const sql = reads(accountId);
  const read = (ranges: readonly PointRange[]) => selectPoints(sql, worldIds, ranges, MOTION, MANY_RANGES);
  let sums: SumsOfCall | null = null;
  let before = 0;
  try {
    for (let { afterImei } = choice; ; ) {
      const chosen = chosenDevices(fleet, worldIds, choice, afterImei, DEVICES_AT_A_TIME);
      const devices = await inTurns(turns, accountId, chosen);
      const ranges = devices.map(({ id }) => ({ deviceId: id, fromMs, toMs }));
      const days = (devices.length * (toMs - fromMs)) / DAY_MS;
      const isShort = days < FEW_DAYS && devices.length < DEVICES_AT_A_TIME;
      sums ??= isShort ? inTurnsOf(ports, accountId, request) : ports.sums.begin(accountId, request);
      const first = before;
      for await (const ended of oneAhead(readInOrder(ranges, read), sums.add))
        yield ended.map(({ n, periods }) => ({ device: devices[n - first] as Device, periods }));
      before += devices.length;
      const last = devices.at(-1);
      if (last === undefined || devices.length < DEVICES_AT_A_TIME) return;
      afterImei = last.imei;
    }
  } finally {
    sums?.end();
  }
}

/** The results of `work` for all items, in order. It begins with an item before the result of the one before is there. */
async function* oneAhead<Item, Result>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result, void, undefined> {
  let working: Promise<Result> | null = null;
  for await (const item of items) {
    const next = work(item);
    // The caller may have left when it fails. If it still waits, it gets the error.
    next.catch(() => undefined);
    if (working !== null) yield await working;
    working = next;
  }
  if (working !== null) yield await working;
}

/** Adds up in turns with all other work of the service. */
function inTurnsOf(
  { turns }: FleetSummaryPorts,
  accountId: number,
  request: FleetSummaryRequest,
): SumsOfCall {
  const sums = new DeviceSums(request);
  return { add: (part) => turns.run(accountId, sums.add(part)), end: () => undefined };
}
