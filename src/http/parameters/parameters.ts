import { OFFSET_MAX } from '../listPageAnswer.ts';
import { LATITUDE, LONGITUDE } from '../openapi/commonSchemas.ts';
import { limitParameter, type Parameter } from './parameter.ts';

export const LIST_LIMIT = limitParameter(200, 50);

export const OFFSET: Parameter = {
  name: 'offset',
  in: 'query',
  required: false,
  description: 'How many to pass over. What is negative or no number counts as 0.',
  schema: { type: 'integer', minimum: 0, default: 0 },
};

/** Of a list that may be longer than a call may pass over. */
export const LONG_LIST_OFFSET: Parameter = {
  ...OFFSET,
  description: `${OFFSET.description} More than ${OFFSET_MAX} only reach behind the end of a list: one that is longer is narrowed by \`from\` and \`to\`.`,
};

export const LAT: Parameter = {
  name: 'lat',
  in: 'query',
  required: true,
  description: 'Degrees north, in decimal notation.',
  schema: LATITUDE,
  example: 41.9028,
};

export const LNG: Parameter = {
  name: 'lng',
  in: 'query',
  required: true,
  description: 'Degrees east, in decimal notation.',
  schema: LONGITUDE,
  example: 12.4964,
};

/** What the check of a point against an area answers to any other coordinates. */
export const COORDINATES_MESSAGE = 'lat must be a number from -90 to 90 and lng a number from -180 to 180';

export const FROM: Parameter = {
  name: 'from',
  in: 'query',
  required: false,
  description:
    'The earliest time wanted, itself included, in ISO 8601. A date alone is midnight UTC. Encode the + of an offset as %2B.',
  schema: { type: 'string', format: 'date-time' },
};

export const TO: Parameter = {
  name: 'to',
  in: 'query',
  required: false,
  description: 'The latest time wanted, itself included, written like `from`.',
  schema: { type: 'string', format: 'date-time' },
};

/** What is answered when an end of a window cannot be read. */
export const WINDOW_MESSAGE = 'from and to must be ISO 8601 times';
