import { CidrSet } from '../access/cidrSet.ts';
import { EXAMPLE_NOW_MS } from '../devices/deviceViews.ts';
import { invariant } from '../lib/invariant.ts';
import type { Delivery } from './deliveries.sql.ts';
import { SECRET_PREFIX, SIGNATURE_VERSION } from './delivery/signature.ts';
import { parseEndpointCreate } from './endpoint.ts';
import type { LeftOutCounts } from './pauses/leftOut.sql.ts';
import type { Webhook } from './webhooks.sql.ts';

export const EXAMPLE_WEBHOOK_BODY = {
  url: 'https://hooks.example.com/fleet',
  description: 'Dispatch desk',
  events: ['geofence_enter', 'geofence_exit', 'alarm'],
};

const draft = parseEndpointCreate(EXAMPLE_WEBHOOK_BODY, new CidrSet([]));
invariant(draft.ok, 'the body of the example is valid');

export const EXAMPLE_WEBHOOK: Webhook = {
  id: 7,
  ...draft.value,
  paused: null,
  signatureVersion: SIGNATURE_VERSION,
  createdAtMs: Date.UTC(2026, 0, 15, 10),
  updatedAtMs: Date.UTC(2026, 0, 15, 10),
};

/** The same once too many of its deliveries wait. */
export const EXAMPLE_PAUSED: Webhook = {
  ...EXAMPLE_WEBHOOK,
  paused: { reason: 'endpoint_quota', sinceMs: Date.UTC(2026, 2, 2, 8, 40) },
};

export const EXAMPLE_LEFT_OUT: LeftOutCounts = {
  events: 21_730,
  isComplete: true,
  hours: [
    { fromMs: Date.UTC(2026, 2, 2, 8), events: 6_112 },
    { fromMs: Date.UTC(2026, 2, 2, 9), events: 15_618 },
  ],
};

/** The bytes 0 to 31; no endpoint has this secret. */
export const EXAMPLE_SECRET =
  SECRET_PREFIX + Buffer.from(Uint8Array.from({ length: 32 }, (_, n) => n)).toString('base64');

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
