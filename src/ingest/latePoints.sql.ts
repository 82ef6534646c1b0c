import type { OnDamaged, PointKey, TimedPosition } from '../history/packedPoints.sql.ts';
import { findPacked, newestPacked } from '../history/packedPoints.sql.ts';
import { MINUTE_MS } from '../lib/time.ts';
import { arrayLiteral, type Tx } from '../postgres/sql.ts';
import { insertStatement, rowSlices, type StoredFix } from './points.sql.ts';

/**
 * Stores points that came too late to be evaluated and returns, for each in order, whether it is new. A stored point with
 * the same device and time is kept. The partitions must exist, and the devices be locked. `nowMs` by the clock of this pod.
 */
export async function insertLatePositions(
  tx: Tx,
  fixes: readonly StoredFix[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<boolean[]> {
  if (fixes.length === 0) return [];
  const packed = await findPacked(tx, fixes, nowMs, onDamaged);
  const unpacked = packed.size === 0 ? fixes : fixes.filter((_, n) => !packed.has(n));
  const fresh = new Set<string>();
  for (const slice of rowSlices(unpacked)) {
    const inserted = await tx<{ device_id: number; recorded: number }[]>`
      with stored as (
        ${insertStatement(tx, slice, true)}
        on conflict (device_id, recorded_at) do nothing
        returning device_id, recorded_at
      ), noted as (
        insert into late_point (device_id, recorded_at) select device_id, recorded_at from stored
      )
      select device_id, (extract(epoch from recorded_at) * 1000)::float8 as recorded from stored`;
    for (const row of inserted) fresh.add(`${row.device_id} ${row.recorded}`);
  }
  return fixes.map((fix) => fresh.has(`${fix.deviceId} ${fix.recordedAtMs}`));
}

/**
 * Whether each of these points is stored, as a row or packed, in their order. The devices must be locked. `nowMs` by the
 * clock of this pod.
 */
export async function findStored(
  tx: Tx,
  points: readonly PointKey[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<boolean[]> {
  if (points.length === 0) return [];
  const rows = await tx<{ n: number }[]>`
    select q.n::int - 1 as n
    from unnest(${arrayLiteral(points.map((p) => p.deviceId))}::bigint[], ${arrayLiteral(points.map((p) => p.recordedAtMs))}::float8[])
      with ordinality as q (device_id, recorded, n)
    join position p on p.device_id = q.device_id and p.recorded_at = to_timestamp(q.recorded / 1000)`;
  const stored = await findPacked(tx, points, nowMs, onDamaged);
  for (const { n } of rows) stored.add(n);
  return points.map((_, n) => stored.has(n));
}

/**
 * The stored point just before each of the given (device, time) pairs, in their order; null where there is none. `nowMs`
 * by the clock of this pod.
 */
export async function selectPredecessors(
  tx: Tx,
  points: readonly { deviceId: number; recordedAtMs: number }[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<(TimedPosition | null)[]> {
  if (points.length === 0) return [];
  const rows = await tx<{ recorded_at: Date | null; latitude: number; longitude: number }[]>`
    select p.recorded_at, p.latitude, p.longitude
    from unnest(${arrayLiteral(points.map((p) => p.deviceId))}::bigint[], ${arrayLiteral(points.map((p) => p.recordedAtMs))}::float8[])
      with ordinality as q (device_id, recorded, n)
    left join lateral (
      select recorded_at, latitude, longitude from position
      where device_id = q.device_id and recorded_at < to_timestamp(q.recorded / 1000)
        and recorded_at >= to_timestamp((q.recorded - ${LOOK_BACK_MS}::float8) / 1000)
      order by recorded_at desc limit 1) p on true
    order by q.n`.named('predecessors');
  const windows = points.map(({ deviceId, recordedAtMs: ms }) => ({
    deviceId,
    fromMs: ms - LOOK_BACK_MS,
    toMs: ms - 1,
  }));
  const packed = await newestPacked(tx, windows, nowMs, onDamaged);
  return rows.map((row, n) => {
    const inPacked = packed.get(n) ?? null;
    if (row.recorded_at === null) return inPacked;
    const inRows = { recordedAtMs: row.recorded_at.getTime(), lat: row.latitude, lng: row.longitude };
    return inPacked !== null && inPacked.recordedAtMs >= inRows.recordedAtMs ? inPacked : inRows;
  });
}

/** A point that is older says nothing about the speed. */
const LOOK_BACK_MS = 10 * MINUTE_MS;
