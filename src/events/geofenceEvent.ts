import type { LatLng } from '../geo/latLng.ts';
import { formatIso } from '../lib/isoTime.ts';

/** `data` of a geofence event on the wire, in the keys of v3. */
export type GeofenceEventData = {
  readonly position: LatLng;
  readonly areaId: number;
  readonly areaName: string;
  readonly event: GeofenceEvent['direction'];
  readonly enteredAt: string;
  readonly dwellSeconds: number;
  /** On exits only. */
  readonly staySeconds?: number;
};

/** A geofence event → its `data` on the wire. */
export function geofenceEventData(event: GeofenceEvent): GeofenceEventData {
  const data = {
    position: event.position,
    areaId: event.areaId,
    areaName: event.areaName,
    event: event.direction,
    enteredAt: formatIso(event.enteredAtMs),
    dwellSeconds: event.dwellSeconds,
  };
  return event.direction === 'exit' ? { ...data, staySeconds: event.staySeconds } : data;
}

/** One sentence for a person; `deviceLabel` is the device's name, or its plate or IMEI when it has none. */
export function geofenceEventMessage(event: GeofenceEvent, deviceLabel: string): string {
  return `${deviceLabel} ${event.direction === 'entry' ? 'entered' : 'left'} ${event.areaName}`;
}

/** A device entered or left an area, as one of its points shows. */
export type GeofenceEvent = {
  /** The world that may read it. */
  readonly worldId: number;
  readonly areaId: number;
  readonly areaName: string;
  /** The first inside point of the stay. */
  readonly enteredAtMs: number;
  /** The area's threshold at this point. */
  readonly dwellSeconds: number;
  /** Position and time are those of the point that confirmed the entry, or of the first point outside. */
  readonly position: LatLng;
  readonly occurredAtMs: number;
} & (
  | { readonly direction: 'entry' }
  /** staySeconds: from the first point inside to the first outside, to the millisecond. */
  | { readonly direction: 'exit'; readonly staySeconds: number }
);
