import { deviceEventData, deviceEventMessage } from '../engine/deviceEventView.ts';
import type { BatchEntry, DeviceEventAt } from '../engine/evaluateBatch.ts';
import type { GeofenceEventOf } from '../engine/evaluateGeofences.ts';
import { geofenceEventData, geofenceEventMessage } from '../engine/geofenceEventView.ts';
import type { Fleet } from '../memory/fleet.ts';
import type { NewFleetEvent } from '../store/fleetEvents.ts';
import type { LockedTrack } from '../store/tracks.ts';

/**
 * The events of a batch as they are stored, in the order of production: by device, then time; of one point what
 * concerns the device alone first, then exits, then entries.
 */
export function fixEvents(
  fleet: Fleet,
  batch: readonly BatchEntry[],
  ofDevices: readonly DeviceEventAt[],
  ofGeofences: readonly GeofenceEventOf[],
  locked: ReadonlyMap<number, LockedTrack>,
): NewFleetEvent[] {
  const imeis = new Map(batch.map((entry) => [entry.deviceId, entry.fix.imei]));
  const deviceOf = (deviceId: number) => {
    const imei = imeis.get(deviceId) as string;
    const fields = fleet.anyDevice(imei)?.fields;
    return { deviceId, imei, label: fields?.name ?? fields?.plate ?? imei };
  };
  const own = ofDevices.map(({ deviceId, occurredAtMs, event }): NewFleetEvent => {
    const { imei, label } = deviceOf(deviceId);
    return {
      worldId: (locked.get(deviceId) as LockedTrack).worldId,
      deviceId,
      imei,
      type: event.type,
      message: deviceEventMessage(event, label),
      data: deviceEventData(event),
      occurredAtMs,
    };
  });
  const geofence = ofGeofences.map(({ deviceId, event }): NewFleetEvent => {
    const { imei, label } = deviceOf(deviceId);
    return {
      worldId: event.worldId,
      deviceId,
      imei,
      type: 'geofence',
      message: geofenceEventMessage(event, label),
      data: geofenceEventData(event),
      occurredAtMs: event.occurredAtMs,
      area: { id: event.areaId, direction: event.direction },
    };
  });
  // Both lists are in the order of the points already, and sorting keeps the order of equals.
  return [...own, ...geofence].sort((a, b) => a.deviceId - b.deviceId || a.occurredAtMs - b.occurredAtMs);
}
