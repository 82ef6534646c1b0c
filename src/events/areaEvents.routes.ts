import { scopeMask } from '../access/scopes.ts';
import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { EXAMPLE_CIRCLE, ONE_AREA } from '../areas/areaExamples.ts';
import { EXAMPLE_IMEI, EXAMPLE_NOW_MS, EXAMPLE_POINT } from '../devices/deviceExamples.ts';
import { DEVICE, IMEI_MESSAGE, imeiError } from '../devices/imeiParameter.ts';
import { type Answer, errorAnswer, listAnswer } from '../http/answer.ts';
import { listPageAnswer, OFFSET_MESSAGE } from '../http/listPageAnswer.ts';
import { answered, bodyOf } from '../http/openapi/body.ts';
import { page } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import { idOf, malformedId } from '../http/parameters/id.ts';
import { choiceParameter, parameterError, readChoice, readLimit } from '../http/parameters/parameter.ts';
import { FROM, LIST_LIMIT, LONG_LIST_OFFSET, TO, WINDOW_MESSAGE } from '../http/parameters/parameters.ts';
import { offsetOf, windowOf } from '../http/parameters/query.ts';
import type { Call, Route } from '../http/route.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { EventPorts } from './events.routes.ts';
import type { AreaEvent } from './fleetEvents.sql.ts';
import { selectAreaEvents } from './fleetEvents.sql.ts';

export const AREA_EVENT = choiceParameter('event', ['entry', 'exit'], 'Only entries, or only exits.');

export const LIST_AREA_EVENTS: Operation = {
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
            areaEventView({
              id: 9041,
              areaId: EXAMPLE_CIRCLE.id,
              imei: EXAMPLE_IMEI,
              direction: 'entry',
              position: EXAMPLE_POINT,
              occurredAtMs: EXAMPLE_NOW_MS,
            }),
          ],
          { limit: 50, offset: 0 },
        ),
      ),
    }),
  ],
  errors: [
    ...ONE_AREA,
    ['BAD_REQUEST', AREA_EVENT.errorMessage],
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', OFFSET_MESSAGE],
    ['BAD_REQUEST', IMEI_MESSAGE],
    'IMEI_REQUIRED',
  ],
};

export interface AreaEventPorts extends EventPorts {
  readonly areas: AreaCatalog;
}

/** Entries and exits of one area, newest first. */
export function areaEventsRoute(ports: AreaEventPorts): Route {
  return {
    method: 'GET',
    path: '/areas/:id/events',
    scopes: scopeMask('read_areas'),
    versions: ['v3'],
    describe: LIST_AREA_EVENTS,
    handle: (call) => events(ports, call),
  };
}

async function events({ reads, areas, eventCuts }: AreaEventPorts, call: Call): Promise<Answer> {
  const { caller, query } = call;
  const id = idOf(call.params);
  if (id === null) return malformedId();
  const direction = readChoice(query, AREA_EVENT);
  if (direction === 'invalid') return parameterError(AREA_EVENT);
  const imei = query['device'];
  const error = imei === undefined ? null : imeiError(imei);
  if (error !== null) return error;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const page = { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) };
  if (areas.area(caller.worldIds, id) === undefined) return errorAnswer('NOT_FOUND');
  const filter = { direction, imei: imei ?? null, ...window };
  const sql = reads(caller.accountId);
  return listPageAnswer(
    page,
    (page) => selectAreaEvents(sql, caller.worldIds, id, filter, page, eventCuts),
    areaEventView,
  );
}

/** An entry or exit of one area. */
export function areaEventView(event: AreaEvent) {
  return {
    id: event.id,
    area_id: event.areaId,
    device: event.imei,
    event: event.direction,
    position: event.position,
    timestamp: formatIso(event.occurredAtMs),
  };
}
