import { formatIso } from '../lib/time.ts';
import type { PointColumns } from './codec/pointColumns.ts';
import type { HistoryEncoder } from './exportFile.ts';
import { parquetEncoder } from './parquetFile.ts';
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

/** The headers of a file of points. \`name\` has no character that a header must not have. */
export function fileHeaders(format: ExportFormat, name: string): Readonly<Record<string, string>> {
  const type = EXPORT_TYPES[format];
  return {
    'Content-Type': format === 'csv' ? `${type}; charset=utf-8; header=present` : type,
    'Content-Disposition': `attachment; filename="${name}.${format}"`,
    'Cache-Control': 'no-store',
  };
}

/** `trackName`: what GPX calls the track. */
export function encoderOf(format: ExportFormat, trackName: string): HistoryEncoder {
  return format === 'parquet' ? parquetEncoder() : textEncoder(TEXT_FORMATS[format](trackName));
}

/** A format of text: its beginning, each point, and its end. */
interface TextFormat {
  readonly begin: string;
  readonly point: (imei: string, page: PointColumns, n: number) => string;
  readonly end: () => string;
}

const TEXT_FORMATS: Readonly<Record<Exclude<ExportFormat, 'parquet'>, (trackName: string) => TextFormat>> = {
  ndjson: ndjsonFormat,
  csv: csvFormat,
  gpx: gpxFormat,
  geojson: geojsonFormat,
};

/** Points between two looks at the clock: a fraction of a millisecond. */
const POINTS_PER_STEP = 256;

/** Pages of few points are handed over together: each piece costs its connection something. */
function textEncoder({ begin, point, end }: TextFormat): HistoryEncoder {
  let before = begin;
  let pointsBefore = 0;
  return {
    *encode(imei, page, take) {
      for (let n = 0; n < page.count; ) {
        const to = Math.min(n + POINTS_PER_STEP - pointsBefore, page.count);
        pointsBefore += to - n;
        let text = before;
        for (; n < to; n++) text += point(imei, page, n);
        before = text;
        if (pointsBefore < POINTS_PER_STEP) return;
        take(Buffer.from(text));
        before = '';
        pointsBefore = 0;
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
function ndjsonFormat(): TextFormat {
  return {
    begin: '',
    point: (imei, page, n) =>
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
function csvFormat(): TextFormat {
  return {
    begin: 'imei,recorded_at,latitude,longitude,altitude_m,speed_kmh,heading,satellites,odometer_km\r\n',
    point: (imei, page, n) =>
      `${imei},${timeOf(page, n)},${page.lats[n]},${page.lngs[n]},${page.altitudesM[n]},${page.speedsKmh[n]},` +
      `${page.headings[n]},${page.satellites[n]},${odometerOf(page, n) ?? ''}\r\n`,
    end: () => '',
  };
}

/** The lines of the feed of points: those of the export, with when each point came. */
export function feedFormat(format: 'ndjson' | 'csv'): Omit<TextFormat, 'end'> {
  const { begin, point } = TEXT_FORMATS[format]('');
  const received = (page: PointColumns, n: number) => formatIso(page.receivedAtMs[n] as number);
  return format === 'ndjson'
    ? {
        begin,
        point: (imei, page, n) =>
          `${point(imei, page, n).slice(0, -2)},"received_at":"${received(page, n)}"}\n`,
      }
    : {
        begin: begin.replace('\r\n', ',received_at\r\n'),
        point: (imei, page, n) => `${point(imei, page, n).slice(0, -2)},${received(page, n)}\r\n`,
      };
}

/** A FeatureCollection (RFC 7946) with a point for each point: so none of it crosses 180°. */
function geojsonFormat(): TextFormat {
  let separator = '';
  return {
    begin: '{"type":"FeatureCollection","features":[',
    point: (imei, page, n) => {
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
function gpxFormat(trackName: string): TextFormat {
  let lastMs: number | null = null;
  return {
    begin: `<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="Fleet Tracking Service" ${NAMESPACES}>\n<trk><name>${xmlText(trackName)}</name>`,
    point: (_imei, page, n) => {
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
