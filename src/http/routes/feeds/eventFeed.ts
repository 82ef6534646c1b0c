import { scopeMask } from '../../../access/scopes.ts';
import type { EventFeed } from '../../../flows/readers/eventFeed.ts';
import { type Answer, errorAnswer } from '../../answers/answer.ts';
import { feedAnswer } from '../../answers/feedPages.ts';
import { READ_EVENT_FEED } from '../../openapi/operations/feedOperations.ts';
import { EVENT_FEED_LIMIT, FROM_MESSAGE, readCursor, readWaitMs } from '../../parameters/feedParameters.ts';
import { imeiError } from '../../parameters/imei.ts';
import { parameterError, readLimit } from '../../parameters/parameter.ts';
import { EVENT_TYPE } from '../../parameters/parameters.ts';
import { windowOf } from '../../parameters/query.ts';
import { eventTypeOf } from '../events.ts';
import type { Call, Route } from '../route.ts';

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
