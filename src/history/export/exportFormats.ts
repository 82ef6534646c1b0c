import { gpxFormat } from './gpxFormat.ts';
import { type ExportedDevice, type HistoryEncoder, textEncoder } from './historyEncoder.ts';
import { parquetEncoder } from './parquetFormat.ts';
import { csvFormat, geojsonFormat, ndjsonFormat } from './textFormats.ts';

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

export function encoderOf(format: ExportFormat, device: ExportedDevice): HistoryEncoder {
  switch (format) {
    case 'ndjson':
      return textEncoder(ndjsonFormat(device));
    case 'csv':
      return textEncoder(csvFormat(device));
    case 'gpx':
      return textEncoder(gpxFormat(device));
    case 'geojson':
      return textEncoder(geojsonFormat(device));
    case 'parquet':
      return parquetEncoder(device);
  }
}
