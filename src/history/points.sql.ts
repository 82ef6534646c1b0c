import { WEEK_MS, weekStartMs } from '../lib/time.ts';
import { CopiedRow } from '../postgres/copyRows.ts';
import type { Tx } from '../postgres/sql.ts';
import { instant, integers, RawSql } from '../postgres/sqlText.ts';
import type { ColumnName, ColumnRoom, PointColumns } from './codec/pointColumns.ts';
import { emptyColumns, mergeColumns, sliceColumns, upTo } from './codec/pointColumns.ts';
import type { PackedRow, PointRange, TimeWindow } from './packedPoints.sql.ts';
import { copiedPackedRow, PACKED_BYTES, unpackRow, unpackRowIf } from './packedPoints.sql.ts';

// The reader of stored points. Points of the last days are rows of `position`, older ones are packed, and late points to a
// packed day are rows again. So every reader gets both, merged by time.

/** The points of one range, as far as one statement has read them. */
export interface StoredPoints extends TimeWindow {
  /** The number of the range, from 0. */
  readonly n: number;
  readonly rows: PointColumns;
  /** In order. Some of their points may be outside of the time. */
  readonly packed: readonly PackedRow[];
  /** The columns that are filled; the others are empty. */
  readonly columns: readonly ColumnName[];
}

/** What one statement has read of some ranges. */
export interface PointsRead {
  /** For each range that was read, in order. Null: its device is in none of the worlds. */
  readonly found: readonly (StoredPoints | null)[];
  /** The last range that was read, and the time up to which it was read. */
  readonly until: { readonly n: number; readonly ms: number };
}

/** The columns that say where, how fast, whether late, how it came, and all that a device has measured. */
export const PLACE = ['recordedAtMs', 'lats', 'lngs'] as const;
export const MOTION = [...PLACE, 'speedsKmh'] as const;
export const LATENESS = [...PLACE, 'lates'] as const;
export const ARRIVAL = [...LATENESS, 'receivedAtMs'] as const;
export const MEASURED = [...MOTION, 'altitudesM', 'headings', 'satellites', 'odometersKm'] as const;

/** The most that one statement reads: rows, and rows of packed points. */
interface ReadLimits {
  readonly rows: number;
  readonly packed: number;
}
/** A few milliseconds of a connection; packed points of a week, or half a megabyte. */
export const ONE_RANGE: ReadLimits = { rows: 4_096, packed: 8 };
/** Some tens of milliseconds of a connection, or a megabyte or two. */
export const MANY_RANGES: ReadLimits = { rows: 16_384, packed: 32 };

/**
 * Reads the first points of these ranges, in their order, up to the limits. One statement, so a point that is packed at this
 * moment is seen once. The earliest and the latest time say which partitions are read, so a range of one device should be
 * short.
 */
export async function selectPoints(
  sql: Tx,
  worldIds: readonly number[],
  ranges: readonly PointRange[],
  columns: readonly ColumnName[],
  limits: ReadLimits,
): Promise<PointsRead> {
  const { list, nulls, rowsUpTo } = positionColumns(columns);
  const earliestMs = Math.min(...ranges.map(({ fromMs }) => fromMs));
  const latestMs = Math.max(...ranges.map(({ toMs }) => toMs));
  // One range is as long as all together, and the fewer the conditions the shorter the plan takes.
  const isAlone = ranges.length === 1;
  const rowsWithin = new RawSql(isAlone ? '' : 'and recorded_at between since and until');
  const packedWithin = new RawSql(isAlone ? '' : 'and last_at >= since and first_at <= until');
  // A subquery with an order is never joined in another way than range by range, so the order of the whole is known.
  const query = sql`
    with asked as materialized (
      select n, a.id, to_timestamp(a.since / 1000) as since, to_timestamp(a.until / 1000) as until from unnest(
        '{${integers(ranges.map((range) => range.deviceId))}}'::bigint[],
        '{${integers(ranges.map((range) => range.fromMs))}}'::float8[],
        '{${integers(ranges.map((range) => range.toMs))}}'::float8[]) with ordinality a (id, since, until, n)
      join device d on d.id = a.id and d.world_id in (${integers(worldIds)})
      order by n)
    (select n, p.*, null::bytea from asked cross join lateral (
        select ${list} from position
        where device_id = asked.id and recorded_at between ${instant(earliestMs)} and ${instant(latestMs)} ${rowsWithin}
        order by recorded_at limit ${integers([limits.rows])}) p
      limit ${integers([limits.rows])})
    union all
    (select n, ${nulls}, p.* from asked cross join lateral (
        select ${PACKED_BYTES} from packed_points
        where device_id = asked.id and first_at between ${instant(weekStartMs(earliestMs))} and ${instant(latestMs)}
          and last_at >= ${instant(earliestMs)} ${packedWithin}
        order by first_at limit ${integers([limits.packed])}) p
      limit ${integers([limits.packed])})
    union all
    select n, ${nulls}, null from asked`;
  const rows = rowsUpTo(limits.rows);
  let lastRowOf = 0;
  const rowsOf = ranges.map(() => 0);
  const packed: { readonly n: number; readonly row: PackedRow }[] = [];
  const isThere = ranges.map(() => false);
  const row = new CopiedRow();
  await sql.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) {
      const n = row.int8() - 1;
      const recordedAtMs = row.timestampMsOrNull();
      if (recordedAtMs !== null) {
        rows.read(row, recordedAtMs);
        rowsOf[n] = (rowsOf[n] as number) + 1;
        lastRowOf = n;
        continue;
      }
      row.skipNulls(columns.length - 1);
      const bytes = row.bytesOrNull();
      if (bytes === null) isThere[n] = true;
      else packed.push({ n, row: copiedPackedRow((ranges[n] as PointRange).deviceId, bytes) });
    }
  });
  const lastPacked = packed.at(-1);
  const last = ranges.length - 1;
  const until = earliest(
    { n: last, ms: (ranges[last] as PointRange).toMs },
    rows.count === limits.rows ? { n: lastRowOf, ms: rows.lastMs } : null,
    lastPacked !== undefined && packed.length === limits.packed
      ? { n: lastPacked.n, ms: lastPacked.row.lastMs }
      : null,
  );
  const packedBy = Map.groupBy(packed, ({ n }) => n);
  let at = 0;
  const found = ranges.slice(0, until.n + 1).map(({ fromMs, toMs }, n): StoredPoints | null => {
    const start = at;
    at += rowsOf[n] as number;
    if (!isThere[n]) return null;
    return {
      ...{ n, fromMs, columns },
      toMs: n === until.n ? Math.min(toMs, until.ms) : toMs,
      rows: at === start ? NO_ROWS : sliceColumns(rows.points, start, at),
      packed: packedBy.get(n)?.map((each) => each.row) ?? [],
    };
  });
  return { found, until };
}

const NO_ROWS = emptyColumns(0);

type Reached = PointsRead['until'];

function earliest(end: Reached, ...others: readonly (Reached | null)[]): Reached {
  let first = end;
  for (const each of others)
    if (each !== null && (each.n < first.n || (each.n === first.n && each.ms < first.ms))) first = each;
  return first;
}

/** What each column is called in `position`, and how it is read from a copy. A missing value becomes NaN. */
const POSITION: Readonly<Record<ColumnName, readonly [name: string, read: (row: CopiedRow) => number]>> = {
  recordedAtMs: ['recorded_at', (row) => row.timestampMs()],
  lats: ['latitude', (row) => row.float8()],
  lngs: ['longitude', (row) => row.float8()],
  altitudesM: ['altitude_m', (row) => row.float8()],
  speedsKmh: ['speed_kmh', (row) => row.float8()],
  headings: ['heading', (row) => row.float8()],
  satellites: ['satellites', (row) => row.int4()],
  odometersKm: ['odometer_km', (row) => row.float8OrNull() ?? Number.NaN],
  receivedAtMs: ['received_at', (row) => row.timestampMsOrNull() ?? Number.NaN],
  lates: ['late', (row) => Number(row.boolOrNull() ?? Number.NaN)],
};

/** Rows of a copy in columns, which have room for those that have come: most statements find few of what they may. */
class ReadRows {
  readonly #names: readonly ColumnName[];
  readonly #most: number;
  #points: PointColumns;
  #readers: readonly { values: Float64Array; read: (row: CopiedRow) => number }[] = [];
  count = 0;

  constructor(names: readonly ColumnName[], most: number) {
    this.#names = names;
    this.#most = most;
    this.#points = emptyColumns(0);
  }

  /** The first `count` places hold what was read. */
  get points(): PointColumns {
    return this.#points;
  }

  get lastMs(): number {
    return this.#points.recordedAtMs[this.count - 1] as number;
  }

  /** Reads the columns behind `recorded_at`. */
  read(row: CopiedRow, recordedAtMs: number): void {
    const n = this.count++;
    if (n === this.#points.count) this.#grow();
    this.#points.recordedAtMs[n] = recordedAtMs;
    const readers = this.#readers;
    for (let c = 0; c < readers.length; c++) {
      const { values, read } = readers[c]!;
      values[n] = read(row);
    }
  }

  #grow(): void {
    const before = this.#points;
    const places = emptyColumns(
      Math.min(Math.max(FIRST_PLACES, PLACES_GROWTH * before.count), this.#most),
      this.#names,
    );
    for (const name of this.#names) places[name].set(before[name]);
    this.#points = places;
    this.#readers = this.#names.slice(1).map((name) => ({ values: places[name], read: POSITION[name][1] }));
  }
}

const FIRST_PLACES = 64;
const PLACES_GROWTH = 4;

/**
 * Columns of rows, of which `recorded_at` is the first. `list`: as a statement names them. `nulls`: as many nulls.
 * `rowsUpTo(most)`: a new reader of copied rows, at most `most` of them.
 */
export function positionColumns(columns: readonly ColumnName[]): {
  readonly list: RawSql;
  readonly nulls: RawSql;
  readonly rowsUpTo: (most: number) => ReadRows;
} {
  const names = columns.map((name) => POSITION[name][0]);
  return {
    list: new RawSql(names.join(', ')),
    nulls: new RawSql(names.map(() => 'null').join()),
    rowsUpTo: (most) => new ReadRows(columns, most),
  };
}

/** After weeks without a point the next statement covers this many times as many weeks. */
const EMPTY_GROWTH = 8;
/** Ranges of one statement. */
const RANGES_AT_A_TIME = 128;
/** Where a statement has come to the end of its ranges, the next one has this many times as many. */
const WIDENING = 4;

/**
 * Reads ranges to their ends, one statement after the other: many ranges together, and a single or the last one week by week.
 * A statement that is full after a few ranges still looks for the rows of all others, so the next one has not many more.
 * While the caller works with the result of one statement, the next is under way. `read` calls `selectPoints`.
 */
export async function* readInOrder<Range extends PointRange, Read extends PointsRead>(
  ranges: readonly Range[],
  read: (ranges: readonly Range[]) => Promise<Read>,
): AsyncGenerator<Read, void, undefined> {
  let first = 0;
  let fromMs = ranges[0]?.fromMs ?? 0;
  let weeks = 1;
  let width = RANGES_AT_A_TIME;
  const readNext = (): Promise<Read> | null => {
    const [range, ...others] = ranges.slice(first, first + width);
    if (range === undefined) return null;
    const weekEndMs = weekStartMs(fromMs) + weeks * WEEK_MS - 1;
    const toMs = others.length === 0 ? Math.min(range.toMs, weekEndMs) : range.toMs;
    const reading = read([{ ...range, fromMs, toMs }, ...others]);
    // The caller may have left when it fails. If it still waits, it gets the error.
    reading.catch(() => undefined);
    return reading;
  };
  let reading = readNext();
  try {
    while (reading !== null) {
      const result: Read = await reading;
      const { found, until } = result;
      const before = first;
      const isFull = until.n + 1 < Math.min(width, ranges.length - first);
      width = Math.min(isFull ? until.n + 2 : WIDENING * width, RANGES_AT_A_TIME);
      first += until.n;
      const isDone = until.ms >= (ranges[first] as PointRange).toMs;
      if (isDone) first++;
      fromMs = isDone ? (ranges[first]?.fromMs ?? 0) : until.ms + 1;
      weeks = found.every((points) => points === null || isEmpty(points)) ? weeks * EMPTY_GROWTH : 1;
      reading = readNext();
      yield { ...result, found: found.map((points) => points && { ...points, n: before + points.n }) };
    }
  } finally {
    // The next reader of the account finds the connection free.
    await reading?.catch(() => undefined);
  }
}

function isEmpty({ rows, packed }: StoredPoints): boolean {
  return rows.count === 0 && packed.length === 0;
}

/** The most points of a page: a third of a megabyte. */
export const PAGE_POINTS = 4_096;

/** The device was deleted, or left the worlds of the reader. */
export class DeviceGone extends Error {
  override name = 'DeviceGone';
}

/**
 * The points of a device between two instants, oldest first, page by page. No connection is held between two statements.
 * Points that are stored while it reads may be there or not. Throws DeviceGone and DamagedPoints.
 */
export async function* pointPages(
  sql: Tx,
  worldIds: readonly number[],
  deviceId: number,
  { fromMs, toMs }: TimeWindow,
  columns: readonly ColumnName[] = MEASURED,
): AsyncGenerator<PointColumns, void, undefined> {
  if (fromMs > toMs) return;
  const read = (ranges: readonly PointRange[]) => selectPoints(sql, worldIds, ranges, columns, ONE_RANGE);
  for await (const { found } of readInOrder([{ deviceId, fromMs, toMs }], read)) {
    for (const points of found) yield* pagesOf(points);
  }
}

/** The points of one device in pages. Throws DeviceGone and DamagedPoints. */
export function* pagesOf(stored: StoredPoints | null): Generator<PointColumns, void, undefined> {
  if (stored === null) throw new DeviceGone('the device is not there any more');
  for (const points of mergedPoints(stored)) {
    for (let at = 0; at < points.count; at += PAGE_POINTS)
      yield sliceColumns(points, at, Math.min(at + PAGE_POINTS, points.count));
  }
}

/**
 * The points of one range, oldest first, in pieces of any length. Packed points are unpacked when their piece is asked for. A
 * piece without a wanted position is empty. With a room, a piece is good until the next one is asked for. Throws DamagedPoints.
 */
export function* mergedPoints(
  { fromMs, toMs, rows, packed, columns }: StoredPoints,
  isWanted?: ((lats: Float64Array, lngs: Float64Array) => boolean) | null,
  room: ColumnRoom | null = null,
): Generator<PointColumns, void, undefined> {
  const end = upTo(rows.recordedAtMs, toMs);
  let at = upTo(rows.recordedAtMs, fromMs - 1);
  for (const row of packed) {
    if (row.firstMs > toMs) break;
    const before = upTo(rows.recordedAtMs, row.firstMs - 1);
    if (before > at) yield sliceColumns(rows, at, before);
    const inside = Math.min(end, upTo(rows.recordedAtMs, row.lastMs));
    at = inside;
    const unpacked = isWanted && before === inside ? unpackRowIf(row, isWanted) : unpackRow(row, room);
    if (unpacked === null) {
      yield NO_ROWS;
      continue;
    }
    const points = unpacked.within({ fromMs, toMs }, columns);
    yield mergeColumns(points, sliceColumns(rows, before, inside), columns);
  }
  if (end > at) yield sliceColumns(rows, at, end);
}
