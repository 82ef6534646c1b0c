import { zstdCompressSync } from 'node:zlib';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { formatIso } from '../lib/time.ts';
import type { Steps } from '../lib/workTurns.ts';
import { type ColumnName, type PointColumns, sliceColumns } from './codec/pointColumns.ts';
import { PAGE_POINTS } from './points.sql.ts';
import { GAP_MS } from './summary/motionWalk.ts';

export const EXPORT_FORMATS = ['ndjson', 'csv', 'gpx', 'geojson', 'parquet'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** The media type without its parameters. */
export const EXPORT_TYPES: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
  gpx: 'application/gpx+xml',
  geojson: 'application/geo+json',
  parquet: 'application/vnd.apache.parquet',
};

/** Whose points are written. */
interface ExportedDevice {
  readonly imei: string;
  readonly name: string | null;
}

type Take = (piece: Buffer) => void;

/** Writes points as a file, page by page. Keeps no more than a page or a few of them. */
export interface HistoryEncoder {
  /** Hands over what the points become, in pieces. Some of it may come with a later page. */
  encode(page: PointColumns, take: Take): Steps<void>;
  /** Hands over the rest of the file. */
  finish(take: Take): Steps<void>;
}

export function encoderOf(format: ExportFormat, device: ExportedDevice): HistoryEncoder {
  return format === 'parquet' ? parquetEncoder(device) : textEncoder(TEXT_FORMATS[format](device));
}

/** A format of text: its beginning, each point, and its end. */
interface TextFormat {
  readonly begin: string;
  readonly point: (page: PointColumns, n: number) => string;
  readonly end: () => string;
}

const TEXT_FORMATS: Readonly<
  Record<Exclude<ExportFormat, 'parquet'>, (device: ExportedDevice) => TextFormat>
> = { ndjson: ndjsonFormat, csv: csvFormat, gpx: gpxFormat, geojson: geojsonFormat };

/** Points between two looks at the clock: a fraction of a millisecond. */
const POINTS_PER_STEP = 256;

function textEncoder({ begin, point, end }: TextFormat): HistoryEncoder {
  let before = begin;
  return {
    *encode(page, take) {
      for (let n = 0; n < page.count; ) {
        let text = before;
        before = '';
        for (const to = Math.min(n + POINTS_PER_STEP, page.count); n < to; n++) text += point(page, n);
        take(Buffer.from(text));
        yield;
      }
    },
    // biome-ignore lint/correctness/useYield: it has no step but its last
    *finish(take) {
      take(Buffer.from(before + end()));
    },
  };
}

/** One JSON object on each line: the fields of a history point, and those that the history leaves out. */
function ndjsonFormat({ imei }: ExportedDevice): TextFormat {
  return {
    begin: '',
    point: (page, n) =>
      `{"imei":"${imei}","latitude":${page.lats[n]},"longitude":${page.lngs[n]},"speed_kmh":${page.speedsKmh[n]},` +
      `"heading":${page.headings[n]},"satellites":${page.satellites[n]},"recorded_at":"${timeOf(page, n)}",` +
      `"altitude_m":${page.altitudesM[n]},"odometer_km":${odometerOf(page, n) ?? null}}\n`,
    end: () => '',
  };
}

/**
 * Comma-separated values as in RFC 4180. No field is free text, and none can begin with what a spreadsheet takes for a
 * formula, but for the minus of a number.
 */
function csvFormat({ imei }: ExportedDevice): TextFormat {
  return {
    begin: 'imei,recorded_at,latitude,longitude,altitude_m,speed_kmh,heading,satellites,odometer_km\r\n',
    point: (page, n) =>
      `${imei},${timeOf(page, n)},${page.lats[n]},${page.lngs[n]},${page.altitudesM[n]},${page.speedsKmh[n]},` +
      `${page.headings[n]},${page.satellites[n]},${odometerOf(page, n) ?? ''}\r\n`,
    end: () => '',
  };
}

/** A FeatureCollection (RFC 7946) with a point for each point: so none of it crosses 180°. */
function geojsonFormat({ imei }: ExportedDevice): TextFormat {
  let separator = '';
  return {
    begin: '{"type":"FeatureCollection","features":[',
    point: (page, n) => {
      const text =
        `${separator}{"type":"Feature","geometry":{"type":"Point","coordinates":[${page.lngs[n]},${page.lats[n]},${page.altitudesM[n]}]},` +
        `"properties":{"imei":"${imei}","recorded_at":"${timeOf(page, n)}","speed_kmh":${page.speedsKmh[n]},` +
        `"heading":${page.headings[n]},"satellites":${page.satellites[n]},"odometer_km":${odometerOf(page, n) ?? null}}}`;
      separator = ',\n';
      return text;
    },
    end: () => ']}\n',
  };
}

const NAMESPACES =
  'xmlns="http://www.topografix.com/GPX/1/1" xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2"';
const KMH_PER_M_S = 3.6;

/**
 * GPX 1.1: one track, with a segment for each part without a gap. Speed (m/s) and course are in the extension by Garmin,
 * which other programs read as well. GPX has no place for the odometer.
 */
function gpxFormat({ imei, name }: ExportedDevice): TextFormat {
  let lastMs: number | null = null;
  return {
    begin: `<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="Fleet Tracking Service" ${NAMESPACES}>\n<trk><name>${xmlText(name ?? imei)}</name>`,
    point: (page, n) => {
      const ms = page.recordedAtMs[n] as number;
      let segment = '';
      if (lastMs === null) segment = '<trkseg>\n';
      else if (ms - lastMs > GAP_MS) segment = '</trkseg>\n<trkseg>\n';
      lastMs = ms;
      const lng = page.lngs[n] as number;
      // The schema has longitudes below 180 only.
      return (
        `${segment}<trkpt lat="${decimal(page.lats[n] as number)}" lon="${decimal(lng === 180 ? -180 : lng)}">` +
        `<ele>${decimal(page.altitudesM[n] as number)}</ele><time>${timeOf(page, n)}</time><sat>${page.satellites[n]}</sat>` +
        `<extensions><gpxtpx:TrackPointExtension><gpxtpx:speed>${decimal((page.speedsKmh[n] as number) / KMH_PER_M_S)}</gpxtpx:speed>` +
        `<gpxtpx:course>${decimal(page.headings[n] as number)}</gpxtpx:course></gpxtpx:TrackPointExtension></extensions></trkpt>\n`
      );
    },
    end: () => `${lastMs === null ? '' : '</trkseg>'}</trk>\n</gpx>\n`,
  };
}

/** Digits behind the point of numbers so small that JavaScript would write them with an exponent. */
const SMALL_DIGITS = 20;

/** A number without an exponent, which xsd:decimal does not have. */
function decimal(value: number): string {
  const text = `${value}`;
  if (!text.includes('e')) return text;
  return Math.abs(value) < 1 ? value.toFixed(SMALL_DIGITS) : BigInt(value).toString();
}

/** Not one of the characters of XML 1.0 (section 2.2). */
const NO_XML_CHARACTER = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

function xmlText(text: string): string {
  return text.replace(NO_XML_CHARACTER, '').replace(/[&<>]/g, (character) => ENTITIES[character] as string);
}

const timeOf = (page: PointColumns, n: number): string => formatIso(page.recordedAtMs[n] as number);

function odometerOf(page: PointColumns, n: number): number | null {
  const km = page.odometersKm[n] as number;
  return Number.isNaN(km) ? null : km;
}

/** Rows of a row group. Of each, the end of the file has two kilobytes, so groups are some pages long. */
const GROUP_POINTS = 4 * PAGE_POINTS;

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

/** Apache Parquet, compressed with Zstandard: columns as in the CSV, times as timestamps in UTC. */
function parquetEncoder({ imei }: ExportedDevice): HistoryEncoder {
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
  let pages: PointColumns[] = [];
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
        const part = sliceColumns(page, at, Math.min(page.count, at + GROUP_POINTS - points));
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

function* columnsOf(imei: string, pages: readonly PointColumns[], points: number) {
  const joined = (of: ColumnName, into: Float64Array | Int32Array = new Float64Array(points)) => {
    let at = 0;
    for (const page of pages) {
      into.set(page[of].subarray(0, page.count), at);
      at += page.count;
    }
    return into;
  };
  yield { name: 'imei', data: new Array<string>(points).fill(imei) };
  const times = BigInt64Array.from(joined('recordedAtMs'), BigInt);
  yield { name: 'recorded_at', data: times, encoding: 'DELTA_BINARY_PACKED' as const };
  const plain = { encoding: 'PLAIN' } as const;
  for (const [name, of] of DOUBLES) yield { name, data: joined(of), ...plain };
  yield { name: 'satellites', data: joined('satellites', new Int32Array(points)), ...plain };
  const odometers = pages.flatMap((page) =>
    Array.from({ length: page.count }, (_, n) => odometerOf(page, n)),
  );
  yield { name: 'odometer_km', data: odometers, ...plain };
}
