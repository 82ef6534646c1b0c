import { EVENT_DATA } from '../events/eventView.ts';
import type { EventType } from '../events/fleetEvent.ts';
import { ID } from '../http/openapi/commonSchemas.ts';
import { choice, nullable, ref, type Schema, shapeOf, text, time } from '../http/openapi/schema.ts';
import { PAUSE_REASONS, type PauseReason, WEBHOOK_TYPES, type WebhookType } from './message.ts';

/** What webhooks say of a fleet event beyond its own data. */
const BEYOND = {
  fleet_event_id: { ...ID, description: 'The id of the event in the event list.' },
  device: shapeOf<{ imei: string; name: unknown; plate: unknown }>({
    imei: text(),
    name: nullable(text()),
    plate: nullable(text()),
  }),
  occurred_at: time('The GPS time of the point that produced it.'),
};

/** The body of a delivery of this type. */
function delivered(type: WebhookType, data: Schema): Schema {
  return shapeOf<{ id: string; type: string; created_at: string; data: object }>({
    id: text('Stable per event: discard what arrives a second time.', { pattern: '^evt_[0-9a-f]{32}$' }),
    type: choice([type]),
    created_at: time(),
    data,
  });
}

function fleetEventData(type: EventType, direction?: 'entry' | 'exit'): Schema {
  const { staySeconds, ...data } = EVENT_DATA[type];
  const own = direction === undefined ? data : { ...data, event: choice([direction]) };
  const stay = direction === 'exit' && staySeconds !== undefined ? { staySeconds } : {};
  return shapeOf<Readonly<Record<string, unknown>>>({ ...own, ...stay, ...BEYOND });
}

const PING: Schema = shapeOf<{ message: string; webhook_id: number }>({ message: text(), webhook_id: ID });

const WEBHOOK_PAUSED: Schema = shapeOf<{
  message: string;
  webhook_id: number;
  reason: PauseReason;
  paused_at: string;
}>({
  message: text(),
  webhook_id: { ...ID, description: 'The endpoint that was paused.' },
  reason: choice(PAUSE_REASONS),
  paused_at: time(),
});

function dataOf(type: WebhookType): Schema {
  switch (type) {
    case 'geofence_enter':
      return fleetEventData('geofence', 'entry');
    case 'geofence_exit':
      return fleetEventData('geofence', 'exit');
    case 'webhook_paused':
      return WEBHOOK_PAUSED;
    case 'ping':
      return PING;
    default:
      return fleetEventData(type);
  }
}

/** "geofence_enter" → "GeofenceEnterDelivery". */
function nameOf(type: WebhookType): string {
  return `${type.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Delivery`;
}

/** The body of a delivery, by type of event. */
export const DELIVERY_SCHEMAS: Readonly<Record<string, Schema>> = {
  ...Object.fromEntries(WEBHOOK_TYPES.map((type) => [nameOf(type), delivered(type, dataOf(type))])),
  DeliveryBody: { oneOf: WEBHOOK_TYPES.map((type) => ref(nameOf(type))) },
};
