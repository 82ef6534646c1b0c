import { EXAMPLE_NOW_MS } from '../devices/deviceViews.ts';
import {
  choice,
  ID,
  integer,
  nullable,
  number,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import { formatIso } from '../lib/time.ts';
import type { Delivery } from './deliveries.sql.ts';
import { DELIVERY_STATUSES } from './delivery/transition.ts';
import { type DeliverySummary, SUMMARY_WINDOW_HOURS } from './deliverySummary.ts';
import { WEBHOOK_TYPES } from './message.ts';
import { EXAMPLE_WEBHOOK } from './webhookView.ts';

export function deliveryView(delivery: Delivery) {
  return {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    status: delivery.status,
    attempts: delivery.attempts,
    next_attempt_at: delivery.nextAttemptAtMs === null ? null : formatIso(delivery.nextAttemptAtMs),
    last_status_code: delivery.lastStatusCode,
    last_error: delivery.lastError,
    last_duration_ms: delivery.lastDurationMs,
    created_at: formatIso(delivery.createdAtMs),
    delivered_at: delivery.deliveredAtMs === null ? null : formatIso(delivery.deliveredAtMs),
  };
}

export function summaryView(summary: DeliverySummary) {
  return {
    window_hours: SUMMARY_WINDOW_HOURS,
    total: summary.total,
    delivered: summary.delivered,
    failed: summary.failed,
    exhausted: summary.exhausted,
    pending: summary.pending,
    success_rate: summary.successRate,
    attempts: summary.attempts,
    duration_ms: summary.durationMs,
  };
}

export const EXAMPLE_DELIVERY: Delivery = {
  id: 'dlv_0f2a6c1d9b3e4f5a8c7d6e5f4a3b2c1d',
  webhookId: EXAMPLE_WEBHOOK.id,
  eventId: 'evt_5d1c3b7a9e8f4d2c6b0a1f3e5d7c9b8a',
  eventType: 'geofence_enter',
  status: 'delivered',
  attempts: 1,
  nextAttemptAtMs: null,
  lastStatusCode: 204,
  lastError: null,
  lastDurationMs: 83,
  createdAtMs: EXAMPLE_NOW_MS,
  deliveredAtMs: EXAMPLE_NOW_MS + 96,
};

const { deliveredAtMs: _, ...UNDELIVERED } = EXAMPLE_DELIVERY;

export const EXAMPLE_EXHAUSTED: Delivery = {
  ...UNDELIVERED,
  id: 'dlv_7b6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e',
  status: 'exhausted',
  attempts: 5,
  lastStatusCode: 503,
  lastDurationMs: 412,
  deliveredAtMs: null,
};

export const EXAMPLE_PENDING: Delivery = {
  ...UNDELIVERED,
  eventType: 'ping',
  status: 'pending',
  attempts: 0,
  nextAttemptAtMs: EXAMPLE_NOW_MS,
  lastStatusCode: null,
  lastDurationMs: null,
  deliveredAtMs: null,
};

const SUMMARY_COUNT = integer(undefined, { minimum: 0 });

const DURATION = nullable(number('Milliseconds.', { minimum: 0 }));

/** A delivery and the summary of deliveries. */
export const DELIVERY_SCHEMAS = {
  Delivery: shapeOf<ReturnType<typeof deliveryView>>({
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
  }),
  DeliverySummary: shapeOf<ReturnType<typeof summaryView>>({
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
    duration_ms: shapeOf<ReturnType<typeof summaryView>['duration_ms']>({
      p50: DURATION,
      p95: DURATION,
      p99: DURATION,
    }),
  }),
} as const satisfies Readonly<Record<string, Schema>>;
