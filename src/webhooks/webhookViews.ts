import { formatIso } from '../lib/isoTime.ts';
import type { Delivery } from './deliveries.sql.ts';
import { type DeliverySummary, SUMMARY_WINDOW_HOURS } from './deliverySummary.ts';
import type { LeftOutCounts } from './pauses/leftOut.sql.ts';
import type { Webhook } from './webhooks.sql.ts';

/** An endpoint on the wire; its secret is added only where it is shown. */
export function webhookView(webhook: Webhook) {
  return {
    id: webhook.id,
    url: webhook.url,
    description: webhook.description,
    events: webhook.events,
    retry_policy: webhook.retryPolicy,
    max_retries: webhook.maxRetries,
    active: webhook.active,
    paused:
      webhook.paused === null
        ? null
        : { reason: webhook.paused.reason, since: formatIso(webhook.paused.sinceMs) },
    signature_version: webhook.signatureVersion,
    created_at: formatIso(webhook.createdAtMs),
    updated_at: formatIso(webhook.updatedAtMs),
  };
}

export function leftOutView({ events, isComplete, hours }: LeftOutCounts) {
  return {
    events,
    is_complete: isComplete,
    hours: hours.map((hour) => ({ from: formatIso(hour.fromMs), events: hour.events })),
  };
}

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
