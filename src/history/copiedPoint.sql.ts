import type { CopiedRow } from '../postgres/copiedRow.ts';
import { RawSql } from '../postgres/sqlText.ts';
import type { PointColumns } from './codec/pointColumns.ts';

/** What `readPoint` reads, and what `readMarks` reads behind a point or a place. */
export const POINT_LIST = new RawSql(
  'recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, odometer_km',
);
export const MARK_LIST = new RawSql('received_at, late');

/** Reads the columns behind recorded_at into place `n`. How the point came is not known. */
export function readPoint(row: CopiedRow, recordedAtMs: number, points: PointColumns, n: number): void {
  readPlace(row, recordedAtMs, points, n);
  points.altitudesM[n] = row.float8();
  points.speedsKmh[n] = row.float8();
  points.headings[n] = row.float8();
  points.satellites[n] = row.int4();
  points.odometersKm[n] = row.float8OrNull() ?? Number.NaN;
  points.receivedAtMs[n] = Number.NaN;
  points.lates[n] = Number.NaN;
}

/** What `readPlace` and `readMotion` read. The other columns need no places. */
export const PLACE_LIST = new RawSql('recorded_at, latitude, longitude');
export const MOTION_LIST = new RawSql('recorded_at, latitude, longitude, speed_kmh');

/** Reads the columns behind recorded_at into place `n`: where the point was. */
export function readPlace(row: CopiedRow, recordedAtMs: number, points: PointColumns, n: number): void {
  points.recordedAtMs[n] = recordedAtMs;
  points.lats[n] = row.float8();
  points.lngs[n] = row.float8();
}

/** Where the point was, and how fast. */
export function readMotion(row: CopiedRow, recordedAtMs: number, points: PointColumns, n: number): void {
  readPlace(row, recordedAtMs, points, n);
  points.speedsKmh[n] = row.float8();
}

/** Reads how the point came. */
export function readMarks(row: CopiedRow, points: PointColumns, n: number): void {
  points.receivedAtMs[n] = row.timestampMsOrNull() ?? Number.NaN;
  const late = row.boolOrNull();
  points.lates[n] = late === null ? Number.NaN : Number(late);
}

/** Where the point was and how it came: PLACE_LIST and MARK_LIST. */
export function readMarkedPlace(row: CopiedRow, recordedAtMs: number, points: PointColumns, n: number): void {
  readPlace(row, recordedAtMs, points, n);
  readMarks(row, points, n);
}
