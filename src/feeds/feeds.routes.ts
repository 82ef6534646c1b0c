import type { KeyState } from '../access/credentials.ts';
import { scopeMask } from '../access/scopes.ts';
import { changedDeviceJson, leftDeviceJson, removedDeviceJson } from '../devices/device.ts';
import {
  DEVICE,
  DEVICE_SCHEMAS,
  EXAMPLE_NOW_MS,
  EXAMPLE_SILENT_DEVICE,
  EXAMPLE_VAN,
  IMEI_MESSAGE,
  imeiError,
  LOCATION,
} from '../devices/deviceSchemas.ts';
import { FILTER_ERRORS, FILTERS, readFilter } from '../devices/living/deviceFilter.ts';
import { EVENT_TYPE, eventTypeOf } from '../events/events.routes.ts';
import { EVENT_SCHEMAS, EXAMPLE_EVENTS } from '../events/eventView.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { answered, type DescribedError, dataBody, type Operation } from '../http/openapi/operation.ts';
import type { Schema } from '../http/openapi/schema.ts';
import { envelope, list, nullable, number, ref, shapeOf, text, time } from '../http/openapi/schema.ts';
import {
  clampedInt,
  isBlank,
  limitParameter,
  type Parameter,
  parameterError,
  type Query,
  readLimit,
  windowOf,
} from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import { CURSOR_MAX_CHARS } from './cursors.ts';
import type { DeviceFeed } from './deviceFeed.ts';
import type { EventFeed } from './eventFeed.ts';
import { POLLS_PER_ACCOUNT, POLLS_PER_KEY } from './longPolls.ts';
import { type FeedAnswer, recordedEventView, UNREAD_MAX_BYTES } from './pages.ts';

const CHANGES_LIMIT = limitParameter(10_000, 500);
const EVENT_FEED_LIMIT = limitParameter(10_000, 100);
const WAIT_MAX_SECONDS = 25;

export const CURSOR: Parameter = {
  name: 'cursor',
  in: 'query',
  required: false,
  description:
    'From `meta.cursor` of the page before, of any pod. It is good for at least 24 hours; it belongs to the account.',
  schema: { type: 'string', maxLength: CURSOR_MAX_CHARS },
};
const OTHER_FILTERS_MESSAGE = 'cursor was made with other filters; begin without it';
export const CURSOR_MESSAGE = 'cursor is not one that this service gave to this account for this route';

/** null when it is missing or blank. */
export function readCursor(query: Query): string | null {
  const sent = query['cursor'];
  return sent === undefined || isBlank(sent) ? null : sent;
}

const WAIT: Parameter = {
  name: 'wait',
  in: 'query',
  required: false,
  description: `How many whole seconds the answer waits while nothing is new. A number outside of 0 to ${WAIT_MAX_SECONDS} is moved to the nearer end, and anything else counts as 0. A key can have ${POLLS_PER_KEY} calls waiting at a time on a pod; further ones are answered at once. An account can have ${POLLS_PER_ACCOUNT}; further ones are refused.`,
  schema: { type: 'integer', minimum: 0, maximum: WAIT_MAX_SECONDS, default: 0 },
};

const GATHER: Parameter = {
  name: 'gather',
  in: 'query',
  required: false,
  description: `The least number of whole seconds between the call and its answer, which has what happens until then. Both times count from the call, so \`wait=25&gather=5\` answers after 5 to 25 seconds. It is read like \`wait\`, and a call that gathers counts as one that waits. Errors come at once.`,
  schema: { type: 'integer', minimum: 0, maximum: WAIT_MAX_SECONDS, default: 0 },
};

/** How long a call waits, in milliseconds: until its key or session ends at most. */
function readWaits(query: Query, { endsAtMs = Number.POSITIVE_INFINITY }: KeyState, nowMs: number) {
  const read = ({ name }: Parameter): number =>
    Math.min(clampedInt(query[name], 0, WAIT_MAX_SECONDS, 0) * 1000, endsAtMs - nowMs);
  return { waitMs: read(WAIT), gatherMs: read(GATHER) };
}

const PRODUCED_FROM: Parameter = {
  name: 'from',
  in: 'query',
  required: false,
  description:
    'Without a cursor: begins with the events produced since this time, in ISO 8601. Encode the + of an offset as %2B.',
  schema: { type: 'string', format: 'date-time' },
};
const FROM_MESSAGE = 'from must be an ISO 8601 time';

const TOO_MANY_POLLS = `${POLLS_PER_ACCOUNT} calls of this account are waiting already; wait for the answer to one of them`;
const TOO_MUCH_UNREAD = `${UNREAD_MAX_BYTES / (1024 * 1024)} MB of answers to this account have not been read yet; read them first`;

const CHANGED_LOCATION: Schema = shapeOf({
  ...LOCATION.properties,
  heading: number('Degrees, clockwise from north.', { minimum: 0, maximum: 360 }),
  altitude_m: number('Metres.'),
});

/** An event as the list shows it, with the time of its production. */
function recorded({ properties = {}, required = [], ...rest }: Schema): Schema {
  return {
    ...rest,
    properties: { ...properties, recorded_at: time('When it was produced, by the clock of the server.') },
    required: [...required, 'recorded_at'],
  };
}

export const FEED_SCHEMAS = {
  ChangedDevice: shapeOf({
    ...DEVICE_SCHEMAS.Device.properties,
    location: { ...nullable(CHANGED_LOCATION), description: 'null when no position is known.' },
    ignition: {
      ...nullable({ type: 'boolean' }),
      description: 'As the device said last; null when it never did.',
    },
  }),
  RemovedDevice: shapeOf(
    {
      id: text('Equal to `imei`.'),
      imei: text(),
      removed: { type: 'boolean', enum: [true] },
    },
    { description: 'A device that the key does not see any more.' },
  ),
  LeftDevice: shapeOf(
    {
      id: text('Equal to `imei`.'),
      imei: text(),
      left: { type: 'boolean', enum: [true] },
    },
    { description: 'A device that the key sees and that does not pass the filters any more.' },
  ),
  RecordedEvent: {
    oneOf: [
      recorded(EVENT_SCHEMAS.GeofenceEvent),
      recorded(EVENT_SCHEMAS.IgnitionEvent),
      recorded(EVENT_SCHEMAS.ParkingEvent),
      recorded(EVENT_SCHEMAS.AlarmEvent),
      recorded(EVENT_SCHEMAS.RfidEvent),
    ],
  },
} as const satisfies Readonly<Record<string, Schema>>;

/** `{ data, meta: { cursor, has_more } }`. */
function feedPage(items: Schema): Schema {
  return envelope(
    list(items),
    shapeOf<{ cursor: string; has_more: boolean }>({
      cursor: text('Where the next call goes on.', { maxLength: CURSOR_MAX_CHARS }),
      has_more: { type: 'boolean', description: 'True when the next page is there already.' },
    }),
  );
}

/** As long as a cursor, without a meaning. */
const EXAMPLE_CURSOR = 'q1ZKzi8tykxOVbJSKkktLlHSUSouScxLTixKUbJSMjQwMNBRSixKVbJSKijKz0pNLgEA';
const EXAMPLE_META = { cursor: EXAMPLE_CURSOR, has_more: false };
const CURSOR_ERRORS: readonly DescribedError[] = [['BAD_REQUEST', CURSOR_MESSAGE], 'CURSOR_EXPIRED'];

const LIST_CHANGES: Operation = {
  id: 'listDeviceChanges',
  tag: 'Devices',
  summary: 'Read every device that has changed since the last call',
  description:
    'Without a cursor all devices; then what has changed since: new positions, edits, and devices that the key does not see any more. A page has a device at most once, as it is now; positions in between may be left out. Call again at once while `has_more` is true. A change may come twice and is never left out, whichever pod answers. With filters: first all that pass, then those that have changed or begin to pass, and `{ id, imei, left: true }` for those that pass no longer, maybe only because time has passed; it may also come for one that never passed. Send the same filters along the cursors.',
  parameters: [...FILTERS, CURSOR, CHANGES_LIMIT, WAIT, GATHER],
  answers: [
    answered(
      200,
      'Devices that have changed.',
      feedPage({ oneOf: [ref('ChangedDevice'), ref('RemovedDevice'), ref('LeftDevice')] }),
      {
        devices: dataBody(
          [
            JSON.parse(changedDeviceJson(EXAMPLE_VAN, EXAMPLE_NOW_MS, 214, true)),
            JSON.parse(changedDeviceJson(EXAMPLE_SILENT_DEVICE, EXAMPLE_NOW_MS, 0, null)),
          ],
          EXAMPLE_META,
        ),
        'one that is not seen any more': dataBody(
          [JSON.parse(removedDeviceJson('356938035643825'))],
          EXAMPLE_META,
        ),
        'one that passes the filters no longer': dataBody(
          [JSON.parse(leftDeviceJson('356938035643825'))],
          EXAMPLE_META,
        ),
        'nothing new': dataBody([], EXAMPLE_META),
      },
    ),
  ],
  errors: [...CURSOR_ERRORS, ['BAD_REQUEST', OTHER_FILTERS_MESSAGE], ...FILTER_ERRORS],
};

const READ_EVENT_FEED: Operation = {
  id: 'readEventFeed',
  tag: 'Events',
  summary: 'Read every event that was produced since the last call',
  description:
    'In the order in which the events became visible, each exactly once along the cursors, however late its point came. Without `cursor` and `from` it begins now, with an empty page. A page of a narrowed feed may be empty while `has_more` is true.',
  parameters: [CURSOR, PRODUCED_FROM, EVENT_TYPE, DEVICE, EVENT_FEED_LIMIT, WAIT, GATHER],
  answers: [
    answered(200, 'Events.', feedPage(ref('RecordedEvent')), {
      'one of each type': dataBody(
        EXAMPLE_EVENTS.map((event, n) =>
          recordedEventView({ ...event, xid: 1, recorded_at: new Date(EXAMPLE_NOW_MS - 7_000 + n) }),
        ),
        EXAMPLE_META,
      ),
      'nothing new': dataBody([], EXAMPLE_META),
    }),
  ],
  errors: [
    ...CURSOR_ERRORS,
    ['BAD_REQUEST', FROM_MESSAGE],
    ['BAD_REQUEST', EVENT_TYPE.errorMessage],
    ['BAD_REQUEST', IMEI_MESSAGE],
    'IMEI_REQUIRED',
  ],
};

interface FeedRoutePorts {
  readonly readers: { readonly deviceFeed: DeviceFeed; readonly eventFeed: EventFeed };
}

/** Everything about devices that is new since a cursor: answered from memory. */
export function deviceChangesRoute({ readers }: FeedRoutePorts): Route {
  const handle = ({ caller, query, nowMs, whenLeft }: Call): Answer | Promise<Answer> => {
    const filter = readFilter(query, caller.worldIds);
    if (!filter.ok) return filter.error;
    const page = readers.deviceFeed.next(caller, {
      filter: filter.value,
      cursor: readCursor(query),
      limit: readLimit(query, CHANGES_LIMIT),
      ...readWaits(query, caller, nowMs),
      whenLeft,
    });
    return page instanceof Promise ? page.then(feedAnswer) : feedAnswer(page);
  };
  return {
    method: 'GET',
    path: '/devices/changes',
    scopes: scopeMask('read_locations', 'read_devices'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'poll',
    isFromMemory: true,
    endsItself: true,
    describe: LIST_CHANGES,
    handle,
  };
}

/** Every event that was produced since a cursor, each once. */
export function eventFeedRoute({ readers }: FeedRoutePorts): Route {
  const handle = async ({ caller, query, nowMs, whenLeft }: Call): Promise<Answer> => {
    const type = eventTypeOf(query['type']);
    if (type === 'invalid') return parameterError(EVENT_TYPE);
    const imei = query['device'];
    const error = imei === undefined ? null : imeiError(imei);
    if (error !== null) return error;
    const window = windowOf({ from: query['from'] });
    if (window === 'invalid') return errorAnswer('BAD_REQUEST', FROM_MESSAGE);
    const page = await readers.eventFeed.next(caller, {
      cursor: readCursor(query),
      fromMs: window.fromMs,
      type: type?.type ?? null,
      direction: type?.direction ?? null,
      imei: imei ?? null,
      limit: readLimit(query, EVENT_FEED_LIMIT),
      ...readWaits(query, caller, nowMs),
      whenLeft,
    });
    return feedAnswer(page);
  };
  return {
    method: 'GET',
    path: '/events/feed',
    scopes: scopeMask('read_events'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'poll',
    endsItself: true,
    describe: READ_EVENT_FEED,
    handle,
  };
}

function feedAnswer(page: FeedAnswer): Answer {
  if (typeof page === 'object') {
    const { bytes: body, handover } = page;
    return handover === null ? { status: 200, body } : { status: 200, body, handover };
  }
  switch (page) {
    case 'malformed':
      return errorAnswer('BAD_REQUEST', CURSOR_MESSAGE);
    case 'other_filters':
      return errorAnswer('BAD_REQUEST', OTHER_FILTERS_MESSAGE);
    case 'expired':
      return errorAnswer('CURSOR_EXPIRED');
    case 'unread':
      return errorAnswer('TOO_MANY_REQUESTS', TOO_MUCH_UNREAD);
    case 'crowded':
      return errorAnswer('TOO_MANY_REQUESTS', TOO_MANY_POLLS);
  }
}
