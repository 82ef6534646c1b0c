import { scopeMask } from '../../access/scopes.ts';
import { FILTER_ERRORS, FILTERS, readFilter } from '../../devices/living/deviceFilter.ts';
import type { StatusCounts } from '../../devices/living/regionSearch.memory.ts';
import { type Answer, dataAnswer, errorAnswer } from '../../http/answer.ts';
import { scopeError } from '../../http/authorize.ts';
import { answerInTurns } from '../../http/bulkCalls.ts';
import { answered, dataBody, type Operation } from '../../http/openapi/operation.ts';
import { envelope, integer, ref, type Schema, shapeOf } from '../../http/openapi/schema.ts';
import type { Call, Route } from '../../http/route.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { PLACE_QUERY_ERRORS, regionAt, type WithinPorts } from './devicesWithin.routes.ts';
import { AREA_ID, BBOX, readPlace } from './place.ts';

type CountView = ReturnType<typeof countView>;

const counted = (description: string): Schema => integer(description, { minimum: 0 });

export const COUNT_SCHEMAS = {
  DeviceCount: shapeOf<CountView>({
    total: counted('All that pass.'),
    moving: counted('Of these, the moving ones.'),
    parked: counted('The parked ones.'),
    offline: counted('The offline ones.'),
    unknown: counted('Those without a position; none with `bbox` or `area_id`.'),
    located: counted('Those with a position.'),
  }),
};

function countView({ moving, parked, offline, unknown }: StatusCounts) {
  const located = moving + parked + offline;
  return { total: located + unknown, moving, parked, offline, unknown, located };
}

const NEEDED_FOR_PLACES = scopeMask('read_devices', 'read_locations');

const COUNT_DEVICES: Operation = {
  id: 'countDevices',
  tag: 'Devices',
  summary: 'Count devices by status',
  description:
    'Every device that the key can see, or those that pass the filters and are in a box or an area. A place needs the permission read_locations too. Answered from memory.',
  parameters: [BBOX, AREA_ID, ...FILTERS],
  answers: [
    answered(200, 'The counts.', envelope(ref('DeviceCount')), {
      fleet: dataBody(countView({ moving: 41, parked: 112, offline: 6, unknown: 1 })),
    }),
  ],
  errors: [...PLACE_QUERY_ERRORS, ...FILTER_ERRORS, 'TOO_COMPLEX'],
};

/** How many devices there are, in all or at a place, of each status. */
export function devicesCountRoute(ports: WithinPorts): Route {
  return {
    method: 'GET',
    path: '/devices/count',
    scopes: scopeMask('read_devices'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    isFromMemory: true,
    describe: COUNT_DEVICES,
    handle: (call) => count(ports, call),
  };
}

function count(ports: WithinPorts, call: Call): Answer | Promise<Answer> {
  const { caller, query, nowMs } = call;
  const place = readPlace(query);
  // Counts of small boxes tell where each device is.
  const asksPlace = !place.ok || place.value !== null;
  if (asksPlace && (caller.scopes & NEEDED_FOR_PLACES) !== NEEDED_FOR_PLACES)
    return errorAnswer('INSUFFICIENT_SCOPE', scopeError(NEEDED_FOR_PLACES, true));
  if (!place.ok) return place.error;
  const filter = readFilter(query, caller.worldIds);
  if (!filter.ok) return filter.error;
  const region = place.value === null ? null : regionAt(ports.areas, call, place.value);
  if (region === null && place.value !== null) return errorAnswer('NOT_FOUND');
  const counts = ports.fleet.living.count(caller.worldIds, region, filter.value, nowMs);
  return answerInTurns(ports, caller.accountId, countAnswer(counts));
}

function* countAnswer(counts: Steps<StatusCounts>): Steps<Answer> {
  return dataAnswer(countView(yield* counts));
}
