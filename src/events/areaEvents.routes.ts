import { scopeMask } from '../access/scopes.ts';
import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { LIST_AREA_EVENTS } from '../areas/areaOperations.ts';
import { areaEventView } from '../areas/areaViews.ts';
import { imeiError } from '../devices/imeiParameter.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { idOf, malformedId } from '../http/id.ts';
import { listPageAnswer } from '../http/listPageAnswer.ts';
import { parameterError, readChoice, readLimit } from '../http/parameter.ts';
import { AREA_EVENT, LIST_LIMIT, WINDOW_MESSAGE } from '../http/parameters.ts';
import type { EventPorts } from '../http/ports.ts';
import { offsetOf, windowOf } from '../http/query.ts';
import type { Call, Route } from '../http/route.ts';
import { selectAreaEvents } from './fleetEvents.sql.ts';

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
