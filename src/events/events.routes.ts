import { scopeMask } from '../access/scopes.ts';
import { eventView } from '../devices/deviceViews.ts';
import { imeiError } from '../devices/imeiParameter.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { listPageAnswer } from '../http/listPageAnswer.ts';
import { parameterError, readLimit } from '../http/parameter.ts';
import { EVENT_TYPE, LIST_LIMIT, WINDOW_MESSAGE } from '../http/parameters.ts';
import type { EventPorts } from '../http/ports.ts';
import { isBlank, offsetOf, windowOf } from '../http/query.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { LIST_EVENTS } from './eventOperations.ts';
import { type EventTypeFilter, parseEventTypeFilter } from './eventTypes.ts';
import { selectFleetEvents } from './fleetEvents.sql.ts';

/** Fleet events of everything the caller may see, newest first. */
export function eventsRoute(ports: EventPorts): Route {
  return {
    method: 'GET',
    path: '/events',
    scopes: scopeMask('read_events'),
    versions: BOTH_VERSIONS,
    describe: LIST_EVENTS,
    handle: (call) => events(ports, call),
  };
}

async function events({ reads, eventCuts }: EventPorts, { caller, query, version }: Call): Promise<Answer> {
  const type = eventTypeOf(query['type']);
  if (type === 'invalid') return parameterError(EVENT_TYPE);
  const imei = query['device'];
  const error = imei === undefined ? null : imeiError(imei);
  if (error !== null) return error;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const filter = {
    type: type?.type ?? null,
    direction: type?.direction ?? null,
    imei: imei ?? null,
    ...window,
  };
  const sql = reads(caller.accountId);
  return listPageAnswer(
    { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) },
    (page) => selectFleetEvents(sql, caller.worldIds, filter, page, eventCuts),
    (event) => eventView(event, version),
  );
}

/** null when it is missing or blank. */
export function eventTypeOf(text: string | undefined): EventTypeFilter | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  return parseEventTypeFilter(text) ?? 'invalid';
}
