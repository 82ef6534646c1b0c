import type { LatLng } from '../geo/latLng.ts';
import { formatIso } from '../lib/isoTime.ts';

/** `data` of a device event on the wire: always the position, and what the type needs. */
export type DeviceEventData = { readonly position: LatLng } & (
  | { readonly ignition: boolean }
  | { readonly parked_at: string }
  | { readonly alarm: string }
  | { readonly rfid: string }
);

/** A device event → its `data` on the wire. */
export function deviceEventData(event: DeviceEvent): DeviceEventData {
  const { position } = event;
  switch (event.type) {
    case 'ignition_on':
    case 'ignition_off':
      return { position, ignition: event.type === 'ignition_on' };
    case 'parking_start':
    case 'parking_end':
      return { position, parked_at: formatIso(event.parkedAtMs) };
    case 'tamper_alert':
    case 'alarm':
      return { position, alarm: event.alarm };
    case 'rfid':
      return { position, rfid: event.rfid };
  }
}

/** One sentence for a person; `deviceLabel` is the device's name, or its plate or IMEI when it has none. */
export function deviceEventMessage(event: DeviceEvent, deviceLabel: string): string {
  switch (event.type) {
    case 'ignition_on':
      return `${deviceLabel} switched its ignition on`;
    case 'ignition_off':
      return `${deviceLabel} switched its ignition off`;
    case 'parking_start':
      return `${deviceLabel} has parked`;
    case 'parking_end':
      return `${deviceLabel} is on its way again`;
    case 'tamper_alert':
      return `${deviceLabel} reports tampering: ${event.alarm}`;
    case 'alarm':
      return `${deviceLabel} raised an alarm: ${event.alarm}`;
    case 'rfid':
      return `${deviceLabel} read the tag ${event.rfid}`;
  }
}

/** Something that one point shows about its device; `position` is the point's. */
export type DeviceEvent = { readonly position: LatLng } & (
  | { readonly type: 'ignition_on' | 'ignition_off' }
  | { readonly type: 'parking_start' | 'parking_end'; readonly parkedAtMs: number }
  | { readonly type: 'tamper_alert' | 'alarm'; readonly alarm: string }
  | { readonly type: 'rfid'; readonly rfid: string }
);
