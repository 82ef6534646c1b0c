import { zstdCompressSync } from 'node:zlib';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { invariant } from '../lib/errors.ts';
import type { Steps } from '../lib/workTurns.ts';
import { emptyColumns, type PointColumns, sliceColumns } from './codec/pointColumns.ts';
import type { HistoryEncoder, Take } from './exportFile.ts';
import { MEASURED, PAGE_POINTS } from './points.sql.ts';

/** Points that are compressed together: a page of each column. */
const PART_POINTS = 4 * PAGE_POINTS;
/**
 * The first 64 row groups have one part each, the next 64 have two, and so on up to the most. More groups take more memory,
 * since the footer has two kilobytes about each; longer groups do too, since their parts are kept until they are written.
 */
const GROUPS_OF_A_SIZE = 64;
const GROUP_PARTS_MAX = 8;

const DOUBLES = [
  ['latitude', 'lats'],
  ['longitude', 'lngs'],
  ['altitude_m', 'altitudesM'],
  ['speed_kmh', 'speedsKmh'],
  ['heading', 'headings'],
] as const;
const required = { repetition_type: 'REQUIRED' } as const;
const COLUMNS = [
  { name: 'imei', type: 'BYTE_ARRAY', converted_type: 'UTF8', ...required },
  {
    name: 'recorded_at',
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
    ...required,
  },
  ...DOUBLES.map(([name]) => ({ name, type: 'DOUBLE' as const, ...required })),
  { name: 'satellites', type: 'INT32', ...required },
  { name: 'odometer_km', type: 'DOUBLE', repetition_type: 'OPTIONAL' },
] as const;

/** The columns of a part: their bytes in the file, and their entries for its footer. */
interface WrittenPart {
  readonly columns: readonly { readonly bytes: Buffer; readonly chunk: Chunk }[];
  readonly points: number;
}
type Chunk = ParquetWriter['row_groups'][number]['columns'][number];

/** Apache Parquet, compressed with Zstandard: columns as in the CSV, times as timestamps in UTC. */
export function parquetEncoder(): HistoryEncoder {
  const bytes = new ByteWriter();
  const writer = new ParquetWriter({
    writer: bytes,
    schema: [{ name: 'root', num_children: COLUMNS.length }, ...COLUMNS],
    codec: 'ZSTD',
    compressors: { ZSTD: (input) => zstdCompressSync(input) },
    // Each would be computed in a slow loop, for columns of which few are ordered.
    statistics: false,
    createdBy: 'Fleet Tracking Service',
  });
  // A copy: a page may keep much more memory alive than its points take.
  const part = emptyColumns(PART_POINTS, MEASURED);
  const imeis: string[] = [];
  let written: WrittenPart[] = [];
  const groups: ParquetWriter['row_groups'] = [];

  /** What was written since the last call. */
  const taken = (): Buffer => {
    const copy = Buffer.from(bytes.getBytes());
    bytes.index = 0; // the offset goes on
    return copy;
  };
  let begin: Buffer | null = taken();
  /** Where the next group begins. */
  let offset = begin.length;

  /** The library writes all columns at once, which takes too long. So each is written as a row group. */
  function* writePart(): Steps<void> {
    const points = imeis.length;
    const columns: WrittenPart['columns'][number][] = [];
    for (const column of columnsOf(imeis, sliceColumns(part, 0, points))) {
      writer.write({ columnData: [column], rowGroupSize: points });
      const [chunk] = writer.row_groups.pop()?.columns ?? [];
      invariant(chunk, 'a column was written');
      columns.push({ bytes: taken(), chunk });
      yield;
    }
    // They would say where the pages of a column are, of which a part has one.
    writer.pendingIndexes.length = 0;
    imeis.length = 0;
    written.push({ columns, points });
  }

  /** A column of a group has the pages of its parts, one behind the other. */
  function* writeGroup(take: Take): Steps<void> {
    if (begin !== null) take(begin);
    begin = null;
    const columns: Chunk[] = [];
    for (let n = 0; n < COLUMNS.length; n++) {
      const pages = written.map((each) => each.columns[n] as WrittenPart['columns'][number]);
      const [first] = pages;
      invariant(first?.chunk.meta_data, 'a group has a part');
      const sum = (of: (meta: NonNullable<Chunk['meta_data']>) => bigint): bigint =>
        pages.reduce(
          (total, { chunk }) => total + (chunk.meta_data === undefined ? 0n : of(chunk.meta_data)),
          0n,
        );
      columns.push({
        file_offset: BigInt(offset),
        meta_data: {
          ...first.chunk.meta_data,
          num_values: sum((meta) => meta.num_values),
          total_compressed_size: sum((meta) => meta.total_compressed_size),
          total_uncompressed_size: sum((meta) => meta.total_uncompressed_size),
          data_page_offset: BigInt(offset),
        },
      });
      const all = pages.length === 1 ? first.bytes : Buffer.concat(pages.map((page) => page.bytes));
      offset += all.length;
      take(all);
      yield;
    }
    const total = (of: (meta: NonNullable<Chunk['meta_data']>) => bigint): bigint =>
      columns.reduce((sum, { meta_data }) => sum + (meta_data === undefined ? 0n : of(meta_data)), 0n);
    groups.push({
      columns,
      total_byte_size: total((meta) => meta.total_uncompressed_size),
      total_compressed_size: total((meta) => meta.total_compressed_size),
      num_rows: BigInt(written.reduce((sum, { points }) => sum + points, 0)),
    });
    written = [];
  }

  return {
    *encode(imei, page, take) {
      // Groups are of one size however the pages come, so the same points make the same file.
      for (let at = 0; at < page.count; ) {
        const end = Math.min(page.count, at + PART_POINTS - imeis.length);
        for (const name of MEASURED) part[name].set(page[name].subarray(at, end), imeis.length);
        for (; at < end; at++) imeis.push(imei);
        if (imeis.length < PART_POINTS) break;
        yield* writePart();
        if (written.length === partsOf(groups.length)) yield* writeGroup(take);
      }
    },
    *finish(take) {
      if (imeis.length > 0) yield* writePart();
      if (written.length > 0) yield* writeGroup(take);
      writer.row_groups = groups;
      writer.num_rows = groups.reduce((sum, { num_rows }) => sum + num_rows, 0n);
      writer.finish();
      if (begin !== null) take(begin);
      take(taken());
    },
  };
}

/** The parts of a group; `before`: how many groups come before it. */
function partsOf(before: number): number {
  return Math.min(GROUP_PARTS_MAX, 2 ** Math.floor(before / GROUPS_OF_A_SIZE));
}

/** No column has a dictionary: each part would have its own, and a column of a group has one at most. */
function* columnsOf(imeis: string[], points: PointColumns) {
  const plain = { encoding: 'PLAIN' } as const;
  yield { name: 'imei', data: imeis, ...plain };
  const times = BigInt64Array.from(points.recordedAtMs, BigInt);
  yield { name: 'recorded_at', data: times, encoding: 'DELTA_BINARY_PACKED' as const };
  for (const [name, of] of DOUBLES) yield { name, data: points[of], ...plain };
  yield { name: 'satellites', data: Int32Array.from(points.satellites), ...plain };
  const odometers = Array.from(points.odometersKm, (km) => (Number.isNaN(km) ? null : km));
  yield { name: 'odometer_km', data: odometers, ...plain };
}
