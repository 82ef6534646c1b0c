import type { Fleet } from '../../devices/fleet.memory.ts';
import { inTurns, type WorkTurns } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import type { PointColumns } from '../codec/pointColumns.ts';
import type { PointRange, TimeWindow } from '../packedPoints.sql.ts';
import {
  MANY_RANGES,
  MEASURED,
  pagesOf,
  readInOrder,
  type StoredPoints,
  selectPoints,
} from '../points.sql.ts';
import type { HistoryReader } from '../readHistoryCall.ts';
import { chosenDevices, type DeviceChoice } from './chosenDevices.ts';

export interface FleetPointPorts {
  readonly fleet: Fleet;
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

/** Points of one device, oldest first. */
export interface DevicePage {
  readonly imei: string;
  readonly page: PointColumns;
}

/** Devices that are looked up in memory at a time. */
const DEVICES_AT_A_TIME = 1_024;

interface DeviceRange extends PointRange {
  readonly imei: string;
}

/**
 * The stored points of many devices in a period, in the order of IMEIs, then of times. Each item is what one statement has
 * read, in pages that are unpacked when they are asked for. One statement reads many devices without points, and the next
 * statement runs ahead. No connection is held between statements. The points of a device end where it is deleted or leaves
 * the worlds of the reader. The pages throw DamagedPoints.
 */
export async function* fleetPoints(
  { fleet, reads, turns }: FleetPointPorts,
  { accountId, worldIds }: HistoryReader,
  choice: DeviceChoice,
  { fromMs, toMs }: TimeWindow,
): AsyncGenerator<Iterator<DevicePage, void, undefined>, void, undefined> {
  if (fromMs > toMs) return;
  const sql = reads(accountId);
  const read = (ranges: readonly DeviceRange[]) => selectPoints(sql, worldIds, ranges, MEASURED, MANY_RANGES);
  for (let afterImei = choice.afterImei; ; ) {
    const devices = await inTurns(
      turns,
      accountId,
      chosenDevices(fleet, worldIds, choice, afterImei, DEVICES_AT_A_TIME),
    );
    const ranges = devices.map(({ id, imei }) => ({ deviceId: id, imei, fromMs, toMs }));
    for await (const { found } of readInOrder(ranges, read)) yield pagesOfAll(ranges, found);
    const last = devices.at(-1);
    if (last === undefined || devices.length < DEVICES_AT_A_TIME) return;
    afterImei = last.imei;
  }
}

function* pagesOfAll(
  ranges: readonly DeviceRange[],
  found: readonly (StoredPoints | null)[],
): Generator<DevicePage, void, undefined> {
  for (const points of found) {
    if (points === null) continue;
    const { imei } = ranges[points.n] as DeviceRange;
    for (const page of pagesOf(points)) yield { imei, page };
  }
}
