import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PackedColumns } from '../history/codec/pointColumns.ts';
import {
  countPackedOf,
  earliestOf,
  newestPackedOf,
  type PackedOf,
  type PackedWindow,
} from '../history/packedOf.sql.ts';
import { unpackRow } from '../history/packedRows.sql.ts';
import { upTo } from '../history/stretches.sql.ts';
import type { Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';
import type { DevicePart } from './replayPages.sql.ts';

/** Where a device was last before a time. */
export interface LastPoint {
  readonly deviceId: number;
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
}

/** How many packed days that have only late points are looked behind. */
const LOOKS_BACK = 8;

/**
 * The newest evaluated point of each device before a time and not before another one; devices without such a point are
 * left out.
 */
export async function selectLastPoints(
  sql: Tx,
  deviceIds: readonly number[],
  beforeMs: number,
  oldestMs: number,
): Promise<LastPoint[]> {
  if (deviceIds.length === 0 || oldestMs >= beforeMs) return [];
  const rows = await sql<{ id: number; recorded_at: Date; latitude: number; longitude: number }[]>`
    select d.id, p.recorded_at, p.latitude, p.longitude
    from unnest(${arrayLiteral(deviceIds)}::bigint[]) d (id)
    cross join lateral (
      select recorded_at, latitude, longitude from position
      where device_id = d.id and recorded_at < ${new Date(beforeMs)} and recorded_at >= ${new Date(oldestMs)}
        and late is not true
      order by recorded_at desc limit 1) p`;
  const last = new Map(
    rows.map((row): [number, LastPoint] => [
      row.id,
      { deviceId: row.id, recordedAtMs: row.recorded_at.getTime(), lat: row.latitude, lng: row.longitude },
    ]),
  );
  let windows = windowsOf(
    deviceIds,
    (id) => last.get(id)?.recordedAtMs ?? oldestMs - 1,
    () => beforeMs - 1,
  );
  for (let look = 0; look < LOOKS_BACK && windows.length > 0; look++) {
    const further: PackedWindow[] = [];
    await unpackEach(
      await newestPackedOf(sql, windows),
      (window, columns) => {
        const { deviceId, fromMs, toMs } = window;
        const n = newestIn(columns, fromMs, toMs);
        const at = (name: 'recordedAtMs' | 'lats' | 'lngs') => columns.column(name)[n ?? 0] as number;
        if (n === null) further.push({ deviceId, fromMs, toMs: at('recordedAtMs') - 1 });
        else
          last.set(deviceId, {
            deviceId,
            recordedAtMs: at('recordedAtMs'),
            lat: at('lats'),
            lng: at('lngs'),
          });
      },
      windows,
    );
    windows = further.filter(({ fromMs, toMs }) => fromMs <= toMs);
  }
  return [...last.values()];
}

/** What is after a time and not after another one, for each device that has such a time. */
function windowsOf(
  deviceIds: readonly number[],
  afterMs: (deviceId: number) => number,
  toMs: (deviceId: number) => number,
): PackedWindow[] {
  return deviceIds
    .map((deviceId) => ({ deviceId, fromMs: afterMs(deviceId) + 1, toMs: toMs(deviceId) }))
    .filter((window) => window.fromMs <= window.toMs);
}

/** The place of the newest point in a time that was evaluated; null: there is none. */
function newestIn(columns: PackedColumns, fromMs: number, toMs: number): number | null {
  const times = columns.column('recordedAtMs');
  const lates = columns.column('lates');
  let n = upTo(times, toMs) - 1;
  while (n >= 0 && lates[n] === 1) n--;
  return n >= 0 && (times[n] as number) >= fromMs ? n : null;
}

/** Unpacks these points, one after the other, with looks at the sockets in between. Throws DamagedPoints. */
async function unpackEach<Part>(
  packed: readonly PackedOf[],
  use: (part: Part, columns: PackedColumns) => void,
  parts: readonly Part[],
): Promise<void> {
  for (const { part, row } of packed) {
    use(parts[part] as Part, unpackRow(row));
    await nextTurn();
  }
}

/**
 * For each of these points the time of the newest evaluated one of its device that is at least `lookBackMs` older; where
 * there is none, the time so far back. No point before `oldestMs` is looked at.
 */
export async function selectStarts(
  sql: Tx,
  points: readonly LastPoint[],
  lookBackMs: number,
  oldestMs: number,
): Promise<Map<number, number>> {
  const starts = new Map(points.map(({ deviceId, recordedAtMs }) => [deviceId, recordedAtMs - lookBackMs]));
  if (points.length === 0 || lookBackMs === 0) return starts;
  const newestMs = Math.max(...starts.values());
  const rows = await sql<{ id: number; recorded_at: Date }[]>`
    select d.id, p.recorded_at
    from unnest(${arrayLiteral([...starts.keys()])}::bigint[], ${arrayLiteral([...starts.values()])}::float8[]) d (id, until)
    cross join lateral (
      select recorded_at from position
      where device_id = d.id and recorded_at <= to_timestamp(d.until / 1000)
        and recorded_at between ${new Date(oldestMs)} and ${new Date(newestMs)} and late is not true
      order by recorded_at desc limit 1) p`;
  const found = new Map(rows.map((row) => [row.id, row.recorded_at.getTime()]));
  const windows = windowsOf(
    [...starts.keys()],
    (id) => found.get(id) ?? oldestMs - 1,
    (id) => starts.get(id) as number,
  );
  await unpackEach(
    await newestPackedOf(sql, windows),
    ({ deviceId, fromMs, toMs }, columns) => {
      const n = newestIn(columns, fromMs, toMs);
      if (n !== null) found.set(deviceId, columns.column('recordedAtMs')[n] as number);
    },
    windows,
  );
  for (const [deviceId, startMs] of found) starts.set(deviceId, startMs);
  for (const [deviceId, startMs] of starts) starts.set(deviceId, Math.max(startMs, oldestMs));
  return starts;
}

/** How many rows a part has, as far as they were counted. */
export interface CountedRows {
  /** The number of the part, from 0. */
  readonly part: number;
  readonly count: number;
  readonly lastMs: number;
}

/** Counts the rows of these parts up to `toMs`, in their order, until there are `max`. Parts without points are left out. */
export async function countRows(
  sql: Tx,
  parts: readonly DevicePart[],
  toMs: number,
  max: number,
): Promise<CountedRows[]> {
  if (parts.length === 0) return [];
  const rows = await sql<{ n: number; count: number; last: Date }[]>`
    select n, count(*) as count, max(recorded_at) as last from (
      select d.n, p.recorded_at
      from unnest(
        ${arrayLiteral(parts.map((part) => part.deviceId))}::bigint[],
        ${arrayLiteral(parts.map((part) => part.fromMs))}::float8[]) with ordinality d (id, since, n)
      cross join lateral (
        select recorded_at from position
        where device_id = d.id and recorded_at >= to_timestamp(d.since / 1000)
          and recorded_at between ${new Date(earliestOf(parts))} and ${new Date(toMs)}
        order by recorded_at) p
      limit ${max}) c
    group by n order by n`;
  return rows.map(({ n, count, last }) => ({ part: n - 1, count, lastMs: last.getTime() }));
}

/** How many packed points each of these parts has up to `toMs`. Throws DamagedPoints. */
export async function countPacked(sql: Tx, parts: readonly DevicePart[], toMs: number): Promise<number[]> {
  const { counts, edges } = await countPackedOf(sql, parts, toMs);
  const all = parts.map((_, part) => counts.get(part) ?? 0);
  await unpackEach(
    edges,
    ({ fromMs, part }, columns) => {
      const times = columns.column('recordedAtMs');
      all[part] = (all[part] as number) + upTo(times, toMs) - upTo(times, fromMs - 1);
    },
    parts.map(({ fromMs }, part) => ({ fromMs, part })),
  );
  return all;
}
