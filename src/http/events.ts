import { scopeMask } from '../access/scopes.ts';
import { type EventTypeFilter, parseEventTypeFilter } from '../engine/eventTypes.ts';
import { selectFleetEvents } from '../store/fleetEvents.ts';
import { type Answer, errorAnswer } from './answer.ts';
import { deepPageAnswer } from './deepPage.ts';
import { refuseImei } from './imei.ts';
import { LIST_EVENTS } from './openapi/eventOperations.ts';
import { readLimit, refuseChoice } from './parameter.ts';
import { EVENT_TYPE, LIST_LIMIT, WINDOW_REFUSAL } from './parameters.ts';
import type { ReadPorts } from './ports.ts';
import { isBlank, offsetOf, windowOf } from './query.ts';
import { BOTH_VERSIONS, type Call, type Route } from './route.ts';
import { eventView } from './views.ts';

/** Fleet events of everything the caller may see, newest first. */
export function eventsRoute(ports: ReadPorts): Route {
  return {
    method: 'GET',
    path: '/events',
    scopes: scopeMask('read_events'),
    versions: BOTH_VERSIONS,
    describe: LIST_EVENTS,
    handle: (call) => events(ports, call),
  };
}

async function events({ reads }: ReadPorts, { caller, query, version }: Call): Promise<Answer> {
  const type = typeOf(query['type']);
  if (type === 'invalid') return refuseChoice(EVENT_TYPE);
  const imei = query['device'];
  const refusal = imei === undefined ? null : refuseImei(imei);
  if (refusal !== null) return refusal;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_REFUSAL);
  const filter = {
    type: type?.type ?? null,
    direction: type?.direction ?? null,
    imei: imei ?? null,
    ...window,
  };
  const sql = reads(caller.accountId);
  return deepPageAnswer(
    { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) },
    (page) => selectFleetEvents(sql, caller.worldIds, filter, page),
    (event) => eventView(event, version),
  );
}

function typeOf(text: string | undefined): EventTypeFilter | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  return parseEventTypeFilter(text) ?? 'invalid';
}
