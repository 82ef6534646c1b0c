import { COLUMN_NAMES, emptyColumns, type PointColumns, sliceColumns } from './codec/pointColumns.ts';

/** Points of both, by time. Of two with the same time the one of `packed` stays: it was stored first. */
export function mergeColumns(packed: PointColumns, rows: PointColumns): PointColumns {
  if (rows.count === 0) return packed;
  if (packed.count === 0) return rows;
  const merged = emptyColumns(packed.count + rows.count);
  const times = packed.recordedAtMs;
  const rowTimes = rows.recordedAtMs;
  let count = 0;
  for (let p = 0, r = 0; p < packed.count || r < rows.count; count++) {
    const time = p < packed.count ? (times[p] as number) : Number.POSITIVE_INFINITY;
    const rowTime = r < rows.count ? (rowTimes[r] as number) : Number.POSITIVE_INFINITY;
    const isPacked = time <= rowTime;
    const source = isPacked ? packed : rows;
    const at = isPacked ? p++ : r++;
    for (const name of COLUMN_NAMES) merged[name][count] = source[name][at] as number;
    if (time === rowTime) r++;
  }
  return sliceColumns(merged, 0, count);
}
