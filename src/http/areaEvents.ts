import { scopeMask } from '../access/scopes.ts';
import { formatIso } from '../base/isoTime.ts';
import type { AreaCatalog } from '../memory/areaCatalog.ts';
import { type AreaEvent, type Direction, selectAreaEvents } from '../store/fleetEvents.ts';
import type { Sql } from '../store/sql.ts';
import { type Answer, errorAnswer, listAnswer } from './answer.ts';
import { idOf, malformedId } from './id.ts';
import { refuseImei } from './imei.ts';
import { clampedInt, isBlank, offsetOf, windowOf } from './query.ts';
import type { Call, Route } from './route.ts';

const LIMIT_MAX = 200;
const LIMIT_DEFAULT = 50;

/** Entries and exits of one area, newest first. */
export function areaEventsRoute(ports: { sql: Sql; areas: AreaCatalog }): Route {
  return {
    method: 'GET',
    path: '/areas/:id/events',
    scopes: scopeMask('read_areas'),
    versions: ['v3'],
    handle: (call) => events(ports, call),
  };
}

async function events({ sql, areas }: { sql: Sql; areas: AreaCatalog }, call: Call): Promise<Answer> {
  const { caller, query } = call;
  const id = idOf(call.params);
  if (id === null) return malformedId();
  const direction = directionOf(query['event']);
  if (direction === 'invalid') return errorAnswer('BAD_REQUEST', 'event must be entry or exit');
  const imei = query['device'];
  const refusal = imei === undefined ? null : refuseImei(imei);
  if (refusal !== null) return refusal;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', 'from and to must be ISO 8601 times');
  const limit = clampedInt(query['limit'], 1, LIMIT_MAX, LIMIT_DEFAULT);
  const offset = offsetOf(query);
  if (areas.area(caller.worldIds, id) === undefined) return errorAnswer('NOT_FOUND');
  const found = await selectAreaEvents(
    sql,
    caller.worldIds,
    id,
    { direction, imei: imei ?? null, ...window },
    { limit, offset },
  );
  return listAnswer(found.map(areaEventView), { limit, offset });
}

function areaEventView(event: AreaEvent) {
  return {
    id: event.id,
    area_id: event.areaId,
    device: event.imei,
    event: event.direction,
    position: event.position,
    timestamp: formatIso(event.occurredAtMs),
  };
}

function directionOf(text: string | undefined): Direction | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  return text === 'entry' || text === 'exit' ? text : 'invalid';
}
