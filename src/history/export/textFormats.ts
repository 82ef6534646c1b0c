import { formatIso } from '../../lib/isoTime.ts';
import type { PointPage } from '../pointPages.sql.ts';
import type { ExportedDevice, TextFormat } from './historyEncoder.ts';

/** One JSON object on each line: the fields of a history point, and those that the history leaves out. */
export function ndjsonFormat({ imei }: ExportedDevice): TextFormat {
  const start = `{"imei":"${imei}","latitude":`;
  return {
    begin: '',
    point: (page, n) =>
      `${start}${page.lats[n]},"longitude":${page.lngs[n]},"speed_kmh":${page.speedsKmh[n]},"heading":${page.headings[n]},` +
      `"satellites":${page.satellites[n]},"recorded_at":"${timeOf(page, n)}","altitude_m":${page.altitudesM[n]},` +
      `"odometer_km":${odometerOf(page, n) ?? null}}\n`,
    end: () => '',
  };
}

/**
 * Comma-separated values as in RFC 4180. No field is free text, and none can begin with what a spreadsheet takes for a
 * formula, but for the minus of a number.
 */
export function csvFormat({ imei }: ExportedDevice): TextFormat {
  return {
    begin: 'imei,recorded_at,latitude,longitude,altitude_m,speed_kmh,heading,satellites,odometer_km\r\n',
    point: (page, n) =>
      `${imei},${timeOf(page, n)},${page.lats[n]},${page.lngs[n]},${page.altitudesM[n]},${page.speedsKmh[n]},` +
      `${page.headings[n]},${page.satellites[n]},${odometerOf(page, n) ?? ''}\r\n`,
    end: () => '',
  };
}

/** A FeatureCollection (RFC 7946) with a point for each point: so none of it crosses 180°. */
export function geojsonFormat({ imei }: ExportedDevice): TextFormat {
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

export function timeOf(page: PointPage, n: number): string {
  return formatIso(page.recordedAtMs[n] as number);
}

export function odometerOf(page: PointPage, n: number): number | null {
  const km = page.odometersKm[n] as number;
  return Number.isNaN(km) ? null : km;
}
