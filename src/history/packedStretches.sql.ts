import { CopiedRow } from '../postgres/copiedRow.ts';
import { weekStartMs } from '../postgres/partitions.ts';
import type { Tx } from '../postgres/sql.ts';
import { instant, integers } from '../postgres/sqlText.ts';
import { emptyColumns } from './codec/pointColumns.ts';
import { earliestOf, latestOf, type PackedWindow } from './packedOf.sql.ts';
import { copiedPackedRow, PACKED_LIST, type PackedRow } from './packedRows.sql.ts';
import type { Stretch } from './stretches.sql.ts';

/** Rows of packed points of one statement: a megabyte or two. */
export const PACKED_ROWS_AT_A_TIME = 32;
const NO_ROWS = emptyColumns(0);

/**
 * The points of many short windows, when all of them are packed: times and places. Null where some are rows, which
 * are to be read window by window. What has left the worlds of the reader has none. One statement, so a point that is
 * packed at this moment is seen once. Windows of a device do not overlap.
 */
export async function selectPackedStretches(
  sql: Tx,
  worldIds: readonly number[],
  windows: readonly PackedWindow[],
): Promise<(Stretch | null)[]> {
  if (windows.length === 0) return [];
  const packed = windows.map((): PackedRow[] => []);
  const isMixed = windows.map(() => false);
  const row = new CopiedRow();
  const [earliestMs, latestMs] = [earliestOf(windows), latestOf(windows)];
  const query = sql`
    select w.n, p.* from unnest(
      '{${integers(windows.map((each) => each.deviceId))}}'::bigint[],
      '{${integers(windows.map((each) => each.fromMs))}}'::float8[],
      '{${integers(windows.map((each) => each.toMs))}}'::float8[]) with ordinality w (id, since, until, n)
    join device d on d.id = w.id and d.world_id in (${integers(worldIds)})
    cross join lateral (
      (select ${PACKED_LIST} from packed_points
        where device_id = w.id and last_at >= to_timestamp(w.since / 1000) and first_at <= to_timestamp(w.until / 1000)
          and first_at between ${instant(weekStartMs(earliestMs))} and ${instant(latestMs)}
        order by first_at)
      union all
      (select null, null, null, null, null, null from position
        where device_id = w.id and recorded_at >= to_timestamp(w.since / 1000)
          and recorded_at <= to_timestamp(w.until / 1000)
          and recorded_at between ${instant(earliestMs)} and ${instant(latestMs)}
        limit 1)) p`;
  await sql.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) {
      const n = row.int8() - 1;
      const firstMs = row.timestampMsOrNull();
      if (firstMs === null) isMixed[n] = true;
      else packed[n]?.push(copiedPackedRow(row, (windows[n] as PackedWindow).deviceId, firstMs));
    }
  });
  return windows.map(({ fromMs, toMs }, n) => {
    const rows = (packed[n] as PackedRow[]).sort((a, b) => a.firstMs - b.firstMs);
    const isEmpty = rows.length === 0;
    return isMixed[n] ? null : { fromMs, toMs, rows: NO_ROWS, packed: rows, isEmpty, wanted: 'place' };
  });
}
