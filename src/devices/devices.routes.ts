import { scopeMask } from '../access/scopes.ts';
import { type Answer, errorAnswer, jsonAnswer } from '../http/answer.ts';
import type { BulkCalls } from '../http/bulkCalls.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { answered, bodyOf } from '../http/openapi/operation.ts';
import { envelope, integer, list, PAGINATION, ref, shapeOf } from '../http/openapi/schema.ts';
import { LIST_LIMIT, OFFSET, offsetOf, readLimit } from '../http/parameters.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import type { AtOnce } from '../lib/workTurns.ts';
import type { Device } from './device.ts';
import { deviceJson, latestLocationJson } from './device.ts';
import {
  EXAMPLE_NOW_MS,
  EXAMPLE_SILENT_DEVICE,
  EXAMPLE_VAN,
  imeiError,
  ONE_DEVICE,
} from './deviceSchemas.ts';
import type { Fleet } from './fleet.memory.ts';
import {
  type DeviceFilter,
  FILTER_ERRORS,
  FILTERS_AND_SEARCH,
  readFilterAndSearch,
  SEARCH_ERROR,
} from './living/deviceFilter.ts';

const EXAMPLE_JSON = deviceJson(EXAMPLE_VAN, EXAMPLE_NOW_MS);
const SILENT_JSON = deviceJson(EXAMPLE_SILENT_DEVICE, EXAMPLE_NOW_MS);

const LIST_DEVICES: Operation = {
  id: 'listDevices',
  tag: 'Devices',
  summary: 'List devices',
  description:
    'Every device that the key can see, or those that pass all filters, by IMEI. `limit`, `offset` and `count` are of these.',
  parameters: [LIST_LIMIT, OFFSET, ...FILTERS_AND_SEARCH],
  answers: [
    answered(
      200,
      'A page of devices.',
      envelope(
        list(ref('Device')),
        shapeOf<{ pagination: object; total?: number }>(
          {
            pagination: PAGINATION,
            total: integer('How many devices pass the filters. Only there with a filter.', { minimum: 0 }),
          },
          { optional: ['total'] },
        ),
      ),
      {
        devices: bodyOf(jsonAnswer(`[${EXAMPLE_JSON},${SILENT_JSON}]`, pageMeta(50, 0, 2))),
        'status=moving': bodyOf(jsonAnswer(`[${EXAMPLE_JSON}]`, pageMeta(50, 0, 1, 1))),
      },
    ),
  ],
  errors: [...FILTER_ERRORS, SEARCH_ERROR, 'TOO_COMPLEX'],
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

export interface DevicePorts {
  readonly fleet: Fleet;
  readonly bulkCalls: BulkCalls;
  /** By account. */
  readonly atOnce: Pick<AtOnce<string | number>, 'run'>;
}

/** Device list, detail and latest location: answered from memory. */
export function deviceRoutes(ports: DevicePorts): Route[] {
  const { fleet } = ports;
  return [
    {
      method: 'GET',
      path: '/devices',
      scopes: scopeMask('read_devices'),
      isOpenToGroups: true,
      versions: BOTH_VERSIONS,
      shedAs: 'bulk',
      isFromMemory: true,
      describe: LIST_DEVICES,
      handle: (call) => listDevices(ports, call),
    },
    {
      method: 'GET',
      path: '/devices/:imei',
      scopes: scopeMask('read_devices'),
      isOpenToGroups: true,
      versions: BOTH_VERSIONS,
      shedAs: 'poll',
      isFromMemory: true,
      describe: GET_DEVICE,
      handle: (call) => found(fleet, call, (device) => jsonAnswer(deviceJson(device, call.nowMs))),
    },
    {
      method: 'GET',
      path: '/devices/:imei/location',
      scopes: scopeMask('read_locations'),
      isOpenToGroups: true,
      versions: BOTH_VERSIONS,
      shedAs: 'poll',
      isFromMemory: true,
      describe: GET_LOCATION,
      handle: (call) => found(fleet, call, shownLocation),
    },
  ];
}

function listDevices(ports: DevicePorts, call: Call): Answer | Promise<Answer> {
  const { caller, query, nowMs } = call;
  const filter = readFilterAndSearch(query, caller.worldIds);
  if (!filter.ok) return filter.error;
  if (filter.value !== null) return listFiltered(ports, call, filter.value);
  const limit = readLimit(query, LIST_LIMIT);
  const offset = offsetOf(query);
  const devices = ports.fleet.page(caller.worldIds, offset, limit);
  const after = `],"meta":${pageMeta(limit, offset, devices.length)}}`;
  return { status: 200, body: ports.fleet.texts.list(devices, nowMs, '{"data":[', after) };
}

function listFiltered(
  { fleet, bulkCalls, atOnce }: DevicePorts,
  { caller, query, nowMs }: Call,
  filter: DeviceFilter,
): Answer | Promise<Answer> {
  const { accountId, worldIds } = caller;
  const page = { offset: offsetOf(query), limit: readLimit(query, LIST_LIMIT) };
  const listed: string[] = [];
  const show = (device: Device) => listed.push(fleet.texts.text(device, nowMs));
  const steps = fleet.living.list(worldIds, filter, nowMs, page, show);
  const answer = (total: number): Answer =>
    jsonAnswer(`[${listed.join(',')}]`, pageMeta(page.limit, page.offset, listed.length, total));
  // Of most fleets the first step is the only one.
  const goOn = (step: IteratorResult<undefined, number>): Answer | Promise<Answer> =>
    step.done === true ? answer(step.value) : bulkCalls.run(accountId, () => steps).then(answer);
  const first = atOnce.run(accountId, () => steps.next());
  return first instanceof Promise ? first.then(goOn) : goOn(first);
}

/** `total`: how many there are on all pages; null: not counted. */
function pageMeta(limit: number, offset: number, count: number, total: number | null = null): string {
  const pagination = `"pagination":{"limit":${limit},"offset":${offset},"count":${count}}`;
  return total === null ? `{${pagination}}` : `{${pagination},"total":${total}}`;
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
