import type { CopiedRow } from '../sql/copiedRow.ts';
import { RawSql } from '../sql/sqlText.ts';
import type { PointColumns } from './codec/pointColumns.ts';

/** What `readPoint` reads; with `received_at, late` behind it, what `readMarks` reads then. */
export const POINT_LIST = new RawSql(
  'recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, odometer_km',
);
export const MARK_LIST = new RawSql('received_at, late');

/** Reads the columns behind recorded_at into place `n`. How the point came is not known. */
export function readPoint(row: CopiedRow, recordedAtMs: number, points: PointColumns, n: number): void {
  points.recordedAtMs[n] = recordedAtMs;
  points.lats[n] = row.float8();
  points.lngs[n] = row.float8();
  points.altitudesM[n] = row.float8();
  points.speedsKmh[n] = row.float8();
  points.headings[n] = row.float8();
  points.satellites[n] = row.int4();
  points.odometersKm[n] = row.float8OrNull() ?? Number.NaN;
  points.receivedAtMs[n] = Number.NaN;
  points.lates[n] = Number.NaN;
}

/** Reads how the point came. */
export function readMarks(row: CopiedRow, points: PointColumns, n: number): void {
  points.receivedAtMs[n] = row.timestampMsOrNull() ?? Number.NaN;
  const late = row.boolOrNull();
  points.lates[n] = late === null ? Number.NaN : Number(late);
}
