import { AREA_TYPES } from '../areas/area.ts';
import { EXTERNAL_ID } from '../areas/externalId.ts';
import { IDEMPOTENCY_KEY } from '../areas/idempotencyKey.ts';
import { COMMAND_STATUSES, type CommandStatus } from '../devices/commands.sql.ts';
import { IMEI } from '../devices/imei.ts';
import { EVENT_TYPE_FILTERS } from '../events/eventTypes.ts';
import { DELIVERY_STATUSES } from '../webhooks/transition.ts';
import { OFFSET_MAX } from './listPageAnswer.ts';
import { LATITUDE, LONGITUDE } from './openapi/commonSchemas.ts';
import { patternOf } from './openapi/schema.ts';
import { choiceParameter, limitParameter, type Parameter } from './parameter.ts';

export const LIST_LIMIT = limitParameter(200, 50);
export const NEAREST_LIMIT = limitParameter(50, 1);
export const HISTORY_LIMIT = limitParameter(1000, 500);
export const COMMANDS_LIMIT = limitParameter(100, 50);

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

export const MAX_KM = {
  name: 'max_km',
  in: 'query',
  required: false,
  description: 'Only devices within so many kilometres.',
  schema: { type: 'number', minimum: 0, exclusiveMinimum: true },
  errorMessage: 'max_km must be a positive number',
} as const satisfies Parameter & { errorMessage: string };

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

export const DEVICE: Parameter = {
  name: 'device',
  in: 'query',
  required: false,
  description: 'The IMEI of one device. An unknown one gives an empty list.',
  schema: { type: 'string', pattern: patternOf(IMEI) },
};

export const EVENT_TYPE = choiceParameter(
  'type',
  EVENT_TYPE_FILTERS,
  'Only events of this type. `geofence` is every entry and exit; `geofence_enter` and `geofence_entry` are the entries alone, `geofence_exit` the exits.',
);

export const AREA_EVENT = choiceParameter('event', ['entry', 'exit'], 'Only entries, or only exits.');

export const AREA_TYPE = choiceParameter('type', AREA_TYPES, 'Only areas of this type.');

export const AREA_FORMAT = choiceParameter(
  'format',
  ['json', 'geojson'],
  'The form of `data`: as below, or GeoJSON (RFC 7946).',
  'json',
);

export const EXTERNAL_ID_FILTER: Parameter = {
  name: 'external_id',
  in: 'query',
  required: false,
  description: 'The area with exactly this code: one or none.',
  schema: { type: 'string', pattern: patternOf(EXTERNAL_ID) },
};

export const DRY_RUN = {
  ...choiceParameter(
    'dry_run',
    ['true', 'false'],
    'Says what would happen, without saving anything. `dry_run: true` in the body does the same.',
  ),
  schema: { type: 'boolean', default: false },
} as const;

/** What the path of the upsert route answers to a code in another form. */
export const EXTERNAL_ID_MESSAGE = 'an external id has 1 to 100 letters, digits and . _ : / @ # -';

export const DELIVERY_STATUS = choiceParameter('status', DELIVERY_STATUSES, 'Only deliveries in this state.');

/** What the replay route answers to an id in another form, and to a delivery that it does not replay. */
export const DELIVERY_ID_MESSAGE = 'the delivery id is malformed';
export const REPLAY_MESSAGE =
  'only failed or exhausted deliveries without an attempt in flight can be replayed';

const DEFAULT_COMMAND_STATUSES: readonly CommandStatus[] = ['pending', 'sent'];

export const COMMAND_STATUS = {
  name: 'status',
  in: 'query',
  required: false,
  explode: false,
  description: 'Only commands in one of these states, separated by commas.',
  schema: {
    type: 'array',
    items: { type: 'string', enum: COMMAND_STATUSES },
    default: DEFAULT_COMMAND_STATUSES,
  },
  fallback: DEFAULT_COMMAND_STATUSES,
  errorMessage: `status must be a comma-separated subset of ${COMMAND_STATUSES.join(', ')}`,
} as const satisfies Parameter & { fallback: readonly CommandStatus[]; errorMessage: string };

export const IDEMPOTENCY_KEY_HEADER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Repeating the call with the same key and body within 24 hours gives the first answer again instead of another area.',
  schema: { type: 'string', pattern: patternOf(IDEMPOTENCY_KEY) },
  errorMessage: 'an Idempotency-Key has 1 to 200 letters, digits and . _ : -',
} as const satisfies Parameter & { errorMessage: string };
