import { scopeMask } from '../access/scopes.ts';
import { errorAnswer, jsonAnswer } from '../http/answer.ts';
import { readLimit } from '../http/parameter.ts';
import { LIST_LIMIT } from '../http/parameters.ts';
import { offsetOf } from '../http/query.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { deviceJson, latestLocationJson } from './deviceJson.ts';
import { DeviceJsonCache } from './deviceJsonCache.ts';
import { GET_DEVICE, GET_LOCATION, LIST_DEVICES } from './deviceOperations.ts';
import type { Fleet } from './fleet.memory.ts';
import { imeiError } from './imeiParameter.ts';

/** Device list, detail and latest location: answered from memory. */
export function deviceRoutes(fleet: Fleet): Route[] {
  const texts = new DeviceJsonCache();
  return [
    {
      method: 'GET',
      path: '/devices',
      scopes: scopeMask('read_devices'),
      versions: BOTH_VERSIONS,
      isPolled: true,
      describe: LIST_DEVICES,
      handle: (call) => list(fleet, texts, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei',
      scopes: scopeMask('read_devices'),
      versions: BOTH_VERSIONS,
      isPolled: true,
      describe: GET_DEVICE,
      handle: (call) => detail(fleet, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei/location',
      scopes: scopeMask('read_locations'),
      versions: BOTH_VERSIONS,
      isPolled: true,
      describe: GET_LOCATION,
      handle: (call) => location(fleet, call),
    },
  ];
}

function list(fleet: Fleet, texts: DeviceJsonCache, { caller, query, nowMs }: Call) {
  const limit = readLimit(query, LIST_LIMIT);
  const offset = offsetOf(query);
  const devices = fleet.page(caller.worldIds, offset, limit);
  let data = '';
  for (const device of devices) data += (data === '' ? '[' : ',') + texts.json(device, nowMs);
  const pagination = `{"limit":${limit},"offset":${offset},"count":${devices.length}}`;
  return jsonAnswer(data === '' ? '[]' : `${data}]`, `{"pagination":${pagination}}`);
}

function detail(fleet: Fleet, { caller, params, nowMs }: Call) {
  const imei = params['imei'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return error;
  const device = fleet.device(caller.worldIds, imei);
  return device === undefined ? errorAnswer('DEVICE_NOT_FOUND') : jsonAnswer(deviceJson(device, nowMs));
}

function location(fleet: Fleet, { caller, params }: Call) {
  const imei = params['imei'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return error;
  const device = fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  if (device.position === null) return errorAnswer('LOCATION_NOT_FOUND');
  return jsonAnswer(latestLocationJson(device.position));
}
