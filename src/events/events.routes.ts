import { scopeMask } from '../access/scopes.ts';
import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { EXAMPLE_CIRCLE, ONE_AREA } from '../areas/areaSchemas.ts';
import {
  DEVICE,
  EXAMPLE_IMEI,
  EXAMPLE_NOW_MS,
  EXAMPLE_POINT,
  IMEI_MESSAGE,
  imeiError,
} from '../devices/deviceSchemas.ts';
import { type Answer, errorAnswer, listAnswer } from '../http/answer.ts';
import { answered, bodyOf, type DescribedError, type Operation } from '../http/openapi/operation.ts';
import { page, ref } from '../http/openapi/schema.ts';
import {
  choiceParameter,
  FROM,
  idOf,
  isBlank,
  LIST_LIMIT,
  LONG_LIST_OFFSET,
  listPageAnswer,
  malformedId,
  OFFSET_MESSAGE,
  offsetOf,
  parameterError,
  type Query,
  readChoice,
  readLimit,
  TO,
  WINDOW_MESSAGE,
  windowOf,
} from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type ReadPorts, type Route } from '../http/route.ts';
import type { EventCuts } from './eventPartitions.sql.ts';
import { EXAMPLE_EVENTS, eventView } from './eventView.ts';
import { DIRECTIONS, EVENT_TYPE_FILTERS, type EventTypeFilter, parseEventTypeFilter } from './fleetEvent.ts';
import { type AreaEvent, type EventFilter, selectAreaEvents, selectFleetEvents } from './fleetEvents.sql.ts';

/** Reads of an account's events, on its share of the connections. */
export interface EventPorts extends ReadPorts {
  readonly eventCuts: EventCuts;
}

export const EVENT_TYPE = choiceParameter(
  'type',
  EVENT_TYPE_FILTERS,
  'Only events of this type. `geofence` is every entry and exit; `geofence_enter` and `geofence_entry` are the entries alone, `geofence_exit` the exits.',
);

/** null when it is missing or blank. */
export function eventTypeOf(text: string | undefined): EventTypeFilter | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  return parseEventTypeFilter(text) ?? 'invalid';
}

const LIST_ERRORS: readonly DescribedError[] = [
  ['BAD_REQUEST', WINDOW_MESSAGE],
  ['BAD_REQUEST', OFFSET_MESSAGE],
  ['BAD_REQUEST', IMEI_MESSAGE],
  'IMEI_REQUIRED',
];
const PAGE = { limit: LIST_LIMIT.fallback, offset: 0 };

const LIST_EVENTS: Operation = {
  id: 'listEvents',
  tag: 'Events',
  summary: 'List fleet events',
  description: 'Of everything that the key can see, newest first.',
  parameters: [EVENT_TYPE, DEVICE, FROM, TO, LIST_LIMIT, LONG_LIST_OFFSET],
  answers: [
    answered(200, 'A page of events.', page(ref('FleetEvent')), {
      'one of each type': bodyOf(listAnswer(EXAMPLE_EVENTS, PAGE)),
    }),
  ],
  errors: [['BAD_REQUEST', EVENT_TYPE.errorMessage], ...LIST_ERRORS],
};

/** Fleet events of everything the caller may see, newest first. */
export function eventsRoute(ports: EventPorts): Route {
  return {
    method: 'GET',
    path: '/events',
    scopes: scopeMask('read_events'),
    isOpenToGroups: true,
    versions: BOTH_VERSIONS,
    shedAs: 'bulk',
    describe: LIST_EVENTS,
    handle: (call) => events(ports, call),
  };
}

async function events({ reads, eventCuts }: EventPorts, { caller, query, version }: Call): Promise<Answer> {
  const type = eventTypeOf(query['type']);
  if (type === 'invalid') return parameterError(EVENT_TYPE);
  const narrowed = deviceAndWindow(query);
  if ('status' in narrowed) return narrowed;
  const filter = { type: type?.type ?? null, direction: type?.direction ?? null, ...narrowed };
  const sql = reads(caller.accountId);
  return listPageAnswer(
    { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) },
    (page) => selectFleetEvents(sql, caller.worldIds, filter, page, eventCuts),
    (event) => eventView(event, version),
  );
}

export const AREA_EVENT = choiceParameter('event', DIRECTIONS, 'Only entries, or only exits.');

const LIST_AREA_EVENTS: Operation = {
  id: 'listAreaEvents',
  tag: 'Areas',
  summary: 'List the entries and exits of one area',
  description:
    "Newest first. An entry is there once the device has stayed for the area's dwell_seconds of GPS time; passing through leaves nothing.",
  parameters: [AREA_EVENT, DEVICE, FROM, TO, LIST_LIMIT, LONG_LIST_OFFSET],
  answers: [
    answered(200, 'A page of entries and exits.', page(ref('AreaEvent')), {
      entry: bodyOf(
        listAnswer(
          [
            {
              id: 9041,
              area_id: EXAMPLE_CIRCLE.id,
              device: EXAMPLE_IMEI,
              event: 'entry',
              position: EXAMPLE_POINT,
              timestamp: new Date(EXAMPLE_NOW_MS),
            } satisfies AreaEvent,
          ],
          PAGE,
        ),
      ),
    }),
  ],
  errors: [...ONE_AREA, ['BAD_REQUEST', AREA_EVENT.errorMessage], ...LIST_ERRORS],
};

interface AreaEventPorts extends EventPorts {
  readonly areas: AreaCatalog;
}

/** Entries and exits of one area, newest first. */
export function areaEventsRoute(ports: AreaEventPorts): Route {
  return {
    method: 'GET',
    path: '/areas/:id/events',
    scopes: scopeMask('read_areas'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    describe: LIST_AREA_EVENTS,
    handle: (call) => areaEvents(ports, call),
  };
}

async function areaEvents({ reads, areas, eventCuts }: AreaEventPorts, call: Call): Promise<Answer> {
  const { caller, query } = call;
  const id = idOf(call.params);
  if (id === null) return malformedId();
  const direction = readChoice(query, AREA_EVENT);
  if (direction === 'invalid') return parameterError(AREA_EVENT);
  const narrowed = deviceAndWindow(query);
  if ('status' in narrowed) return narrowed;
  if (areas.area(caller.worldIds, id) === undefined) return errorAnswer('NOT_FOUND');
  const filter = { direction, ...narrowed };
  const sql = reads(caller.accountId);
  return listPageAnswer({ limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) }, (page) =>
    selectAreaEvents(sql, caller.worldIds, id, filter, page, eventCuts),
  );
}

/** What both lists are narrowed by, or the answer to a value that is not valid. */
function deviceAndWindow(query: Query): Answer | Pick<EventFilter, 'imei' | 'fromMs' | 'toMs'> {
  const imei = query['device'];
  const error = imei === undefined ? null : imeiError(imei);
  if (error !== null) return error;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  return { imei: imei ?? null, ...window };
}
