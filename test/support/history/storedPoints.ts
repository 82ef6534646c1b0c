import {
  PACKED_LIST,
  packedRowOf,
  type SelectedPacked,
  unpackRow,
} from '../../../src/history/packedPoints.sql.ts';
import type { Sql } from '../../../src/postgres/sql.ts';

export interface StoredPoint {
  readonly imei: string;
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
}

/** All points that Postgres holds, as rows and packed, by device and time. A point that is held twice is there twice. */
export async function storedPoints(sql: Sql): Promise<StoredPoint[]> {
  // In one snapshot: what is packed in between would be found twice.
  const [rows, packed] = await sql.begin(
    'isolation level repeatable read read only',
    async (tx) =>
      [
        await tx<{ imei: string; recorded_at: Date; latitude: number; longitude: number }[]>`
      select d.imei, p.recorded_at, p.latitude, p.longitude from position p join device d on d.id = p.device_id`,
        await tx<(SelectedPacked & { imei: string })[]>`
      select d.imei, ${PACKED_LIST} from packed_points p join device d on d.id = p.device_id`,
      ] as const,
  );
  const points = rows.map((row): StoredPoint => {
    const { imei, latitude: lat, longitude: lng } = row;
    return { imei, recordedAtMs: row.recorded_at.getTime(), lat, lng };
  });
  for (const row of packed) {
    const { count, recordedAtMs, lats, lngs } = unpackRow(packedRowOf(0, row)).columns();
    for (let n = 0; n < count; n++)
      points.push({
        imei: row.imei,
        recordedAtMs: recordedAtMs[n] as number,
        lat: lats[n] as number,
        lng: lngs[n] as number,
      });
  }
  return points.sort((a, b) =>
    a.imei < b.imei ? -1 : a.imei > b.imei ? 1 : a.recordedAtMs - b.recordedAtMs,
  );
}
