import { distanceM } from '../geo/distance.ts';
import type { Device, NearDevice } from './device.ts';

// A small fleet. Every example is made of it by the views of the service, so the description shows what the service
// would answer about these vehicles.

export const EXAMPLE_NOW_MS = Date.UTC(2026, 2, 2, 8, 15, 30);
export const WORLD_ID = 1;
export const EXAMPLE_IMEI = '356938035643809';
/** Where the nearest vehicles are asked for: a square in Rome. */
export const EXAMPLE_POINT = { lat: 41.9028, lng: 12.4964 };

export const EXAMPLE_VAN: Device & { readonly position: NonNullable<Device['position']> } = {
  fields: {
    id: 1,
    imei: EXAMPLE_IMEI,
    worldId: WORLD_ID,
    name: 'Van 12',
    plate: 'GA 731 KL',
    model: 'FMB920',
    groups: ['north', 'refrigerated'],
    editedAtMs: Date.UTC(2026, 0, 12, 9),
  },
  position: {
    recordedAtMs: Date.UTC(2026, 2, 2, 8, 15, 21),
    lat: 41.905,
    lng: 12.4823,
    altitudeM: 31,
    speedKmh: 37.5,
    odometerKm: 48211.4,
    movedAtMs: Date.UTC(2026, 2, 2, 8, 15, 22, 104),
  },
};

/** Known by its IMEI only, and never heard of. */
export const EXAMPLE_SILENT_DEVICE: Device = {
  fields: {
    id: 2,
    imei: '356938035643817',
    worldId: WORLD_ID,
    name: null,
    plate: null,
    model: null,
    groups: [],
    editedAtMs: Date.UTC(2026, 2, 1, 16, 40),
  },
  position: null,
};

export const { lat, lng } = EXAMPLE_VAN.position;

export const EXAMPLE_NEAR: NearDevice = {
  device: EXAMPLE_VAN,
  distanceM: distanceM(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng, lat, lng),
};
