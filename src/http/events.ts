import { scopeMask } from '../access/scopes.ts';
import { EVENT_TYPES, type EventTypeFilter, parseEventTypeFilter } from '../engine/eventTypes.ts';
import { selectFleetEvents } from '../store/fleetEvents.ts';
import type { Sql } from '../store/sql.ts';
import { type Answer, errorAnswer, listAnswer } from './answer.ts';
import { refuseImei } from './imei.ts';
import { clampedInt, isBlank, offsetOf, windowOf } from './query.ts';
import { BOTH_VERSIONS, type Call, type Route } from './route.ts';
import { eventView } from './views.ts';

const LIMIT_MAX = 200;
const LIMIT_DEFAULT = 50;

/** Fleet events of everything the caller may see, newest first. */
export function eventsRoute(sql: Sql): Route {
  return {
    method: 'GET',
    path: '/events',
    scopes: scopeMask('read_events'),
    versions: BOTH_VERSIONS,
    handle: (call) => events(sql, call),
  };
}

async function events(sql: Sql, { caller, query, version }: Call): Promise<Answer> {
  const type = typeOf(query['type']);
  if (type === 'invalid') return errorAnswer('BAD_REQUEST', `type must be one of ${EVENT_TYPES.join(', ')}`);
  const imei = query['device'];
  const refusal = imei === undefined ? null : refuseImei(imei);
  if (refusal !== null) return refusal;
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', 'from and to must be ISO 8601 times');
  const limit = clampedInt(query['limit'], 1, LIMIT_MAX, LIMIT_DEFAULT);
  const offset = offsetOf(query);
  const found = await selectFleetEvents(
    sql,
    caller.worldIds,
    { type: type?.type ?? null, direction: type?.direction ?? null, imei: imei ?? null, ...window },
    { limit, offset },
  );
  return listAnswer(
    found.map((event) => eventView(event, version)),
    { limit, offset },
  );
}

function typeOf(text: string | undefined): EventTypeFilter | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  return parseEventTypeFilter(text) ?? 'invalid';
}
