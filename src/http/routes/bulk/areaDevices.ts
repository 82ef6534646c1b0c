import { scopeMask } from '../../../access/scopes.ts';
import { formatIso } from '../../../base/isoTime.ts';
import type { AreaCatalog } from '../../../memory/areaCatalog.ts';
import type { Occupant } from '../../../memory/device.ts';
import type { Fleet } from '../../../memory/fleet.ts';
import { dwellLeftSeconds } from '../../../memory/occupants.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../../answers/answer.ts';
import { deviceNamesJson } from '../../answers/deviceJson.ts';
import { AREA_DEVICES, OCCUPANT_STATE } from '../../openapi/operations/occupancyOperation.ts';
import { idOf, malformedId } from '../../parameters/id.ts';
import { parameterError, readChoice, readLimit } from '../../parameters/parameter.ts';
import { LIST_LIMIT } from '../../parameters/parameters.ts';
import { offsetOf } from '../../parameters/query.ts';
import type { Call, Route } from '../route.ts';

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
