import { CopiedRow } from '../../postgres/copyRows.ts';
import type { Tx } from '../../postgres/sql.ts';
import { instant, integers } from '../../postgres/sqlText.ts';
import { emptyColumns, mergeColumns, type PointColumns, sliceColumns } from '../codec/pointColumns.ts';
import { MOTION, positionColumns } from '../points.sql.ts';

/** Some tens of milliseconds of a connection, and a megabyte. */
const ROWS_AT_A_TIME = 16_384;

/** The points of these devices of a world that are rows, from a time on: device by device, those without rows left out. */
export async function* recentRows(
  sql: Tx,
  worldId: number,
  deviceIds: readonly number[],
  fromMs: number,
): AsyncGenerator<PointColumns, void, undefined> {
  let first = 0;
  let begun = emptyColumns(0);
  while (first < deviceIds.length) {
    const sinceMs = begun.count === 0 ? fromMs : begun.recordedAtMs[begun.count - 1]! + 1;
    const { points, ends } = await selectRows(sql, worldId, deviceIds.slice(first), fromMs, sinceMs);
    let at = 0;
    const isFull = points.count === ROWS_AT_A_TIME;
    const last = isFull ? ends.findLastIndex((end, n) => end > (ends[n - 1] ?? 0)) : ends.length;
    for (let n = 0; n < last; n++) {
      const track = mergeColumns(begun, sliceColumns(points, at, ends[n]!), MOTION);
      begun = emptyColumns(0);
      at = ends[n]!;
      if (track.count > 0) yield track;
    }
    // The last device may have more.
    if (isFull) begun = mergeColumns(begun, sliceColumns(points, at, points.count), MOTION);
    first += last;
  }
}

/** The first rows, and where those of each device end. Those of the first device are from `sinceMs` on. */
async function selectRows(
  sql: Tx,
  worldId: number,
  deviceIds: readonly number[],
  fromMs: number,
  sinceMs: number,
): Promise<{ readonly points: PointColumns; readonly ends: readonly number[] }> {
  const { list, rowsUpTo } = positionColumns(MOTION);
  const rows = rowsUpTo(ROWS_AT_A_TIME);
  const counts = deviceIds.map(() => 0);
  // A subquery with an order is never joined in another way than device by device, so the order of the whole is known.
  const query = sql`
    with asked as materialized (
      select n, a.id from unnest('{${integers(deviceIds)}}'::bigint[]) with ordinality a (id, n)
      join device d on d.id = a.id and d.world_id = ${integers([worldId])} order by n)
    select n, p.* from asked cross join lateral (
      select ${list} from position
      where device_id = asked.id and recorded_at >= ${instant(fromMs)}
        and (n > 1 or recorded_at >= ${instant(sinceMs)})
      order by recorded_at limit ${integers([ROWS_AT_A_TIME])}) p
    limit ${integers([ROWS_AT_A_TIME])}`;
  const row = new CopiedRow();
  await sql.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) {
      const n = row.int8() - 1;
      rows.read(row, row.timestampMs());
      counts[n] = counts[n]! + 1;
    }
  });
  let end = 0;
  return { points: sliceColumns(rows.points, 0, rows.count), ends: counts.map((own) => (end += own)) };
}
