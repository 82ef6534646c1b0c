import { scopeMask } from '../access/scopes.ts';
import type { Fleet } from '../memory/fleet.ts';
import { dataAnswer, errorAnswer, listAnswer } from './answer.ts';
import { refuseImei } from './imei.ts';
import { clampedInt, offsetOf } from './query.ts';
import { BOTH_VERSIONS, type Call, type Route } from './route.ts';
import { deviceView, latestLocationView } from './views.ts';

const LIST_LIMIT_MAX = 200;
const LIST_LIMIT_DEFAULT = 50;

/** Device list, detail and latest location: answered from memory. */
export function deviceRoutes(fleet: Fleet): Route[] {
  return [
    {
      method: 'GET',
      path: '/devices',
      scopes: scopeMask('read_devices'),
      versions: BOTH_VERSIONS,
      handle: (call) => list(fleet, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei',
      scopes: scopeMask('read_devices'),
      versions: BOTH_VERSIONS,
      handle: (call) => detail(fleet, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei/location',
      scopes: scopeMask('read_locations'),
      versions: BOTH_VERSIONS,
      handle: (call) => location(fleet, call),
    },
  ];
}

function list(fleet: Fleet, { caller, query, nowMs }: Call) {
  const limit = clampedInt(query['limit'], 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT);
  const offset = offsetOf(query);
  const devices = fleet.page(caller.worldIds, offset, limit);
  return listAnswer(
    devices.map((device) => deviceView(device, nowMs)),
    { limit, offset },
  );
}

function detail(fleet: Fleet, { caller, params, nowMs }: Call) {
  const imei = params['imei'] ?? '';
  const refusal = refuseImei(imei);
  if (refusal !== null) return refusal;
  const device = fleet.device(caller.worldIds, imei);
  return device === undefined ? errorAnswer('DEVICE_NOT_FOUND') : dataAnswer(deviceView(device, nowMs));
}

function location(fleet: Fleet, { caller, params }: Call) {
  const imei = params['imei'] ?? '';
  const refusal = refuseImei(imei);
  if (refusal !== null) return refusal;
  const device = fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  if (device.position === null) return errorAnswer('LOCATION_NOT_FOUND');
  return dataAnswer(latestLocationView(device.position));
}
