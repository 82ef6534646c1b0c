import { scopeMask } from '../access/scopes.ts';
import type { Fleet } from '../memory/fleet.ts';
import { errorAnswer, jsonAnswer } from './answer.ts';
import { deviceJson, latestLocationJson } from './deviceJson.ts';
import { DeviceTexts } from './deviceTexts.ts';
import { refuseImei } from './imei.ts';
import { clampedInt, offsetOf } from './query.ts';
import { BOTH_VERSIONS, type Call, type Route } from './route.ts';

const LIST_LIMIT_MAX = 200;
const LIST_LIMIT_DEFAULT = 50;

/** Device list, detail and latest location: answered from memory. */
export function deviceRoutes(fleet: Fleet): Route[] {
  const texts = new DeviceTexts();
  return [
    {
      method: 'GET',
      path: '/devices',
      scopes: scopeMask('read_devices'),
      versions: BOTH_VERSIONS,
      isPolled: true,
      handle: (call) => list(fleet, texts, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei',
      scopes: scopeMask('read_devices'),
      versions: BOTH_VERSIONS,
      isPolled: true,
      handle: (call) => detail(fleet, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei/location',
      scopes: scopeMask('read_locations'),
      versions: BOTH_VERSIONS,
      isPolled: true,
      handle: (call) => location(fleet, call),
    },
  ];
}

function list(fleet: Fleet, texts: DeviceTexts, { caller, query, nowMs }: Call) {
  const limit = clampedInt(query['limit'], 1, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT);
  const offset = offsetOf(query);
  const devices = fleet.page(caller.worldIds, offset, limit);
  let data = '';
  for (const device of devices) data += (data === '' ? '[' : ',') + texts.json(device, nowMs);
  const pagination = `{"limit":${limit},"offset":${offset},"count":${devices.length}}`;
  return jsonAnswer(data === '' ? '[]' : `${data}]`, `{"pagination":${pagination}}`);
}

function detail(fleet: Fleet, { caller, params, nowMs }: Call) {
  const imei = params['imei'] ?? '';
  const refusal = refuseImei(imei);
  if (refusal !== null) return refusal;
  const device = fleet.device(caller.worldIds, imei);
  return device === undefined ? errorAnswer('DEVICE_NOT_FOUND') : jsonAnswer(deviceJson(device, nowMs));
}

function location(fleet: Fleet, { caller, params }: Call) {
  const imei = params['imei'] ?? '';
  const refusal = refuseImei(imei);
  if (refusal !== null) return refusal;
  const device = fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  if (device.position === null) return errorAnswer('LOCATION_NOT_FOUND');
  return jsonAnswer(latestLocationJson(device.position));
}
