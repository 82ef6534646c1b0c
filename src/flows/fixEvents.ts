import { deviceEventData, deviceEventMessage } from '../engine/deviceEventView.ts';
import type { BatchEntry, DeviceEventAt } from '../engine/evaluateBatch.ts';
import type { GeofenceEventOf } from '../engine/evaluateGeofences.ts';
import { geofenceEventData, geofenceEventMessage } from '../engine/geofenceEventView.ts';
import type { Fleet } from '../memory/fleet.ts';
import type { NewFleetEvent } from '../store/fleetEvents.ts';
import type { LockedTrack } from '../store/tracks.ts';

/** An event that the engine has told, with what it is sorted by. */
type Told = { readonly deviceId: number; readonly occurredAtMs: number } & (
  | { readonly own: DeviceEventAt['event'] }
  | { readonly geofence: GeofenceEventOf['event'] }
);

/**
 * The events of a batch as they are stored, in the order of production: by device, then time; of one point what
 * concerns the device alone first, then exits, then entries. Each is made when it is asked for: thousands of them are
 * stored a few at a time.
 */
export function* fixEvents(
  fleet: Fleet,
  batch: readonly BatchEntry[],
  ofDevices: readonly DeviceEventAt[],
  ofGeofences: readonly GeofenceEventOf[],
  locked: ReadonlyMap<number, LockedTrack>,
): Generator<NewFleetEvent, void, undefined> {
  if (ofDevices.length + ofGeofences.length === 0) return;
  const imeis = new Map(batch.map((entry) => [entry.deviceId, entry.fix.imei]));
  const told = [
    ...ofDevices.map(({ deviceId, occurredAtMs, event }): Told => ({ deviceId, occurredAtMs, own: event })),
    ...ofGeofences.map(
      ({ deviceId, event }): Told => ({ deviceId, occurredAtMs: event.occurredAtMs, geofence: event }),
    ),
  ];
  // Both lists are in the order of the points already, and sorting keeps the order of equals.
  told.sort((a, b) => a.deviceId - b.deviceId || a.occurredAtMs - b.occurredAtMs);
  for (const each of told) {
    const { deviceId, occurredAtMs } = each;
    const imei = imeis.get(deviceId) as string;
    const fields = fleet.anyDevice(imei)?.fields;
    const label = fields?.name ?? fields?.plate ?? imei;
    if ('own' in each) {
      const { worldId } = locked.get(deviceId) as LockedTrack;
      const { own } = each;
      const message = deviceEventMessage(own, label);
      yield { worldId, deviceId, imei, type: own.type, message, data: deviceEventData(own), occurredAtMs };
    } else {
      const { geofence } = each;
      yield {
        worldId: geofence.worldId,
        deviceId,
        imei,
        type: 'geofence',
        message: geofenceEventMessage(geofence, label),
        data: geofenceEventData(geofence),
        occurredAtMs,
        area: { id: geofence.areaId, direction: geofence.direction },
      };
    }
  }
}
