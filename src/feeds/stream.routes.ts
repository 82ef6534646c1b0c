import { hasAny, scopeMask } from '../access/scopes.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { parameterError, readChoice } from '../http/parameter.ts';
import { isBlank } from '../http/query.ts';
import type { Call, Route } from '../http/route.ts';
import { CURSOR_MESSAGE, readCursor } from './feedParameters.ts';
import { OPEN_STREAM } from './streamOperations.ts';
import { INCLUDE, readInclude, SNAPSHOT, TOO_MANY_STREAMS } from './streamParameters.ts';
import type { Streams } from './streams.ts';

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
    versions: ['v3'],
    endsItself: true,
    describe: OPEN_STREAM,
    handle: (call) => stream(ports, call),
  };
}

async function stream({ readers }: StreamRoutePorts, { caller, query, header }: Call): Promise<Answer> {
  const include = readInclude(query);
  if (include === 'invalid') return parameterError(INCLUDE);
  const snapshot = readChoice(query, SNAPSHOT);
  if (snapshot === 'invalid') return parameterError(SNAPSHOT);
  const devices = include.has('devices') && hasAny(caller.scopes, DEVICES);
  const events = include.has('events') && hasAny(caller.scopes, EVENTS);
  if (!devices && !events) return errorAnswer('INSUFFICIENT_SCOPE');
  // A browser that comes back sends it beside the cursor with which it began.
  const last = header('last-event-id');
  const opened = await readers.streams.open(caller, {
    cursor: last === undefined || isBlank(last) ? readCursor(query) : last,
    withSnapshot: snapshot !== 'false',
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
