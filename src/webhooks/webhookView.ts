import { CidrSet } from '../access/ipAddress.ts';
import {
  choice,
  defaulting,
  ID,
  integer,
  list,
  nullable,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import type { FieldError } from '../lib/fieldError.ts';
import { invariant } from '../lib/invariant.ts';
import { formatIso } from '../lib/time.ts';
import { SECRET_PREFIX, SIGNATURE_VERSION } from './delivery/signature.ts';
import { RETRY_POLICIES } from './delivery/transition.ts';
import { URL_MAX_CHARS } from './delivery/urlSafety.ts';
import { ENDPOINT_ERRORS, ENDPOINT_LIMITS as LIMITS, parseEndpointCreate } from './endpoint.ts';
import { ALL_TYPES, PAUSE_REASONS, WEBHOOK_TYPES } from './message.ts';
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

/** As an answer shows it. */
export const EXAMPLE_VIEW = webhookView(EXAMPLE_WEBHOOK);

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

type WebhookView = ReturnType<typeof webhookView>;

const DESCRIPTION = nullable(text(undefined, { maxLength: LIMITS.descriptionMaxCodePoints }));

const EVENTS = list(choice([ALL_TYPES, ...WEBHOOK_TYPES]), {
  minItems: 1,
  description: `${ALL_TYPES}: every type, present and future.`,
});

const URL_TEXT = text('https, and reachable from the internet.', { format: 'uri', maxLength: URL_MAX_CHARS });

const MAX_RETRIES = integer('The total number of attempts; 0 acts like 1.', {
  minimum: 0,
  maximum: LIMITS.maxRetries,
});

const WEBHOOK: Record<keyof WebhookView, Schema> = {
  id: ID,
  url: URL_TEXT,
  description: DESCRIPTION,
  events: EVENTS,
  retry_policy: choice(RETRY_POLICIES),
  max_retries: MAX_RETRIES,
  active: { type: 'boolean', description: 'Only an active endpoint receives events.' },
  paused: nullable(
    shapeOf<NonNullable<WebhookView['paused']>>(
      {
        reason: choice(
          PAUSE_REASONS,
          'endpoint_quota: too many of its deliveries wait; account_quota: too many of the account; failing: no attempt has succeeded for five days.',
        ),
        since: time(),
      },
      { description: 'A paused endpoint gets no new deliveries until it is resumed.' },
    ),
  ),
  signature_version: choice([SIGNATURE_VERSION]),
  created_at: time(),
  updated_at: time(),
};

/** What may be sent beside the url and the events; null acts as not sent. */
const OPTIONAL_INPUT = {
  description: DESCRIPTION,
  retry_policy: defaulting(
    nullable(
      choice(
        RETRY_POLICIES,
        'exponential: after 2, 4, 8, 16 … minutes; fixed: every 5 minutes; none: no retry.',
      ),
    ),
    'exponential',
  ),
  max_retries: defaulting(nullable(MAX_RETRIES), LIMITS.defaultMaxRetries),
  active: defaulting(nullable({ type: 'boolean' }), true),
};

const ERRORS: readonly FieldError[] = Object.values(ENDPOINT_ERRORS);

const ERROR_FIELDS = new Set(ERRORS.flatMap(({ field }) => (field === null ? [] : [field])));

export const WEBHOOK_SCHEMAS = {
  Webhook: shapeOf<WebhookView>(WEBHOOK),
  WebhookWithSecret: shapeOf<WebhookView & { secret: string }>({
    ...WEBHOOK,
    secret: text('Signs every delivery. Shown only here, so keep it.', { pattern: '^whsec_' }),
  }),
  WebhookInput: {
    type: 'object',
    required: ['url', 'events'],
    properties: { url: URL_TEXT, events: EVENTS, ...OPTIONAL_INPUT },
  },
  WebhookChange: {
    type: 'object',
    description:
      'Only what is sent changes. `description: null` removes it; null elsewhere acts as not sent.',
    properties: {
      url: nullable(URL_TEXT),
      events: nullable(EVENTS),
      description: DESCRIPTION,
      retry_policy: nullable(choice(RETRY_POLICIES)),
      max_retries: nullable(MAX_RETRIES),
      active: nullable({ type: 'boolean' }),
    },
  },
  WebhookFieldError: shapeOf<FieldError>(
    {
      field: nullable(choice([...ERROR_FIELDS], 'null: the body as a whole.')),
      code: choice([...new Set(ERRORS.map(({ code }) => code))]),
      message: text(),
    },
    { description: 'One invalid field of an endpoint.' },
  ),
  LeftOut: shapeOf<ReturnType<typeof leftOutView>>({
    events: integer('Events whose deliveries are not made yet.', { minimum: 0 }),
    is_complete: {
      type: 'boolean',
      description: 'false: only the first hundred thousand events are counted.',
    },
    hours: list(
      shapeOf<{ from: string; events: number }>({
        from: time('The hour in which they were recorded.'),
        events: integer(undefined, { minimum: 1 }),
      }),
      { description: 'The earliest first; hours without events are missing.' },
    ),
  }),
} as const satisfies Readonly<Record<string, Schema>>;
