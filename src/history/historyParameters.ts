import { choiceParameter, limitParameter, type Parameter } from '../http/parameters.ts';
import { isBlank, type Query } from '../http/query.ts';
import { EXPORT_FORMATS } from './export/exportFormats.ts';
import { EXPORTS_PER_ACCOUNT } from './export/exportHistory.ts';
import { LocalDays } from './summary/localDays.ts';
import { SUMMARY_POINTS_MAX, SUMMARY_TRIPS_MAX } from './summary/summarizeHistory.ts';
import { SUMMARY_PERIODS } from './summary/summary.ts';

export const HISTORY_LIMIT = limitParameter(1000, 500);

export const SUMMARY_BY = choiceParameter(
  'by',
  SUMMARY_PERIODS,
  'The periods to add up: the whole time, days, or trips from parking to parking.',
  'total',
);

const UTC = 'UTC';

export const TIME_ZONE = {
  name: 'tz',
  in: 'query',
  required: false,
  description:
    'Whose days they are: a name of the IANA time zone database. A day on which the clock changes has 23 or 25 hours.',
  schema: { type: 'string', default: UTC },
  example: 'Europe/Rome',
  errorMessage: 'tz must be a name of the IANA time zone database, such as Europe/Rome',
} as const satisfies Parameter & { errorMessage: string };

export const EXPORT_FORMAT = choiceParameter('format', EXPORT_FORMATS, 'The kind of file.', 'ndjson');

export const TOO_MANY_EXPORTS = `${EXPORTS_PER_ACCOUNT} exports of this account are being read already; read one of them to its end first`;

export const TOO_MANY_POINTS = `the time has more than ${SUMMARY_POINTS_MAX} points; narrow from and to`;
export const TOO_MANY_TRIPS = `the time has more than ${SUMMARY_TRIPS_MAX} trips; narrow from and to`;

export function readTimeZone(query: Query): { name: string; days: LocalDays } | 'invalid' {
  const sent = query[TIME_ZONE.name];
  const name = sent === undefined || isBlank(sent) ? UTC : sent;
  const days = name === UTC ? LocalDays.UTC : LocalDays.of(name);
  return days === null ? 'invalid' : { name, days };
}
