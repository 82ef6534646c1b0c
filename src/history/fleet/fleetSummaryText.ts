import type { DeviceFields } from '../../devices/device.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import type { Take } from '../exportFile.ts';
import { EXPORT_TYPES, type ExportFormat } from '../exportFormats.ts';
import type { LocalDays } from '../summary/localDays.ts';
import { type PeriodView, periodView } from '../summary/summaryView.ts';
import type { DeviceSummary } from './summarizeFleet.ts';

export const FLEET_SUMMARY_FORMATS = ['json', 'csv', 'ndjson'] as const satisfies readonly (
  | ExportFormat
  | 'json'
)[];
export type FleetSummaryFormat = (typeof FLEET_SUMMARY_FORMATS)[number];

export const FLEET_SUMMARY_TYPES: Readonly<Record<FleetSummaryFormat, string>> = {
  json: 'application/json',
  csv: EXPORT_TYPES.csv,
  ndjson: EXPORT_TYPES.ndjson,
};

/** Writes the summaries of devices as a file, some devices at a time. */
export interface FleetSummaryEncoder {
  encode(summaries: readonly DeviceSummary[], take: Take): Steps<void>;
  /** Hands over the rest of the file. */
  finish(take: Take): void;
}

/** A format: its beginning, each period, and its end. */
interface TextFormat {
  readonly begin: string;
  readonly period: (view: FleetPeriodView) => string;
  readonly end: string;
}

/** `meta`: of the JSON. `days`: the periods are days of these, else null. */
export function fleetSummaryEncoder(
  format: FleetSummaryFormat,
  meta: object,
  days: LocalDays | null,
): FleetSummaryEncoder {
  const { begin, period: textOf, end } = formatOf(format, meta, days !== null);
  let text = begin;
  return {
    *encode(summaries, take) {
      const pace = new Pace();
      for (const { device, periods } of summaries) {
        const { fields } = device;
        for (const period of periods) text += textOf(fleetPeriodView(fields, periodView(period, days)));
        if (text.length >= PIECE_CHARS) {
          take(Buffer.from(text));
          text = '';
        }
        if (pace.isDue()) yield* pace.pause();
      }
    },
    finish: (take) => take(Buffer.from(text + end)),
  };
}

const PIECE_CHARS = 32 * 1024;

export type FleetPeriodView = ReturnType<typeof fleetPeriodView>;

/** A period of a summary, with its device in front. */
export function fleetPeriodView(
  { imei, name, plate }: Pick<DeviceFields, 'imei' | 'name' | 'plate'>,
  period: PeriodView,
) {
  return { device: { imei, name, plate }, ...period };
}

function formatOf(format: FleetSummaryFormat, meta: object, hasDates: boolean): TextFormat {
  if (format === 'csv') return csvFormat(hasDates);
  return format === 'json' ? jsonFormat(meta) : NDJSON;
}

const NDJSON: TextFormat = { begin: '', period: (view) => `${JSON.stringify(view)}\n`, end: '' };

/** With a period on each line. */
function jsonFormat(meta: object): TextFormat {
  let separator = '';
  return {
    begin: '{"data":[',
    period: (view) => {
      const text = separator + JSON.stringify(view);
      separator = ',\n';
      return text;
    },
    end: `],"meta":${JSON.stringify(meta)}}`,
  };
}

const PERIOD_NUMBERS = [
  'points',
  'distance_km',
  'moving_seconds',
  'parked_seconds',
  'gap_seconds',
  'max_speed_kmh',
  'average_speed_kmh',
] as const;

type Cell = string | number | null;

/** Comma-separated values as in RFC 4180. What is null in JSON is empty. */
function csvFormat(hasDates: boolean): TextFormat {
  const columns = CSV_COLUMNS.filter(([column]) => hasDates || column !== 'date');
  const lineOf = (cells: readonly Cell[]) => `${cells.map(csvText).join()}\r\n`;
  return {
    begin: lineOf(columns.map(([column]) => column)),
    period: (view) => lineOf(columns.map(([, cellOf]) => cellOf(view))),
    end: '',
  };
}

const CSV_COLUMNS: readonly (readonly [column: string, cellOf: (view: FleetPeriodView) => Cell])[] = [
  ['imei', ({ device }) => device.imei],
  ['name', ({ device }) => device.name],
  ['plate', ({ device }) => device.plate],
  ['from', ({ from }) => from],
  ['to', ({ to }) => to],
  ['date', ({ date }) => date ?? null],
  ...PERIOD_NUMBERS.map((column) => [column, (view: FleetPeriodView) => view[column]] as const),
  ...(['first', 'last'] as const).flatMap((end) =>
    (['latitude', 'longitude', 'recorded_at'] as const).map(
      (field) => [`${end}_${field}`, (view: FleetPeriodView) => view[end]?.[field] ?? null] as const,
    ),
  ),
];

function csvText(cell: Cell): string {
  if (cell === null) return '';
  const text = String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
