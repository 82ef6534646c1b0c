import type { Fleet } from '../devices/fleet.memory.ts';
import type { DeviceEvent } from '../events/deviceEvent.ts';
import { deviceEventData, deviceEventMessage } from '../events/deviceEvent.ts';
import type { NewFleetEvent } from '../events/fleetEvents.sql.ts';
import type { GeofenceEvent } from '../events/geofenceEvent.ts';
import { geofenceEventData, geofenceEventMessage } from '../events/geofenceEvent.ts';
import type { LockedState } from './deviceStates.sql.ts';
import type { BatchPoint, DeviceEventAt } from './evaluateBatch.ts';
import type { GeofenceEventAt } from './geofences/evaluateGeofences.ts';

/** An event of either kind, with what it is sorted by. */
type AnyEvent = { readonly point: BatchPoint; readonly occurredAtMs: number } & (
  | { readonly deviceEvent: DeviceEvent }
  | { readonly geofenceEvent: GeofenceEvent }
);

/**
 * The events of a batch as they are stored, in the order of production: by device, then time; for one point the events
 * of the device itself first, then exits, then entries. Each is made when it is asked for, because thousands of them
 * are stored a few at a time.
 */
export function* fixEvents(
  fleet: Fleet,
  deviceEvents: readonly DeviceEventAt[],
  geofenceEvents: readonly GeofenceEventAt[],
  locked: ReadonlyMap<number, Pick<LockedState, 'worldId'>>,
): Generator<NewFleetEvent, void, undefined> {
  const events: AnyEvent[] = [
    ...deviceEvents.map(({ point, occurredAtMs, event }) => ({ point, occurredAtMs, deviceEvent: event })),
    ...geofenceEvents.map(({ point, event }) => ({
      point,
      occurredAtMs: event.occurredAtMs,
      geofenceEvent: event,
    })),
  ];
  // Both lists are in the order of the points already, and sorting keeps the order of equals.
  events.sort((a, b) => a.point.deviceId - b.point.deviceId || a.occurredAtMs - b.occurredAtMs);
  for (const each of events) {
    const { point, occurredAtMs } = each;
    const { deviceId } = point;
    const { imei } = point.fix;
    const fields = fleet.anyDevice(imei)?.fields;
    const label = fields?.name ?? fields?.plate ?? imei;
    if ('deviceEvent' in each) {
      const { worldId } = locked.get(deviceId) as Pick<LockedState, 'worldId'>;
      const { deviceEvent: event } = each;
      const message = deviceEventMessage(event, label);
      yield {
        worldId,
        deviceId,
        imei,
        type: event.type,
        message,
        data: deviceEventData(event),
        occurredAtMs,
      };
    } else {
      const { geofenceEvent: event } = each;
      yield {
        worldId: event.worldId,
        deviceId,
        imei,
        type: 'geofence',
        message: geofenceEventMessage(event, label),
        data: geofenceEventData(event),
        occurredAtMs,
        area: { id: event.areaId, direction: event.direction },
      };
    }
  }
}
