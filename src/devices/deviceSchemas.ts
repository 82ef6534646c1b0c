import { distanceM } from '../geo/wgs84.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import type { DescribedError } from '../http/openapi/operation.ts';
import {
  choice,
  LATITUDE,
  LONGITUDE,
  list,
  nullable,
  number,
  type Schema,
  SPEED_KMH,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import type { Parameter } from '../http/parameters.ts';
import { isBlank } from '../http/parameters.ts';
import { DEVICE_STATUSES, Device, IMEI, isImei, type LatestPosition, type NearDevice } from './device.ts';

/** The position that devices carry. */
export const LOCATION: Schema = shapeOf({
  latitude: LATITUDE,
  longitude: LONGITUDE,
  speed_kmh: SPEED_KMH,
  recorded_at: time('The GPS time of the point.'),
});

/** What a device is called, in the list, among the nearest and in an area. */
export const DEVICE_NAMES = {
  id: text('Equal to `imei`.'),
  imei: text('14 to 17 digits.', { pattern: IMEI.source }),
  name: nullable(text()),
  plate: nullable(text('License plate.')),
  status: choice(
    DEVICE_STATUSES,
    'unknown: no position; parked: under 5 km/h and at most 24 hours old; moving: 5 km/h or more and at most 10 minutes old; offline: anything else.',
  ),
};

export const DEVICE_SCHEMAS = {
  Device: shapeOf({
    ...DEVICE_NAMES,
    device_model: nullable(text('Hardware model.')),
    odometer_km: nullable(number()),
    groups: list(text(), { description: 'The groups that the device belongs to.' }),
    location: { ...nullable(LOCATION), description: 'null when no position is known.' },
    updated_at: nullable(time('When the server last moved or edited the device.')),
  }),
  NearDevice: shapeOf({
    ...DEVICE_NAMES,
    location: nullable(LOCATION),
    distance_km: number('Straight-line distance in kilometres.', { minimum: 0 }),
  }),
  LatestLocation: shapeOf({
    latitude: LATITUDE,
    longitude: LONGITUDE,
    altitude_m: number('Metres.'),
    speed_kmh: SPEED_KMH,
    recorded_at: time('The GPS time of the point.'),
  }),
};

// A small fleet. Every example of the description is made from it as the service would answer about these vehicles.

export const EXAMPLE_NOW_MS = Date.UTC(2026, 2, 2, 8, 15, 30);
export const WORLD_ID = 1;
export const EXAMPLE_IMEI = '356938035643809';
/** Where the nearest vehicles are asked for: a square in Rome. */
export const EXAMPLE_POINT = { lat: 41.9028, lng: 12.4964 };

const VAN_POSITION: LatestPosition = {
  recordedAtMs: Date.UTC(2026, 2, 2, 8, 15, 21),
  lat: 41.905,
  lng: 12.4823,
  altitudeM: 31,
  speedKmh: 37.5,
  odometerKm: 48211.4,
  movedAtMs: Date.UTC(2026, 2, 2, 8, 15, 22, 104),
};

export const EXAMPLE_VAN = Device.of(
  {
    id: 1,
    imei: EXAMPLE_IMEI,
    worldId: WORLD_ID,
    name: 'Van 12',
    plate: 'GA 731 KL',
    model: 'FMB920',
    groups: ['north', 'refrigerated'],
    editedAtMs: Date.UTC(2026, 0, 12, 9),
  },
  VAN_POSITION,
) as Device & { readonly position: LatestPosition };

/** Known by its IMEI only, and never heard of. */
export const EXAMPLE_SILENT_DEVICE = Device.of(
  {
    id: 2,
    imei: '356938035643817',
    worldId: WORLD_ID,
    name: null,
    plate: null,
    model: null,
    groups: [],
    editedAtMs: Date.UTC(2026, 2, 1, 16, 40),
  },
  null,
);

export const { lat, lng } = EXAMPLE_VAN.position;

export const EXAMPLE_NEAR: NearDevice = {
  device: EXAMPLE_VAN,
  distanceM: distanceM(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng, lat, lng),
};

export const DEVICE: Parameter = {
  name: 'device',
  in: 'query',
  required: false,
  description: 'The IMEI of one device. An unknown one gives an empty list.',
  schema: { type: 'string', pattern: IMEI.source },
};

/** The error of a malformed IMEI, before any lookup; null when it is well formed. */
export function imeiError(imei: string): Answer | null {
  if (isBlank(imei)) return errorAnswer('IMEI_REQUIRED');
  return isImei(imei) ? null : errorAnswer('BAD_REQUEST', IMEI_MESSAGE);
}

/** What is answered to an IMEI in another form. */
export const IMEI_MESSAGE = 'an IMEI has 14 to 17 digits';

/** The errors of a route about one device. */
export const ONE_DEVICE: readonly DescribedError[] = [
  ['BAD_REQUEST', IMEI_MESSAGE],
  'IMEI_REQUIRED',
  'DEVICE_NOT_FOUND',
];
