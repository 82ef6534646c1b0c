import type { Fix } from '../../../src/ingest/fix.ts';

/** A fix at rest near Rome; `values` say what is different. */
export function fixOf(imei: string, recordedAtMs: number, values: Partial<Fix> = {}): Fix {
  return {
    imei,
    recordedAtMs,
    sentAtMs: null,
    lat: 41.9,
    lng: 12.5,
    altitudeM: 0,
    speedKmh: 30,
    heading: 0,
    satellites: 0,
    odometerKm: null,
    ignition: null,
    alarms: [],
    rfid: null,
    ...values,
  };
}
