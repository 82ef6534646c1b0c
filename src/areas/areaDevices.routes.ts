import { scopeMask } from '../access/scopes.ts';
import { deviceNamesJson } from '../devices/deviceJson.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import type { Occupant } from '../devices/knownDevice.ts';
import { dwellLeftSeconds } from '../devices/occupants.memory.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import { idOf, malformedId } from '../http/id.ts';
import { parameterError, readChoice, readLimit } from '../http/parameter.ts';
import { LIST_LIMIT } from '../http/parameters.ts';
import { offsetOf } from '../http/query.ts';
import type { Call, Route } from '../http/route.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { AreaCatalog } from './areaCatalog.memory.ts';
import { AREA_DEVICES, OCCUPANT_STATE } from './occupancyOperation.ts';

export interface AreaDevicesPorts {
  readonly areas: AreaCatalog;
  readonly fleet: Fleet;
}

/** Which devices are in an area, by the stays of the engine: answered from memory. */
export function areaDevicesRoute(ports: AreaDevicesPorts): Route {
  return {
    method: 'GET',
    path: '/areas/:id/devices',
    scopes: scopeMask('read_areas', 'read_devices'),
    needsAllScopes: true,
    versions: ['v3'],
    isPolled: true,
    describe: AREA_DEVICES,
    handle: (call) => devicesIn(ports, call),
  };
}

function devicesIn({ areas, fleet }: AreaDevicesPorts, { caller, params, query, nowMs }: Call): Answer {
  const id = idOf(params);
  if (id === null) return malformedId();
  const state = readChoice(query, OCCUPANT_STATE);
  if (state === 'invalid') return parameterError(OCCUPANT_STATE);
  const limit = readLimit(query, LIST_LIMIT);
  const offset = offsetOf(query);
  const { worldIds } = caller;
  const area = areas.area(worldIds, id);
  if (area === undefined) return errorAnswer('NOT_FOUND');
  const { page, total } = fleet.occupants(worldIds, id, state ?? 'all', { offset, limit });
  const { dwellSeconds } = area.definition;
  const items = page.map((occupant) => occupantJson(occupant, dwellSeconds, nowMs));
  const pagination = `{"limit":${limit},"offset":${offset},"count":${page.length}}`;
  return jsonAnswer(`[${items.join(',')}]`, `{"pagination":${pagination},"total":${total}}`);
}

/** The bytes that JSON.stringify makes of `occupantView`. */
function occupantJson(occupant: Occupant, dwellSeconds: number, nowMs: number): string {
  const { device, insideSinceMs, confirmedAtMs } = occupant;
  const entered = confirmedAtMs === null ? 'null' : `"${formatIso(confirmedAtMs)}"`;
  const lastMs = device.position?.recordedAtMs ?? insideSinceMs;
  return (
    `{"device":${deviceNamesJson(device, nowMs)},"since":"${formatIso(insideSinceMs)}","entered_at":${entered}` +
    `,"dwell_left_seconds":${dwellLeftSeconds(occupant, dwellSeconds)},"last_point_at":"${formatIso(lastMs)}"}`
  );
}
