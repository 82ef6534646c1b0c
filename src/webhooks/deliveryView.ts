import { EXAMPLE_NOW_MS, EXAMPLE_VAN } from '../devices/deviceSchemas.ts';
import { EVENT_DATA, EXAMPLE_EVENTS } from '../events/eventView.ts';
import type { EventType } from '../events/fleetEvent.ts';
import type { Schema } from '../http/openapi/schema.ts';
import {
  choice,
  ID,
  integer,
  list,
  nullable,
  number,
  ref,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import type { AttemptRecord, Delivery, DeliveryDetail } from './deliveries.sql.ts';
import {
  DELIVERY_STATUSES,
  deliveryHeaders,
  fleetEventBody,
  PAUSE_REASONS,
  type PauseReason,
  pauseBody,
  pingBody,
  WEBHOOK_TYPES,
  type WebhookType,
  webhookTypeOf,
} from './delivery.ts';
import { type DeliverySummary, SUMMARY_WINDOW_HOURS } from './deliverySummary.ts';
import { EXAMPLE_SECRET, EXAMPLE_WEBHOOK } from './endpoint.ts';

const CREATED_AT = new Date(EXAMPLE_NOW_MS);

export const EXAMPLE_DELIVERY: Delivery = {
  id: 'dlv_0f2a6c1d9b3e4f5a8c7d6e5f4a3b2c1d',
  webhook_id: EXAMPLE_WEBHOOK.id,
  event_id: 'evt_5d1c3b7a9e8f4d2c6b0a1f3e5d7c9b8a',
  event_type: 'geofence_enter',
  status: 'delivered',
  attempts: 1,
  next_attempt_at: null,
  last_status_code: 204,
  last_error: null,
  last_duration_ms: 83,
  created_at: CREATED_AT,
  delivered_at: new Date(EXAMPLE_NOW_MS + 96),
};

const BUSY: AttemptRecord = {
  attempt: 1,
  at: new Date(EXAMPLE_NOW_MS + 13).toISOString(),
  status_code: 503,
  error: 'http_503',
  duration_ms: 412,
  answer: '{"error":"busy"}',
};

export const EXAMPLE_EXHAUSTED: Delivery = {
  ...EXAMPLE_DELIVERY,
  id: 'dlv_7b6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e',
  status: 'exhausted',
  attempts: 5,
  last_status_code: 503,
  last_duration_ms: 412,
  delivered_at: null,
};

export const EXAMPLE_PENDING: Delivery = {
  ...EXAMPLE_DELIVERY,
  event_type: 'ping',
  status: 'pending',
  attempts: 0,
  next_attempt_at: CREATED_AT,
  last_status_code: null,
  last_duration_ms: null,
  delivered_at: null,
};

const SUMMARY_COUNT = integer(undefined, { minimum: 0 });

const DURATION = nullable(number('Milliseconds.', { minimum: 0 }));

const DELIVERY_FIELDS = {
  id: text(undefined, { pattern: '^dlv_[0-9a-f]{32}$' }),
  webhook_id: ID,
  event_id: text('The `id` in the body that was sent.', { pattern: '^evt_[0-9a-f]{32}$' }),
  event_type: choice(WEBHOOK_TYPES),
  status: choice(
    DELIVERY_STATUSES,
    'exhausted: in the dead letter; requeued: replayed and waiting for its attempt.',
  ),
  attempts: integer('Made so far.', { minimum: 0 }),
  next_attempt_at: nullable(time()),
  last_status_code: nullable(integer('What the endpoint answered.')),
  last_error: nullable(text('What went wrong where there was no answer, such as url_unsafe.')),
  last_duration_ms: nullable(integer(undefined, { minimum: 0 })),
  created_at: time(),
  delivered_at: nullable(time()),
};

/** A delivery and the summary of deliveries. */
export const DELIVERY_SCHEMAS = {
  Delivery: shapeOf<Delivery>(DELIVERY_FIELDS),
  DeliveryDetail: shapeOf<DeliveryDetail>({
    ...DELIVERY_FIELDS,
    in_flight: { type: 'boolean', description: 'An attempt is being made now.' },
    payload: text('The exact body that every attempt signs and sends.'),
    attempt_log: list(ref('DeliveryAttempt'), {
      description: 'The last ten attempts that have ended, oldest first.',
      maxItems: 10,
    }),
  }),
  DeliveryAttempt: shapeOf<AttemptRecord>({
    attempt: integer('Its number over the life of the delivery.', { minimum: 1 }),
    at: nullable(
      time('The `X-Service-Timestamp` of the attempt; null when its process died before it was answered.'),
    ),
    status_code: nullable(integer('What the endpoint answered.')),
    error: nullable(text('Why it did not deliver, such as http_503, timeout or url_unsafe.')),
    duration_ms: nullable(integer(undefined, { minimum: 0 })),
    answer: nullable(
      text('How the body of the answer begins, at most 1 024 bytes; null when there was no answer.'),
    ),
  }),
  DeliverySummary: shapeOf<DeliverySummary>({
    window_hours: integer(undefined, { enum: [SUMMARY_WINDOW_HOURS] }),
    total: SUMMARY_COUNT,
    delivered: SUMMARY_COUNT,
    failed: SUMMARY_COUNT,
    exhausted: SUMMARY_COUNT,
    pending: SUMMARY_COUNT,
    success_rate: nullable(
      number('delivered / (delivered + exhausted); null when there are none.', { minimum: 0, maximum: 1 }),
    ),
    attempts: SUMMARY_COUNT,
    duration_ms: shapeOf<DeliverySummary['duration_ms']>({
      p50: DURATION,
      p95: DURATION,
      p99: DURATION,
    }),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

const { imei, name, plate } = EXAMPLE_VAN.fields;

/** A body of every type, written by the code that writes them. */
const BODIES: readonly string[] = [
  ...EXAMPLE_EVENTS.map((event) =>
    fleetEventBody({
      id: EXAMPLE_DELIVERY.event_id,
      type: webhookTypeOf(event.type, event.data['event'] === 'exit' ? 'exit' : 'entry'),
      createdAtMs: EXAMPLE_NOW_MS,
      fleetEventId: event.id,
      occurredAtMs: event.occurred_at.getTime(),
      device: { imei, name, plate },
      data: event.data,
    }),
  ),
  pauseBody(EXAMPLE_DELIVERY.event_id, { webhookId: EXAMPLE_WEBHOOK.id, reason: 'failing' }, EXAMPLE_NOW_MS),
  pingBody(EXAMPLE_DELIVERY.event_id, EXAMPLE_WEBHOOK.id, EXAMPLE_NOW_MS),
];

/** The delivery of the first body. */
export const EXAMPLE_DETAIL: DeliveryDetail = {
  ...EXAMPLE_DELIVERY,
  attempts: 2,
  delivered_at: new Date(EXAMPLE_NOW_MS + 120_529),
  in_flight: false,
  payload: BODIES[0] as string,
  attempt_log: [
    BUSY,
    {
      ...BUSY,
      attempt: 2,
      at: new Date(EXAMPLE_NOW_MS + 120_440).toISOString(),
      status_code: 204,
      error: null,
      duration_ms: 83,
      answer: '',
    },
  ],
};

/** The headers of the delivery of the first body. */
const HEADERS = deliveryHeaders({
  endpointId: EXAMPLE_WEBHOOK.id,
  eventId: EXAMPLE_DELIVERY.event_id,
  deliveryId: EXAMPLE_DELIVERY.id,
  attempt: 1,
  body: BODIES[0] as string,
  secret: EXAMPLE_SECRET,
  previousSecret: null,
  nowMs: EXAMPLE_NOW_MS,
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

/** `data` by type, where it is not that of the fleet event of the same name. */
const DATA: Partial<Record<WebhookType, Schema>> = {
  geofence_enter: fleetEventData('geofence', 'entry'),
  geofence_exit: fleetEventData('geofence', 'exit'),
  webhook_paused: shapeOf<{ message: string; webhook_id: number; reason: PauseReason; paused_at: string }>({
    message: text(),
    webhook_id: { ...ID, description: 'The endpoint that was paused.' },
    reason: choice(PAUSE_REASONS),
    paused_at: time(),
  }),
  ping: shapeOf<{ message: string; webhook_id: number }>({ message: text(), webhook_id: ID }),
};

/** "geofence_enter" → "GeofenceEnterDelivery". */
function nameOf(type: WebhookType): string {
  return `${type.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Delivery`;
}

/** The body of a delivery, by type of event. */
export const DELIVERY_BODY_SCHEMAS: Readonly<Record<string, Schema>> = {
  ...Object.fromEntries(
    WEBHOOK_TYPES.map((type) => [
      nameOf(type),
      delivered(type, DATA[type] ?? fleetEventData(type as EventType)),
    ]),
  ),
  DeliveryBody: { oneOf: WEBHOOK_TYPES.map((type) => ref(nameOf(type))) },
};
