import { scopeMask } from '../../access/scopes.ts';
import type { AreaCatalog } from '../../memory/areaCatalog.ts';
import { selectAreaEvents } from '../../store/devices/fleetEvents.ts';
import { type Answer, errorAnswer } from '../answers/answer.ts';
import { areaEventView } from '../answers/areaViews.ts';
import { listPageAnswer } from '../answers/listPageAnswer.ts';
import { LIST_AREA_EVENTS } from '../openapi/operations/areaOperations.ts';
import { idOf, malformedId } from '../parameters/id.ts';
import { imeiError } from '../parameters/imei.ts';
import { parameterError, readChoice, readLimit } from '../parameters/parameter.ts';
import { AREA_EVENT, LIST_LIMIT, WINDOW_MESSAGE } from '../parameters/parameters.ts';
import { offsetOf, windowOf } from '../parameters/query.ts';
import type { EventPorts } from './ports.ts';
import type { Call, Route } from './route.ts';

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
