import { CopiedRow } from '../postgres/copiedRow.ts';
import { weekStartMs } from '../postgres/partitions.ts';
import type { Query, Tx } from '../postgres/sql.ts';
import { arrayLiteral, instant, integers } from '../postgres/sqlText.ts';
import {
  copiedPackedRow,
  PACKED_LIST,
  type PackedRow,
  packedRowOf,
  type SelectedPacked,
} from './packedRows.sql.ts';

/** A device and the time from which its points are read. */
export interface PackedPart {
  readonly deviceId: number;
  readonly fromMs: number;
}

/** Packed points, and which of the parts asked for they belong to, from 0. */
export interface PackedOf {
  readonly part: number;
  readonly row: PackedRow;
}

export function earliestOf(parts: readonly { readonly fromMs: number }[]): number {
  return parts.reduce((earliestMs, { fromMs }) => Math.min(earliestMs, fromMs), Number.MAX_SAFE_INTEGER);
}

export function latestOf(windows: readonly { readonly toMs: number }[]): number {
  return windows.reduce((latestMs, { toMs }) => Math.max(latestMs, toMs), Number.MIN_SAFE_INTEGER);
}

/** The packed points of these parts up to `toMs`, in order, until there are `maxPoints`. */
export async function packedOf(
  tx: Tx,
  parts: readonly PackedPart[],
  toMs: number,
  maxPoints: number,
): Promise<PackedOf[]> {
  if (parts.length === 0) return [];
  const found: PackedOf[] = [];
  const row = new CopiedRow();
  const query = tx`
    select n, first_at, last_at, count, codec, checksum, points from (
      select d.n, p.*, sum(count) over (order by n, first_at rows between unbounded preceding and 1 preceding) as before
      from unnest(
        '{${integers(parts.map((part) => part.deviceId))}}'::bigint[],
        '{${integers(parts.map((part) => part.fromMs))}}'::float8[]) with ordinality d (id, since, n)
      cross join lateral (
        select ${PACKED_LIST} from packed_points
        where device_id = d.id and last_at >= to_timestamp(d.since / 1000)
          and first_at between ${instant(weekStartMs(earliestOf(parts)))} and ${instant(toMs)}) p
      ) q
    where coalesce(before, 0) < ${integers([maxPoints])} order by n, first_at`;
  await tx.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) {
      const part = row.int8() - 1;
      const { deviceId } = parts[part] as PackedPart;
      found.push({ part, row: copiedPackedRow(row, deviceId, row.timestampMs()) });
    }
  });
  return found;
}

/** A device and a time, both ends included. */
export interface PackedWindow extends PackedPart {
  readonly toMs: number;
}

/** The newest packed points of each of these windows that reach into it, if there are any. */
export async function newestPackedOf(sql: Query, windows: readonly PackedWindow[]): Promise<PackedOf[]> {
  if (windows.length === 0) return [];
  const newestMs = Math.max(...windows.map(({ toMs }) => toMs));
  const rows = await sql<(SelectedPacked & { n: number })[]>`
    select d.n, p.* from ${unnested(sql, windows)}
    cross join lateral (
      select ${PACKED_LIST} from packed_points
      where device_id = d.id and last_at >= to_timestamp(d.since / 1000) and first_at <= to_timestamp(d.until / 1000)
        and first_at between ${new Date(weekStartMs(earliestOf(windows)))} and ${new Date(newestMs)}
      order by first_at desc limit 1) p`;
  return rows.map((row) => {
    const part = row.n - 1;
    return { part, row: packedRowOf((windows[part] as PackedWindow).deviceId, row) };
  });
}

const unnested = (sql: Query, windows: readonly PackedWindow[]) => sql`
  unnest(
    ${arrayLiteral(windows.map((each) => each.deviceId))}::bigint[],
    ${arrayLiteral(windows.map((each) => each.fromMs))}::float8[],
    ${arrayLiteral(windows.map((each) => each.toMs))}::float8[]) with ordinality d (id, since, until, n)`;

/** How many packed points each part has up to `toMs`, without those that are partly outside: these are in `edges`. */
export async function countPackedOf(
  sql: Query,
  parts: readonly PackedPart[],
  toMs: number,
): Promise<{ counts: Map<number, number>; edges: PackedOf[] }> {
  const counts = new Map<number, number>();
  if (parts.length === 0) return { counts, edges: [] };
  const windows = parts.map((part) => ({ ...part, toMs }));
  const rows = await sql<(SelectedPacked & { n: number; inside: number | null })[]>`
    with p as materialized (
      select d.n, p.*, p.first_at >= to_timestamp(d.since / 1000) and p.last_at <= to_timestamp(d.until / 1000) as is_inside
      from ${unnested(sql, windows)}
      cross join lateral (
        select ${PACKED_LIST} from packed_points
        where device_id = d.id and last_at >= to_timestamp(d.since / 1000)
          and first_at between ${new Date(weekStartMs(earliestOf(parts)))} and ${new Date(toMs)}) p)
    select n, sum(count)::float8 as inside, null::timestamptz as first_at, null::timestamptz as last_at,
      null::integer as count, null::integer as codec, null::integer as checksum, null::bytea as points
    from p where is_inside group by n
    union all
    select n, null, first_at, last_at, count, codec, checksum, points from p where not is_inside`;
  const edges: PackedOf[] = [];
  for (const row of rows) {
    const part = row.n - 1;
    if (row.inside !== null) counts.set(part, row.inside);
    else edges.push({ part, row: packedRowOf((parts[part] as PackedPart).deviceId, row) });
  }
  return { counts, edges };
}
