import { limitParameter, type Parameter } from '../../http/parameter.ts';
import { FROM, LAT, LNG, TO } from '../../http/parameters.ts';
import { DAY_MS, formatDuration, HOUR_MS } from '../../lib/durations.ts';
import { PRESENCE_WORK_MS } from './findPresence.ts';
import { PRESENCE_POINTS_MAX } from './presenceSearch.ts';

export const PRESENCE_LIMIT = limitParameter(200, 50);

export const PRESENCE_LAT: Parameter = {
  ...LAT,
  required: false,
  description: 'The centre of a circle, in degrees north. With `lng` and `radius_m`, or `area_id` instead.',
};

export const PRESENCE_LNG: Parameter = { ...LNG, required: false, description: 'The same in degrees east.' };

const RADIUS_MAX_M = 100_000;

export const RADIUS_M = {
  name: 'radius_m',
  in: 'query',
  required: false,
  description: 'The radius of the circle in metres.',
  schema: { type: 'number', minimum: 1, maximum: RADIUS_MAX_M },
  example: 500,
  max: RADIUS_MAX_M,
  errorMessage: `radius_m must be a number from 1 to ${RADIUS_MAX_M}`,
} as const satisfies Parameter & { max: number; errorMessage: string };

export const AREA_ID: Parameter = {
  name: 'area_id',
  in: 'query',
  required: false,
  description: 'An area instead of a circle, in its present shape.',
  schema: { type: 'integer', minimum: 1 },
};

/** How far back a call without `from` looks. */
export const PRESENCE_SPAN_MS = 24 * HOUR_MS;
export const PRESENCE_SPAN_MAX_MS = 31 * DAY_MS;

export const PRESENCE_FROM: Parameter = {
  ...FROM,
  description: `${FROM.description} Without it 24 hours before \`to\`.`,
};
export const PRESENCE_TO: Parameter = {
  ...TO,
  description: `${TO.description} Without it now. At most 31 days after \`from\`.`,
};

export const PLACE_MESSAGE = 'send either lat, lng and radius_m, or area_id';
export const AREA_ID_MESSAGE = 'area_id must be a positive integer';
export const SPAN_MESSAGE = 'from and to are more than 31 days apart; narrow them';
export const TOO_MANY_PRESENCE_POINTS = `more than ${PRESENCE_POINTS_MAX} points must be looked at; narrow from and to, or the place`;
export const TOO_MUCH_PRESENCE_WORK = `the call takes more than ${formatDuration(PRESENCE_WORK_MS)} of processor time; narrow from and to, or the place, or take an area of fewer points`;
