import { scopeMask } from '../access/scopes.ts';
import type { Occupant } from '../devices/device.ts';
import { deviceNamesJson, statusOf } from '../devices/deviceJson.ts';
import { DEVICE_NAMES, EXAMPLE_NOW_MS, EXAMPLE_VAN } from '../devices/deviceSchemas.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { dwellLeftSeconds, OCCUPANT_STATES } from '../devices/stays/occupants.memory.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { answered, dataBody } from '../http/openapi/operation.ts';
import {
  envelope,
  integer,
  list,
  nullable,
  number,
  pageMeta,
  ref,
  shapeOf,
  time,
} from '../http/openapi/schema.ts';
import {
  choiceParameter,
  idOf,
  LIST_LIMIT,
  malformedId,
  OFFSET,
  offsetOf,
  parameterError,
  readChoice,
  readLimit,
} from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import { formatIso } from '../lib/time.ts';
import type { AreaCatalog } from './areaCatalog.memory.ts';
import { EXAMPLE_CIRCLE, ONE_AREA } from './areaView.ts';

const { dwellSeconds } = EXAMPLE_CIRCLE.definition;
const STAY = { areaId: EXAMPLE_CIRCLE.id, device: EXAMPLE_VAN };
const LAST_MS = EXAMPLE_VAN.position.recordedAtMs;
const ENTERED = { ...STAY, insideSinceMs: LAST_MS - 500_000, confirmedAtMs: LAST_MS - 150_000 };
const PENDING = { ...STAY, insideSinceMs: LAST_MS - 45_000, confirmedAtMs: null };
const PAGE_META = { pagination: { limit: LIST_LIMIT.fallback, offset: 0, count: 1 }, total: 1 };

type OccupantView = ReturnType<typeof occupantView>;

export const AREA_DEVICE_SCHEMAS = {
  AreaDevice: shapeOf<OccupantView>({
    device: shapeOf<OccupantView['device']>(DEVICE_NAMES),
    since: time('The GPS time of the first point inside.'),
    entered_at: nullable(time('The GPS time of the point that made the entry; null while it is pending.')),
    dwell_left_seconds: number(
      'GPS time from the newest point until the entry is made, if the device stays; 0 once it is.',
      { minimum: 0 },
    ),
    last_point_at: time('The GPS time of the newest point of the device.'),
  }),
};

const OCCUPANT_STATE = choiceParameter(
  'state',
  OCCUPANT_STATES,
  '`inside`: only devices whose entry is made. `pending`: only those that have not stayed for `dwell_seconds` yet.',
  'all',
);

const AREA_DEVICES: Operation = {
  id: 'listAreaDevices',
  tag: 'Areas',
  summary: 'List the devices that are in an area',
  description:
    'By the stays that produce entries and exits: GPS points and the minimum stay, so a device is in the area until its next point says otherwise. Those that the key can see, longest stay first, then by IMEI. `meta.total` counts all of the state.',
  parameters: [OCCUPANT_STATE, LIST_LIMIT, OFFSET],
  answers: [
    answered(
      200,
      'A page of devices.',
      envelope(
        list(ref('AreaDevice')),
        pageMeta({ total: integer('How many devices there are in this state.', { minimum: 0 }) }),
      ),
      {
        inside: dataBody([occupantView(ENTERED, dwellSeconds, EXAMPLE_NOW_MS)], PAGE_META),
        pending: dataBody([occupantView(PENDING, 120, EXAMPLE_NOW_MS)], PAGE_META),
      },
    ),
  ],
  errors: [...ONE_AREA, ['BAD_REQUEST', OCCUPANT_STATE.errorMessage]],
};

interface AreaDevicesPorts {
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
    isFromMemory: true,
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

/** A device in an area, whose minimum stay is `dwellSeconds`. */
function occupantView(occupant: Occupant, dwellSeconds: number, nowMs: number) {
  const { device, insideSinceMs, confirmedAtMs } = occupant;
  const { imei, name, plate } = device.fields;
  return {
    device: { id: imei, imei, name, plate, status: statusOf(device.position, nowMs) },
    since: formatIso(insideSinceMs),
    entered_at: confirmedAtMs === null ? null : formatIso(confirmedAtMs),
    dwell_left_seconds: dwellLeftSeconds(occupant, dwellSeconds),
    last_point_at: formatIso(device.position?.recordedAtMs ?? insideSinceMs),
  };
}
