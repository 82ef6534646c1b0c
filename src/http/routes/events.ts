import { scopeMask } from '../../access/scopes.ts';
import { type EventTypeFilter, parseEventTypeFilter } from '../../engine/eventTypes.ts';
import { selectFleetEvents } from '../../store/devices/fleetEvents.ts';
import { type Answer, errorAnswer } from '../answers/answer.ts';
import { listPageAnswer } from '../answers/listPageAnswer.ts';
import { eventView } from '../answers/views.ts';
import { LIST_EVENTS } from '../openapi/operations/eventOperations.ts';
import { imeiError } from '../parameters/imei.ts';
import { parameterError, readLimit } from '../parameters/parameter.ts';
import { EVENT_TYPE, LIST_LIMIT, WINDOW_MESSAGE } from '../parameters/parameters.ts';
import { isBlank, offsetOf, windowOf } from '../parameters/query.ts';
import type { EventPorts } from './ports.ts';
import { BOTH_VERSIONS, type Call, type Route } from './route.ts';

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
