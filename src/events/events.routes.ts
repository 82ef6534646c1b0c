import { scopeMask } from '../access/scopes.ts';
import { DEVICE, IMEI_MESSAGE, imeiError } from '../devices/imeiParameter.ts';
import { type Answer, errorAnswer, listAnswer } from '../http/answer.ts';
import { listPageAnswer, OFFSET_MESSAGE } from '../http/listPageAnswer.ts';
import { answered, bodyOf } from '../http/openapi/body.ts';
import { page } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import { choiceParameter, parameterError, readLimit } from '../http/parameters/parameter.ts';
import { FROM, LIST_LIMIT, LONG_LIST_OFFSET, TO, WINDOW_MESSAGE } from '../http/parameters/parameters.ts';
import { isBlank, offsetOf, windowOf } from '../http/parameters/query.ts';
import type { ReadPorts } from '../http/ports.ts';
import type { ApiVersion } from '../http/route.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { formatIso } from '../lib/isoTime.ts';
import { EXAMPLE_EVENTS } from './eventExamples.ts';
import type { EventCuts } from './eventParts.sql.ts';
import { EVENT_TYPE_FILTERS, type EventTypeFilter, parseEventTypeFilter } from './eventTypes.ts';
import type { FleetEvent } from './fleetEvents.sql.ts';
import { selectFleetEvents } from './fleetEvents.sql.ts';

export const EVENT_TYPE = choiceParameter(
  'type',
  EVENT_TYPE_FILTERS,
  'Only events of this type. `geofence` is every entry and exit; `geofence_enter` and `geofence_entry` are the entries alone, `geofence_exit` the exits.',
);

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

const LIST_EVENTS: Operation = {
  id: 'listEvents',
  tag: 'Events',
  summary: 'List fleet events',
  description: 'Of everything that the key can see, newest first.',
  parameters: [EVENT_TYPE, DEVICE, FROM, TO, LIST_LIMIT, LONG_LIST_OFFSET],
  answers: [
    answered(200, 'A page of events.', page(ref('FleetEvent')), {
      'one of each type': bodyOf(
        listAnswer(
          EXAMPLE_EVENTS.map((event) => eventView(event, 'v3')),
          { limit: 50, offset: 0 },
        ),
      ),
    }),
  ],
  errors: [
    ['BAD_REQUEST', EVENT_TYPE.errorMessage],
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', OFFSET_MESSAGE],
    ['BAD_REQUEST', IMEI_MESSAGE],
    'IMEI_REQUIRED',
  ],
};

/** v2 shows the area of a geofence event under its older key, geofenceId. */
export function eventView(event: FleetEvent, version: ApiVersion) {
  return {
    id: event.id,
    type: event.type,
    message: event.message,
    device_imei: event.imei,
    data: version === 'v2' && event.type === 'geofence' ? geofenceDataV2(event.data) : event.data,
    read: event.read,
    occurred_at: formatIso(event.occurredAtMs),
  };
}

function geofenceDataV2({ areaId, ...rest }: FleetEvent['data']): FleetEvent['data'] {
  return { ...rest, geofenceId: areaId };
}

/** Reads of an account's events, on its share of the connections. */
export interface EventPorts extends ReadPorts {
  readonly eventCuts: EventCuts;
}
