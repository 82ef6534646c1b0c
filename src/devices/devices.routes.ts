import { scopeMask } from '../access/scopes.ts';
import { errorAnswer, jsonAnswer, listAnswer } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/operation.ts';
import { envelope, page, ref } from '../http/openapi/schema.ts';
import { LIST_LIMIT, OFFSET, offsetOf, readLimit } from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import type { Device, DeviceFields, LatestPosition } from './device.ts';
import { deviceJson, latestLocationJson, statusOf } from './deviceJson.ts';
import {
  deviceView,
  EXAMPLE_NOW_MS,
  EXAMPLE_SILENT_DEVICE,
  EXAMPLE_VAN,
  latestLocationView,
} from './deviceSchemas.ts';
import type { Fleet } from './fleet.memory.ts';
import { imeiError, ONE_DEVICE } from './imei.ts';

export const LIST_DEVICES: Operation = {
  id: 'listDevices',
  tag: 'Devices',
  summary: 'List devices',
  description: 'Every device that the key can see, by IMEI.',
  parameters: [LIST_LIMIT, OFFSET],
  answers: [
    answered(200, 'A page of devices.', page(ref('Device')), {
      devices: bodyOf(
        listAnswer(
          [EXAMPLE_VAN, EXAMPLE_SILENT_DEVICE].map((device) => deviceView(device, EXAMPLE_NOW_MS)),
          { limit: 50, offset: 0 },
        ),
      ),
    }),
  ],
};

export const GET_DEVICE: Operation = {
  id: 'getDevice',
  tag: 'Devices',
  summary: 'Read one device',
  answers: [
    answered(200, 'The device.', envelope(ref('Device')), {
      'on its way': dataBody(deviceView(EXAMPLE_VAN, EXAMPLE_NOW_MS)),
      'never heard of': dataBody(deviceView(EXAMPLE_SILENT_DEVICE, EXAMPLE_NOW_MS)),
    }),
  ],
  errors: ONE_DEVICE,
};

export const GET_LOCATION: Operation = {
  id: 'getLatestLocation',
  tag: 'Devices',
  summary: 'Read the latest position of a device',
  answers: [
    answered(200, 'The position.', envelope(ref('LatestLocation')), {
      position: dataBody(latestLocationView(EXAMPLE_VAN.position)),
    }),
  ],
  errors: [...ONE_DEVICE, 'LOCATION_NOT_FOUND'],
};

/** Device list, detail and latest location: answered from memory. */
export function deviceRoutes(fleet: Fleet): Route[] {
  const texts = new DeviceJsonCache();
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
      handle: (call) => detail(fleet, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei/location',
      scopes: scopeMask('read_locations'),
      versions: BOTH_VERSIONS,
      isFromMemory: true,
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

/** A power of two. With every slot in use about 60 MB. */
const SLOTS = 2 ** 17;

/** What a text was made of: memory replaces fields and position as a whole, so the same object means the same text. */
interface Kept {
  readonly fields: DeviceFields;
  readonly position: LatestPosition | null;
  readonly status: string;
  readonly text: string;
}

/**
 * Caches the JSON of devices that were in lists. Most devices of a list have not changed since the last call, and
 * making a text takes ten times as long as finding it here. The id of a device determines its slot; devices with the
 * same slot replace each other.
 */
export class DeviceJsonCache {
  readonly #kept: (Kept | undefined)[] = new Array(SLOTS).fill(undefined);

  json(device: Device, nowMs: number): string {
    const { fields, position } = device;
    const slot = fields.id & (SLOTS - 1);
    const kept = this.#kept[slot];
    const status = statusOf(position, nowMs);
    if (kept?.fields === fields && kept.position === position && kept.status === status) return kept.text;
    // Joined from pieces, a string is a tree of them until it is copied into one.
    const text = Buffer.from(deviceJson(device, nowMs)).toString();
    this.#kept[slot] = { fields, position, status, text };
    return text;
  }
}
