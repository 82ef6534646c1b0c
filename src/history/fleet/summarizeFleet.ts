import type { Device } from '../../devices/device.ts';
import { inTurns, type Steps } from '../../lib/workTurns.ts';
import type { PointRange } from '../packedPoints.sql.ts';
import {
  MANY_RANGES,
  MOTION,
  mergedPoints,
  type PointsRead,
  readInOrder,
  selectPoints,
} from '../points.sql.ts';
import type { HistoryReader } from '../readHistoryCall.ts';
import type { Period } from '../summary/calendarLedger.ts';
import { Summary, type SummaryRequest } from '../summary/summary.ts';
import { chosenDevices, type DeviceChoice } from './chosenDevices.ts';
import type { FleetPointPorts } from './fleetPoints.ts';

/** Devices that are looked up in memory at a time. */
const DEVICES_AT_A_TIME = 1_024;

/** A device, and what it did. */
export interface DeviceSummary {
  readonly device: Device;
  readonly periods: readonly Period[];
}

/** With both ends of the window. */
interface FleetSummaryRequest extends SummaryRequest {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * What each of many devices did in a time, in the order of IMEIs: those that end with what one statement has read, which
 * may be none. The next statement is under way meanwhile, and no connection is held between two. A device that is deleted, or
 * leaves the worlds of the reader, is left out. Takes memory for the points of a statement or two, and for the periods of
 * some devices. Rejects with DamagedPoints.
 */
export async function* summarizeFleet(
  { fleet, reads, turns }: FleetPointPorts,
  { accountId, worldIds }: HistoryReader,
  choice: DeviceChoice,
  request: FleetSummaryRequest,
): AsyncGenerator<readonly DeviceSummary[], void, undefined> {
  const { fromMs, toMs } = request;
  const sql = reads(accountId);
  const read = (ranges: readonly PointRange[]) => selectPoints(sql, worldIds, ranges, MOTION, MANY_RANGES);
  for (let { afterImei } = choice; ; ) {
    const chosen = chosenDevices(fleet, worldIds, choice, afterImei, DEVICES_AT_A_TIME);
    const devices = await inTurns(turns, accountId, chosen);
    const sums = new DeviceSums(devices, request);
    const ranges = devices.map(({ id }) => ({ deviceId: id, fromMs, toMs }));
    for await (const points of readInOrder(ranges, read)) yield await turns.run(accountId, sums.add(points));
    const last = devices.at(-1);
    if (last === undefined || devices.length < DEVICES_AT_A_TIME) return;
    afterImei = last.imei;
  }
}

/** Adds up the points of devices, statement after statement. */
class DeviceSums {
  readonly #devices: readonly Device[];
  readonly #request: FleetSummaryRequest;
  /** The device that is being added up. */
  #n = 0;
  /** null: the device has left what the reader sees. */
  #summary: Summary | null;

  constructor(devices: readonly Device[], request: FleetSummaryRequest) {
    this.#devices = devices;
    this.#request = request;
    this.#summary = new Summary(request);
  }

  /** Returns the devices whose points have ended. A step unpacks one row, or adds up some points. Throws DamagedPoints. */
  *add({ found, until }: PointsRead): Steps<DeviceSummary[]> {
    const ended: DeviceSummary[] = [];
    const isLastWhole = until.ms >= this.#request.toMs;
    for (const [at, stored] of found.entries()) {
      if (stored === null) this.#summary = null;
      else if (this.#summary !== null) {
        for (const points of mergedPoints(stored)) {
          yield* this.#summary.take(points);
          yield;
        }
      }
      if (at < found.length - 1 || isLastWhole) this.#end(ended);
    }
    return ended;
  }

  #end(ended: DeviceSummary[]): void {
    const device = this.#devices[this.#n++] as Device;
    if (this.#summary !== null) ended.push({ device, periods: this.#summary.finish() });
    this.#summary = new Summary(this.#request);
  }
}
