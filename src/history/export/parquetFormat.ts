import { zstdCompressSync } from 'node:zlib';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { Steps } from '../../lib/workTurns.ts';
import { PAGE_POINTS, type PointPage, slicePage } from '../pointPages.sql.ts';
import type { ExportedDevice, HistoryEncoder } from './historyEncoder.ts';
import { odometerOf } from './textFormats.ts';

type Take = (piece: Buffer) => void;

/** Rows of a row group. Of each, the end of the file has two kilobytes, so groups are some pages long. */
const GROUP_POINTS = 4 * PAGE_POINTS;

const required = (name: string, type: 'DOUBLE' | 'INT32') =>
  ({ name, type, repetition_type: 'REQUIRED' }) as const;
const DOUBLES = ['latitude', 'longitude', 'altitude_m', 'speed_kmh', 'heading'] as const;
const COLUMNS = [
  { name: 'imei', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
  {
    name: 'recorded_at',
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
    repetition_type: 'REQUIRED',
  },
  ...DOUBLES.map((name) => required(name, 'DOUBLE')),
  required('satellites', 'INT32'),
  { name: 'odometer_km', type: 'DOUBLE', repetition_type: 'OPTIONAL' },
] as const;

/** Apache Parquet, compressed with Zstandard: columns as in the CSV, times as timestamps in UTC. */
export function parquetEncoder({ imei }: ExportedDevice): HistoryEncoder {
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
  let pages: PointPage[] = [];
  let points = 0;

  const flush = (take: Take): void => {
    if (bytes.index === 0) return;
    take(Buffer.from(bytes.getBytes()));
    bytes.index = 0; // the offset goes on
  };

  /** The library writes a row group at once, which takes too long. So each column is written as a group, and joined. */
  function* writeGroup(take: Take): Steps<void> {
    const before = writer.row_groups.length;
    for (const column of columnsOf(imei, pages, points)) {
      writer.write({ columnData: [column], rowGroupSize: points });
      flush(take);
      yield;
    }
    const parts = writer.row_groups.splice(before);
    const rows = BigInt(points);
    const sum = (of: (part: (typeof parts)[number]) => bigint | undefined): bigint =>
      parts.reduce((total, part) => total + (of(part) ?? 0n), 0n);
    writer.row_groups.push({
      columns: parts.flatMap(({ columns }) => columns),
      total_byte_size: sum((part) => part.total_byte_size),
      total_compressed_size: sum((part) => part.total_compressed_size),
      num_rows: rows,
    });
    writer.num_rows -= rows * BigInt(COLUMNS.length - 1);
    pages = [];
    points = 0;
  }

  return {
    *encode(page, take) {
      // Groups are of one size however the pages come, so the same points make the same file.
      for (let at = 0; at < page.count; ) {
        const part = slicePage(page, at, Math.min(page.count, at + GROUP_POINTS - points));
        pages.push(part);
        points += part.count;
        at += part.count;
        if (points === GROUP_POINTS) yield* writeGroup(take);
      }
    },
    *finish(take) {
      if (points > 0) yield* writeGroup(take);
      writer.finish();
      flush(take);
    },
  };
}

function* columnsOf(imei: string, pages: readonly PointPage[], points: number) {
  const doubles = (of: (page: PointPage) => Float64Array): Float64Array => {
    const joined = new Float64Array(points);
    copyTo(joined, pages, of);
    return joined;
  };
  const satellites = new Int32Array(points);
  copyTo(satellites, pages, (page) => page.satellites);
  yield { name: 'imei', data: new Array<string>(points).fill(imei) };
  const times = BigInt64Array.from(
    doubles((page) => page.recordedAtMs),
    BigInt,
  );
  yield { name: 'recorded_at', data: times, encoding: 'DELTA_BINARY_PACKED' as const };
  const plain = { encoding: 'PLAIN' } as const;
  yield { name: 'latitude', data: doubles((page) => page.lats), ...plain };
  yield { name: 'longitude', data: doubles((page) => page.lngs), ...plain };
  yield { name: 'altitude_m', data: doubles((page) => page.altitudesM), ...plain };
  yield { name: 'speed_kmh', data: doubles((page) => page.speedsKmh), ...plain };
  yield { name: 'heading', data: doubles((page) => page.headings), ...plain };
  yield { name: 'satellites', data: satellites, ...plain };
  const odometers = pages.flatMap((page) =>
    Array.from({ length: page.count }, (_, n) => odometerOf(page, n)),
  );
  yield { name: 'odometer_km', data: odometers, ...plain };
}

function copyTo<Column extends Float64Array | Int32Array>(
  joined: Column,
  pages: readonly PointPage[],
  of: (page: PointPage) => Column,
): void {
  let at = 0;
  for (const page of pages) {
    joined.set(of(page).subarray(0, page.count), at);
    at += page.count;
  }
}
