import { ID, LATITUDE, LONGITUDE, SPEED_KMH } from '../http/openapi/commonSchemas.ts';
import {
  choice,
  list,
  nullable,
  number,
  patternOf,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import type { commandView } from './commands.routes.ts';
import { COMMAND_STATUSES } from './commands.sql.ts';
import { DEVICE_STATUSES } from './deviceStatus.ts';
import type { deviceView, latestLocationView, nearestView } from './deviceViews.ts';
import { IMEI } from './imei.ts';

const IMEI_TEXT: Schema = text('14 to 17 digits.', { pattern: patternOf(IMEI) });

type DeviceView = ReturnType<typeof deviceView>;

/** The position that devices carry. */
export const LOCATION: Schema = shapeOf<NonNullable<DeviceView['location']>>({
  latitude: LATITUDE,
  longitude: LONGITUDE,
  speed_kmh: SPEED_KMH,
  recorded_at: time('The GPS time of the point.'),
});

/** What a device is called, in the list, among the nearest and in an area. */
export const DEVICE_NAMES = {
  id: text('Equal to `imei`.'),
  imei: IMEI_TEXT,
  name: nullable(text()),
  plate: nullable(text('License plate.')),
  status: choice(
    DEVICE_STATUSES,
    'unknown: no position; parked: under 5 km/h and at most 24 hours old; moving: 5 km/h or more and at most 10 minutes old; offline: anything else.',
  ),
};

export const DEVICE_SCHEMAS = {
  Device: shapeOf<DeviceView>({
    ...DEVICE_NAMES,
    device_model: nullable(text('Hardware model.')),
    odometer_km: nullable(number()),
    groups: list(text(), { description: 'The groups that the device belongs to.' }),
    location: { ...nullable(LOCATION), description: 'null when no position is known.' },
    updated_at: nullable(time('When the server last moved or edited the device.')),
  }),
  NearDevice: shapeOf<ReturnType<typeof nearestView>>({
    ...DEVICE_NAMES,
    location: nullable(LOCATION),
    distance_km: number('Straight-line distance in kilometres.', { minimum: 0 }),
  }),
  LatestLocation: shapeOf<ReturnType<typeof latestLocationView>>({
    latitude: LATITUDE,
    longitude: LONGITUDE,
    altitude_m: number('Metres.'),
    speed_kmh: SPEED_KMH,
    recorded_at: time('The GPS time of the point.'),
  }),
  Command: shapeOf<ReturnType<typeof commandView>>({
    id: ID,
    type: text('Such as `reboot` or `engine_stop`.'),
    status: choice(COMMAND_STATUSES),
    queued_at: time(),
    sent_at: nullable(time('null while it is not yet sent.')),
  }),
};
