import type { Sql, Tx } from '../../postgres/sql.ts';

/** Some megabytes: a fraction of a second. */
const PACKED_ROWS = 100;

/** Deletes the oldest points that are rows of a device, at most so many. Returns how many there were. */
export async function deletePoints(sql: Sql | Tx, deviceId: number, limit: number): Promise<number> {
  const result = await sql`
    delete from position where device_id = ${deviceId} and recorded_at in (
      select recorded_at from position where device_id = ${deviceId} order by recorded_at limit ${limit})`;
  return result.count;
}

/** Deletes a chunk of the packed points of a device. Returns how many points they were; 0: there are none left. */
export async function deletePacked(sql: Sql | Tx, deviceId: number): Promise<number> {
  const rows = await sql<{ count: number }[]>`
    delete from packed_points where device_id = ${deviceId} and first_at in (
      select first_at from packed_points where device_id = ${deviceId} order by first_at limit ${PACKED_ROWS})
    returning count`;
  return rows.reduce((sum, { count }) => sum + count, 0);
}

/**
 * Deletes a device that this transaction has locked, with its state, its commands and its points, of which most must be
 * gone already. Waits for a transaction of points that has the state locked. Returns the number of points.
 */
export async function deleteDeviceRows(tx: Tx, deviceId: number): Promise<number> {
  await tx`delete from device_state where device_id = ${deviceId}`;
  const points = await tx`delete from position where device_id = ${deviceId}`;
  const packed = await tx<{ count: number }[]>`
    delete from packed_points where device_id = ${deviceId} returning count`;
  await tx`delete from command where device_id = ${deviceId}`;
  await tx`delete from device where id = ${deviceId}`;
  return packed.reduce((sum, { count }) => sum + count, points.count);
}
