import { listAnswer } from '../http/answer.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/body.ts';
import { envelope, LATITUDE, LONGITUDE, page } from '../http/openapi/commonSchemas.ts';
import type { DescribedError, Operation } from '../http/openapi/operation.ts';
import { choice, integer, list, nullable, number, ref, shapeOf } from '../http/openapi/schema.ts';
import {
  COMMAND_STATUS,
  COMMANDS_LIMIT,
  LAT,
  LIST_LIMIT,
  LNG,
  MAX_KM,
  NEAREST_LIMIT,
  OFFSET,
} from '../http/parameters.ts';
import {
  EXAMPLE_COMMANDS,
  EXAMPLE_NEAR,
  EXAMPLE_NOW_MS,
  EXAMPLE_POINT,
  EXAMPLE_SILENT_DEVICE,
  EXAMPLE_VAN,
} from './deviceExamples.ts';
import { commandView, deviceView, latestLocationView, nearestView } from './deviceViews.ts';
import { IMEI_MESSAGE } from './imeiParameter.ts';

/** The errors of a route about one device. */
export const ONE_DEVICE: readonly DescribedError[] = [
  ['BAD_REQUEST', IMEI_MESSAGE],
  'IMEI_REQUIRED',
  'DEVICE_NOT_FOUND',
];

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

export const NEAREST_DEVICES: Operation = {
  id: 'nearestDevices',
  tag: 'Devices',
  summary: 'Find the devices nearest to a coordinate',
  description:
    'Nearest first, by straight-line distance on the ellipsoid. Devices without a position are left out. When there is none within reach, `data` is empty.',
  parameters: [LAT, LNG, NEAREST_LIMIT, MAX_KM],
  answers: [
    answered(
      200,
      'The nearest devices.',
      envelope(
        list(ref('NearDevice')),
        shapeOf<{ query: object; distance: string }>({
          query: shapeOf<{ lat: number; lng: number; limit: number; max_km: number | null }>(
            {
              lat: LATITUDE,
              lng: LONGITUDE,
              limit: integer(undefined, { minimum: NEAREST_LIMIT.min, maximum: NEAREST_LIMIT.max }),
              max_km: nullable(number()),
            },
            { description: 'The parameters as they were used.' },
          ),
          distance: choice(['straight_line_km']),
        }),
      ),
      {
        one: dataBody([nearestView(EXAMPLE_NEAR, EXAMPLE_NOW_MS)], {
          query: { ...EXAMPLE_POINT, limit: 1, max_km: null },
          distance: 'straight_line_km',
        }),
        'none within max_km': dataBody([], {
          query: { ...EXAMPLE_POINT, limit: 1, max_km: 0.5 },
          distance: 'straight_line_km',
        }),
      },
    ),
  ],
  errors: ['COORDINATES_REQUIRED', 'INVALID_COORDINATES', ['BAD_REQUEST', MAX_KM.errorMessage]],
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

export const LIST_COMMANDS: Operation = {
  id: 'listCommands',
  tag: 'Devices',
  summary: 'Read the command queue of a device',
  description: 'Newest first. The queue can only be read: no route sends a command.',
  parameters: [COMMAND_STATUS, COMMANDS_LIMIT],
  answers: [
    answered(200, 'Commands.', page(ref('Command')), {
      queue: bodyOf(listAnswer(EXAMPLE_COMMANDS.map(commandView), { limit: 50, offset: 0 })),
    }),
  ],
  errors: [...ONE_DEVICE, ['BAD_REQUEST', COMMAND_STATUS.errorMessage]],
};
