import { scopeMask } from '../access/scopes.ts';
import type { AreaCatalog } from '../memory/areaCatalog.ts';
import { selectAreaEvents } from '../store/fleetEvents.ts';
import { type Answer, errorAnswer } from './answer.ts';
import { areaEventView } from './areaViews.ts';
import { deepPageAnswer } from './deepPage.ts';
import { idOf, malformedId } from './id.ts';
import { refuseImei } from './imei.ts';
import { LIST_AREA_EVENTS } from './openapi/areaOperations.ts';
import { readChoice, readLimit, refuseChoice } from './parameter.ts';
import { AREA_EVENT, LIST_LIMIT, WINDOW_REFUSAL } from './parameters.ts';
import type { ReadPorts } from './ports.ts';
import { offsetOf, windowOf } from './query.ts';
import type { Call, Route } from './route.ts';

export interface AreaEventPorts extends ReadPorts {
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

async function events({ reads, areas }: AreaEventPorts, call: Call): Promise<Answer> {
  const { caller, query } = call;
  const id = idOf(call.params);
  if (id === null) return malformedId();
  const direction = readChoice(query, AREA_EVENT);
  if (direction === 'invalid') return refuseChoice(AREA_EVENT);
  const imei = query['device'];
  const refusal = imei === undefined ? null : refuseImei(imei);
  if (refusal !== null) return refusal;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_REFUSAL);
  const page = { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) };
  if (areas.area(caller.worldIds, id) === undefined) return errorAnswer('NOT_FOUND');
  const filter = { direction, imei: imei ?? null, ...window };
  const sql = reads(caller.accountId);
  return deepPageAnswer(
    page,
    (page) => selectAreaEvents(sql, caller.worldIds, id, filter, page),
    areaEventView,
  );
}
