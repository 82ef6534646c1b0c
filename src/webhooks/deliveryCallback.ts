import { EXAMPLE_VAN } from '../devices/deviceViews.ts';
import { EVENT_DATA, EXAMPLE_EVENTS } from '../events/eventView.ts';
import type { EventType } from '../events/fleetEvent.ts';
import { choice, ID, nullable, ref, type Schema, shapeOf, text, time } from '../http/openapi/schema.ts';
import { deliveryHeaders } from './delivery/signature.ts';
import { EXAMPLE_DELIVERY } from './deliveryView.ts';
import {
  fleetEventBody,
  PAUSE_REASONS,
  type PauseReason,
  pauseBody,
  pingBody,
  WEBHOOK_TYPES,
  type WebhookType,
  webhookTypeOf,
} from './message.ts';
import { EXAMPLE_SECRET, EXAMPLE_WEBHOOK } from './webhookView.ts';

const { imei, name, plate } = EXAMPLE_VAN.fields;

/** A body of every type, written by the code that writes them. */
const BODIES: readonly string[] = [
  ...EXAMPLE_EVENTS.map((event) =>
    fleetEventBody({
      id: EXAMPLE_DELIVERY.eventId,
      type: webhookTypeOf(event.type, event.direction),
      createdAtMs: EXAMPLE_DELIVERY.createdAtMs,
      fleetEventId: event.id,
      occurredAtMs: event.occurredAtMs,
      device: { imei, name, plate },
      data: event.data,
    }),
  ),
  pauseBody(
    EXAMPLE_DELIVERY.eventId,
    { webhookId: EXAMPLE_WEBHOOK.id, reason: 'failing' },
    EXAMPLE_DELIVERY.createdAtMs,
  ),
  pingBody(EXAMPLE_DELIVERY.eventId, EXAMPLE_WEBHOOK.id, EXAMPLE_DELIVERY.createdAtMs),
];

/** The headers of the delivery of the first body. */
const HEADERS = deliveryHeaders({
  endpointId: EXAMPLE_WEBHOOK.id,
  eventId: EXAMPLE_DELIVERY.eventId,
  deliveryId: EXAMPLE_DELIVERY.id,
  attempt: 1,
  body: BODIES[0] as string,
  secret: EXAMPLE_SECRET,
  previousSecret: null,
  nowMs: EXAMPLE_DELIVERY.createdAtMs,
});

const HEADER_NOTES: Readonly<Record<string, string>> = {
  'X-Service-Signature':
    'sha256= and the lower-case hexadecimal HMAC-SHA256 of the raw body, keyed with the whole signing secret as text.',
  'X-Service-Signature-Version': 'The scheme of X-Service-Signature.',
  'X-Service-Timestamp': 'Epoch milliseconds of the attempt.',
  'X-Service-Delivery-Id': 'The same for every attempt of one delivery.',
  'X-Service-Delivery-Attempt': '1, 2, 3 …',
  'Idempotency-Key': 'The id of the endpoint and of the event, the same for every attempt.',
  'webhook-id': 'Standard Webhooks: the id of the event.',
  'webhook-timestamp': 'Standard Webhooks: epoch seconds of the attempt.',
  'webhook-signature':
    'Standard Webhooks: v1, and the base64 HMAC-SHA256 of `id.timestamp.body`, keyed with the 32 bytes of the secret; two of them, separated by a blank, for 24 hours after a rotation.',
};

/** What the service sends to an endpoint: one event, signed. */
export const DELIVERY_CALLBACK = {
  '{$request.body#/url}': {
    post: {
      operationId: 'receiveDelivery',
      tags: ['Webhooks'],
      // The endpoint is the receiver's: it proves the sender by the signature.
      security: [],
      summary: 'An event is sent to the endpoint',
      description:
        'Verify the signature on the raw bytes of the body before reading them, compare in constant time, and answer 401 when it does not match. Any 2xx within 10 seconds is a delivery; no redirect is followed. Deliveries to one endpoint never run in parallel.',
      parameters: Object.keys(HEADERS)
        .filter((header) => header !== 'Content-Type')
        .map((header) => ({
          name: header,
          in: 'header',
          required: true,
          description: HEADER_NOTES[header],
          schema: { type: 'string' },
          example: HEADERS[header],
        })),
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: ref('DeliveryBody'),
            examples: Object.fromEntries(
              BODIES.map((body) => JSON.parse(body) as { type: string }).map((value) => [
                value.type,
                { value },
              ]),
            ),
          },
        },
      },
      responses: {
        '2XX': { description: 'Delivered.' },
        '401': { description: 'The signature does not match.' },
        default: { description: 'Not delivered: tried again as the retry policy says.' },
      },
    },
  },
};

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
export const DELIVERY_BODY_SCHEMAS: Readonly<Record<string, Schema>> = {
  ...Object.fromEntries(WEBHOOK_TYPES.map((type) => [nameOf(type), delivered(type, dataOf(type))])),
  DeliveryBody: { oneOf: WEBHOOK_TYPES.map((type) => ref(nameOf(type))) },
};
