import { scopeMask } from '../access/scopes.ts';
import { EXAMPLE_NOW_MS } from '../devices/deviceViews.ts';
import { DEVICE, IMEI_MESSAGE, imeiError } from '../devices/imei.ts';
import { EVENT_TYPE, eventTypeOf } from '../events/events.routes.ts';
import { EXAMPLE_EVENTS } from '../events/eventView.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import type { DescribedError, Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import { parameterError, readLimit } from '../http/parameters/parameter.ts';
import { windowOf } from '../http/parameters/query.ts';
import type { Call, Route } from '../http/route.ts';
import type { EventFeed } from './eventFeed.ts';
import { feedAnswer, recordedEventView } from './feedPages.ts';
import {
  CURSOR,
  CURSOR_MESSAGE,
  EVENT_FEED_LIMIT,
  FROM_MESSAGE,
  PRODUCED_FROM,
  readCursor,
  readWaitMs,
  WAIT,
} from './feedParameters.ts';
import { feedPage } from './feedSchemas.ts';

/** As long as one is, and meaning nothing. */
export const EXAMPLE_CURSOR = 'q1ZKzi8tykxOVbJSKkktLlHSUSouScxLTixKUbJSMjQwMNBRSixKVbJSKijKz0pNLgEA';

export const CURSOR_ERRORS: readonly DescribedError[] = [['BAD_REQUEST', CURSOR_MESSAGE], 'CURSOR_EXPIRED'];

const RECORDED_AT_MS = EXAMPLE_NOW_MS - 7_000;

export const READ_EVENT_FEED: Operation = {
  id: 'readEventFeed',
  tag: 'Events',
  summary: 'Read every event that was produced since the last call',
  description:
    'In the order in which the events became visible, each exactly once along the cursors, however late its point came. Without `cursor` and `from` it begins now, with an empty page. A page of a narrowed feed may be empty while `has_more` is true.',
  parameters: [CURSOR, PRODUCED_FROM, EVENT_TYPE, DEVICE, EVENT_FEED_LIMIT, WAIT],
  answers: [
    answered(200, 'Events.', feedPage(ref('RecordedEvent')), {
      'one of each type': dataBody(
        EXAMPLE_EVENTS.map((event, n) =>
          recordedEventView({ ...event, xid: 1, recordedAtMs: RECORDED_AT_MS + n }),
        ),
        { cursor: EXAMPLE_CURSOR, has_more: false },
      ),
      'nothing new': dataBody([], { cursor: EXAMPLE_CURSOR, has_more: false }),
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
