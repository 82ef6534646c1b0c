import { hasAny, scopeMask } from '../../access/scopes.ts';
import { BBOX, BBOX_MESSAGE, readBox } from '../../areas/within/place.ts';
import { FILTER_ERRORS, FILTERS, readFilter } from '../../devices/living/deviceFilter.ts';
import { type Answer, errorAnswer } from '../../http/answer.ts';
import { scopeError } from '../../http/authorize.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import { text } from '../../http/openapi/schema.ts';
import {
  choiceParameter,
  isBlank,
  listParameter,
  type Parameter,
  parameterError,
  readChoice,
  readList,
} from '../../http/parameters.ts';
import type { Call, Route } from '../../http/route.ts';
import { CURSOR, CURSOR_MESSAGE, readCursor } from '../feeds.routes.ts';
import { STREAMS_PER_KEY, type Streams } from './streams.ts';

const PARTS = ['devices', 'events'] as const;

const INCLUDE = listParameter(
  'include',
  PARTS,
  'What to send, separated by commas: of what the permissions of the key allow. Default: all of that.',
);

const SNAPSHOT = choiceParameter(
  'snapshot',
  ['true', 'false'],
  'Without a cursor, a box and filters: whether the stream begins with the present state of every device.',
  'true',
);

const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description:
    'The `id` of the last message: the stream continues after it, on any pod. It takes precedence over `cursor`.',
  schema: { type: 'string', maxLength: 500 },
};

export const TOO_MANY_STREAMS = `this API key has ${STREAMS_PER_KEY} open streams already; close one first`;

const DEVICES = scopeMask('read_locations', 'read_devices');
const EVENTS = scopeMask('read_events');

export interface StreamRoutePorts {
  readonly readers: { readonly streams: Streams };
}

/** Devices and events as they change, as server-sent events. */
export function streamRoute(ports: StreamRoutePorts): Route {
  return {
    method: 'GET',
    path: '/stream',
    scopes: DEVICES | EVENTS,
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'poll',
    endsItself: true,
    describe: OPEN_STREAM,
    handle: (call) => stream(ports, call),
  };
}

async function stream({ readers }: StreamRoutePorts, { caller, query, header }: Call): Promise<Answer> {
  const include = readList(query, INCLUDE);
  if (include === 'invalid') return parameterError(INCLUDE);
  const asked = (include.includes('devices') ? DEVICES : 0) | (include.includes('events') ? EVENTS : 0);
  // Permissions come before the other parameters, as on every route.
  if (!hasAny(caller.scopes, asked)) return errorAnswer('INSUFFICIENT_SCOPE', scopeError(asked));
  const snapshot = readChoice(query, SNAPSHOT);
  if (snapshot === 'invalid') return parameterError(SNAPSHOT);
  const box = readBox(query);
  if (!box.ok) return box.error;
  const filter = readFilter(query, caller.worldIds);
  if (!filter.ok) return filter.error;
  const view = box.value === null && filter.value === null ? null : { box: box.value, filter: filter.value };
  const devices = hasAny(caller.scopes, asked & DEVICES);
  const events = hasAny(caller.scopes, asked & EVENTS);
  // A browser that comes back sends it beside the cursor with which it began.
  const last = header('last-event-id');
  const opened = await readers.streams.open(caller, {
    cursor: last === undefined || isBlank(last) ? readCursor(query) : last,
    withSnapshot: snapshot !== 'false',
    view,
    devices,
    events,
  });
  if (opened === 'malformed') return errorAnswer('BAD_REQUEST', CURSOR_MESSAGE);
  if (opened === 'expired') return errorAnswer('CURSOR_EXPIRED');
  if (opened === 'too_many') return errorAnswer('TOO_MANY_REQUESTS', TOO_MANY_STREAMS);
  return { status: 200, body: opened, headers: STREAM_HEADERS };
}

/** Proxies are to hand on each event as it comes (nginx, ngx_http_proxy_module: X-Accel-Buffering). */
const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
};

const OPEN_STREAM: Operation = {
  id: 'openStream',
  tag: 'Events',
  summary: 'Follow devices and events as they change',
  description: `Server-sent events: \`device\` with an item of /devices/changes, \`fleet_event\` with an item of /events/feed, and \`heartbeat\` every 10 seconds; \`data\` is one line of JSON. \`id\` is a cursor for both, with which any pod continues: as \`Last-Event-ID\` or \`cursor\`. A slow reader may miss positions in between, never an event. With \`bbox\`, \`status\`, \`group\` or \`max_age_seconds\` it begins with every device that is in the box and passes, also at a cursor; then come those that change or begin to be among them, and \`{ id, imei, left: true }\` for one that is not among them any more. They choose devices, never events. The stream ends when the key, its permissions, its allowlist or its account change, and when the pod stops. One call of the limits; with ${'`'}429${'`'}: ${TOO_MANY_STREAMS}.`,
  parameters: [INCLUDE, BBOX, ...FILTERS, SNAPSHOT, CURSOR, LAST_EVENT_ID],
  answers: [
    {
      status: 200,
      description: 'The stream.',
      contentType: 'text/event-stream',
      schema: text('Messages of server-sent events.'),
    },
  ],
  errors: [
    ['BAD_REQUEST', CURSOR_MESSAGE],
    ['BAD_REQUEST', INCLUDE.errorMessage],
    ['BAD_REQUEST', SNAPSHOT.errorMessage],
    ['BAD_REQUEST', BBOX_MESSAGE],
    ...FILTER_ERRORS,
    'CURSOR_EXPIRED',
  ],
};
