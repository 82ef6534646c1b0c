import { scopeMask } from '../access/scopes.ts';
import { imeiError } from '../devices/imeiParameter.ts';
import { eventTypeOf } from '../events/events.routes.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { parameterError, readLimit } from '../http/parameter.ts';
import { EVENT_TYPE } from '../http/parameters.ts';
import { windowOf } from '../http/query.ts';
import type { Call, Route } from '../http/route.ts';
import type { EventFeed } from './eventFeed.ts';
import { READ_EVENT_FEED } from './feedOperations.ts';
import { feedAnswer } from './feedPages.ts';
import { EVENT_FEED_LIMIT, FROM_MESSAGE, readCursor, readWaitMs } from './feedParameters.ts';

export interface EventFeedPorts {
  readonly readers: { readonly eventFeed: EventFeed };
}

/** Every event that was produced since a cursor, each once. */
export function eventFeedRoute(ports: EventFeedPorts): Route {
  return {
    method: 'GET',
    path: '/events/feed',
    scopes: scopeMask('read_events'),
    versions: ['v3'],
    endsItself: true,
    describe: READ_EVENT_FEED,
    handle: (call) => feed(ports, call),
  };
}

async function feed({ readers }: EventFeedPorts, { caller, query, whenLeft }: Call): Promise<Answer> {
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
    waitMs: readWaitMs(query),
    whenLeft,
  });
  return feedAnswer(page);
}
