import { scopeMask } from '../access/scopes.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { answered, bodyOf } from '../http/openapi/operation.ts';
import { envelope, page, ref } from '../http/openapi/schema.ts';
import { LIST_LIMIT, OFFSET, offsetOf, readLimit } from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import type { Device } from './device.ts';
import { DeviceTexts, deviceJson, latestLocationJson } from './device.ts';
import {
  EXAMPLE_NOW_MS,
  EXAMPLE_SILENT_DEVICE,
  EXAMPLE_VAN,
  imeiError,
  ONE_DEVICE,
} from './deviceSchemas.ts';
import type { Fleet } from './fleet.memory.ts';

const EXAMPLE_JSON = deviceJson(EXAMPLE_VAN, EXAMPLE_NOW_MS);
const SILENT_JSON = deviceJson(EXAMPLE_SILENT_DEVICE, EXAMPLE_NOW_MS);

const LIST_DEVICES: Operation = {
  id: 'listDevices',
  tag: 'Devices',
  summary: 'List devices',
  description: 'Every device that the key can see, by IMEI.',
  parameters: [LIST_LIMIT, OFFSET],
  answers: [
    answered(200, 'A page of devices.', page(ref('Device')), {
      devices: bodyOf(pageAnswer(`[${EXAMPLE_JSON},${SILENT_JSON}]`, 50, 0, 2)),
    }),
  ],
};

const GET_DEVICE: Operation = {
  id: 'getDevice',
  tag: 'Devices',
  summary: 'Read one device',
  answers: [
    answered(200, 'The device.', envelope(ref('Device')), {
      'on its way': bodyOf(jsonAnswer(EXAMPLE_JSON)),
      'never heard of': bodyOf(jsonAnswer(SILENT_JSON)),
    }),
  ],
  errors: ONE_DEVICE,
};

const GET_LOCATION: Operation = {
  id: 'getLatestLocation',
  tag: 'Devices',
  summary: 'Read the latest position of a device',
  answers: [
    answered(200, 'The position.', envelope(ref('LatestLocation')), {
      position: bodyOf(jsonAnswer(latestLocationJson(EXAMPLE_VAN.position))),
    }),
  ],
  errors: [...ONE_DEVICE, 'LOCATION_NOT_FOUND'],
};

/** With every one in use about 60 MB. */
const TEXT_SLOTS = 2 ** 17;

/** Device list, detail and latest location: answered from memory. */
export function deviceRoutes(fleet: Fleet): Route[] {
  const texts = new DeviceTexts(deviceJson, TEXT_SLOTS);
  return [
    {
      method: 'GET',
      path: '/devices',
      scopes: scopeMask('read_devices'),
      versions: BOTH_VERSIONS,
      isFromMemory: true,
      describe: LIST_DEVICES,
      handle: (call) => list(fleet, texts, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei',
      scopes: scopeMask('read_devices'),
      versions: BOTH_VERSIONS,
      isFromMemory: true,
      describe: GET_DEVICE,
      handle: (call) => found(fleet, call, (device) => jsonAnswer(deviceJson(device, call.nowMs))),
    },
    {
      method: 'GET',
      path: '/devices/:imei/location',
      scopes: scopeMask('read_locations'),
      versions: BOTH_VERSIONS,
      isFromMemory: true,
      describe: GET_LOCATION,
      handle: (call) => found(fleet, call, shownLocation),
    },
  ];
}

function list(fleet: Fleet, texts: DeviceTexts, { caller, query, nowMs }: Call) {
  const limit = readLimit(query, LIST_LIMIT);
  const offset = offsetOf(query);
  const devices = fleet.page(caller.worldIds, offset, limit);
  let data = '';
  for (const device of devices) data += (data === '' ? '[' : ',') + texts.text(device, nowMs);
  return pageAnswer(data === '' ? '[]' : `${data}]`, limit, offset, devices.length);
}

function pageAnswer(dataJson: string, limit: number, offset: number, count: number) {
  return jsonAnswer(dataJson, `{"pagination":{"limit":${limit},"offset":${offset},"count":${count}}}`);
}

function found(fleet: Fleet, { caller, params }: Call, show: (device: Device) => Answer): Answer {
  const imei = params['imei'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return error;
  const device = fleet.device(caller.worldIds, imei);
  return device === undefined ? errorAnswer('DEVICE_NOT_FOUND') : show(device);
}

function shownLocation({ position }: Device): Answer {
  return position === null ? errorAnswer('LOCATION_NOT_FOUND') : jsonAnswer(latestLocationJson(position));
}
