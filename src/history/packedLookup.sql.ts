import { type Damage, DamagedPoints } from '../lib/damagedPoints.ts';
import { DAY_MS } from '../lib/durations.ts';
import { weekStartMs } from '../postgres/partitions.ts';
import type { Query } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';
import type { PackedColumns } from './codec/pointColumns.ts';
import { earliestOf, type PackedWindow } from './packedOf.sql.ts';
import {
  PACKED_LIST,
  type PackedRow,
  packedRowOf,
  type SelectedPacked,
  unpackRow,
} from './packedRows.sql.ts';
import { upTo } from './stretches.sql.ts';

/** Points are rows for twice as long, by the clock of Postgres. The clock of this pod may differ by as much. */
export const NEVER_PACKED_MS = DAY_MS;
/** Rows in memory at a time: a megabyte. */
const ROWS_AT_A_TIME = 16;

/** A device and a time. */
export interface PointKey {
  readonly deviceId: number;
  readonly recordedAtMs: number;
}

/** What cannot be unpacked is passed to this, and counts as not there. */
export type OnDamaged = (damage: Damage) => void;

/** Which of these points are packed already, by their place. The caller has locked the devices. */
export async function findPacked(
  tx: Query,
  points: readonly PointKey[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<Set<number>> {
  const found = new Set<number>();
  const windows = points.map(({ deviceId, recordedAtMs: ms }) => ({ deviceId, fromMs: ms, toMs: ms }));
  await unpackAll(tx, windows, nowMs, onDamaged, (columns, window, n) => {
    const times = columns.column('recordedAtMs');
    if (times[upTo(times, window.toMs) - 1] === window.toMs) found.add(n);
  });
  return found;
}

/** A place at a time. */
export interface Passage {
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
}

/** The newest packed point in each of these windows, by the place of the window. */
export async function newestPacked(
  tx: Query,
  windows: readonly PackedWindow[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<Map<number, Passage>> {
  const newest = new Map<number, Passage>();
  await unpackAll(tx, windows, nowMs, onDamaged, (columns, window, n) => {
    const at = upTo(columns.column('recordedAtMs'), window.toMs) - 1;
    const recordedAtMs = columns.column('recordedAtMs')[at];
    // Packed points come in the order of their times, so a later one is newer.
    if (recordedAtMs === undefined || recordedAtMs < window.fromMs) return;
    newest.set(n, {
      recordedAtMs,
      lat: columns.column('lats')[at] as number,
      lng: columns.column('lngs')[at] as number,
    });
  });
  return newest;
}

/** Gives the packed points that reach into each window to `use`, with the place of the window. Recent ones cost nothing. */
async function unpackAll(
  tx: Query,
  all: readonly PackedWindow[],
  nowMs: number,
  onDamaged: OnDamaged,
  use: (columns: PackedColumns, window: PackedWindow, n: number) => void,
): Promise<void> {
  const windows = [...all.entries()].filter(([, { fromMs }]) => fromMs <= nowMs - NEVER_PACKED_MS);
  const keys = await selectKeys(
    tx,
    windows.map(([, window]) => window),
  );
  const byDevice = Map.groupBy(windows, ([, { deviceId }]) => deviceId);
  for (let at = 0; at < keys.length; at += ROWS_AT_A_TIME) {
    for (const row of await selectRows(tx, keys.slice(at, at + ROWS_AT_A_TIME))) {
      const columns = unpackOrReport(row, onDamaged);
      if (columns === null) continue;
      for (const [n, window] of byDevice.get(row.deviceId) ?? [])
        if (row.firstMs <= window.toMs && row.lastMs >= window.fromMs) use(columns, window, n);
    }
  }
}

function unpackOrReport(row: PackedRow, onDamaged: OnDamaged): PackedColumns | null {
  try {
    return unpackRow(row);
  } catch (error) {
    if (!(error instanceof DamagedPoints)) throw error;
    onDamaged(error.damage);
    return null;
  }
}

interface RowKey {
  readonly device_id: number;
  readonly first_at: Date;
}

/** The rows of packed points that reach into these windows, by device and time. */
async function selectKeys(tx: Query, windows: readonly PackedWindow[]): Promise<readonly RowKey[]> {
  if (windows.length === 0) return [];
  const newestMs = Math.max(...windows.map(({ toMs }) => toMs));
  return tx<RowKey[]>`
    select distinct p.device_id, p.first_at
    from unnest(
      ${arrayLiteral(windows.map((each) => each.deviceId))}::bigint[],
      ${arrayLiteral(windows.map((each) => each.fromMs))}::float8[],
      ${arrayLiteral(windows.map((each) => each.toMs))}::float8[]) d (id, since, until)
    cross join lateral (
      select device_id, first_at from packed_points
      where device_id = d.id and last_at >= to_timestamp(d.since / 1000) and first_at <= to_timestamp(d.until / 1000)
        and first_at between ${new Date(weekStartMs(earliestOf(windows)))} and ${new Date(newestMs)}
      order by first_at desc limit 1) p
    order by p.device_id, p.first_at`;
}

async function selectRows(tx: Query, keys: readonly RowKey[]): Promise<PackedRow[]> {
  const times = keys.map(({ first_at }) => first_at);
  const rows = await tx<(SelectedPacked & { device_id: number })[]>`
    select p.device_id, ${PACKED_LIST}
    from unnest(${arrayLiteral(keys.map((key) => key.device_id))}::bigint[], ${times}::timestamptz[]) k (id, at)
    join packed_points p on p.device_id = k.id and p.first_at = k.at
    order by p.device_id, p.first_at`;
  return rows.map((row) => packedRowOf(row.device_id, row));
}
