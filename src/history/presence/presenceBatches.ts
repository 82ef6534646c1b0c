import { PACKED_ROWS_AT_A_TIME } from '../packedStretches.sql.ts';
import type { PlaceSpan } from '../placeSpans.sql.ts';

/** What is to be read of one device. */
export interface DeviceSpans {
  readonly deviceId: number;
  readonly spans: readonly PlaceSpan[];
}

/** Devices whose points are read by one statement, or one whose points are read page by page. */
export interface PresenceBatch {
  readonly devices: readonly DeviceSpans[];
  /** Every span is of packed points, and they are not too many for one statement. */
  readonly isPacked: boolean;
}

/** Puts devices with few rows of packed points together. Spans come by device. */
export function* batchesOf(spans: readonly PlaceSpan[]): Generator<PresenceBatch, void, undefined> {
  let devices: DeviceSpans[] = [];
  let rows = 0;
  for (const [deviceId, own] of Map.groupBy(spans, (span) => span.deviceId)) {
    const added = packedRowsOf(own);
    if (added > PACKED_ROWS_AT_A_TIME) {
      yield { devices: [{ deviceId, spans: own }], isPacked: false };
      continue;
    }
    if (rows + added > PACKED_ROWS_AT_A_TIME) {
      yield { devices, isPacked: true };
      devices = [];
      rows = 0;
    }
    devices.push({ deviceId, spans: own });
    rows += added;
  }
  if (devices.length > 0) yield { devices, isPacked: true };
}

/** Infinity where some of the points are rows: nobody knows how many they are. */
function packedRowsOf(spans: readonly PlaceSpan[]): number {
  return spans.reduce((sum, { packedRows }) => sum + (packedRows || Number.POSITIVE_INFINITY), 0);
}
