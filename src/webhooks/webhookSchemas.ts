import { ID } from '../http/openapi/commonSchemas.ts';
import {
  choice,
  defaulting,
  integer,
  list,
  nullable,
  number,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import type { FieldError } from '../lib/fieldError.ts';
import { SIGNATURE_VERSION } from './delivery/signature.ts';
import { DELIVERY_STATUSES, RETRY_POLICIES } from './delivery/transition.ts';
import { URL_MAX_CHARS } from './delivery/urlSafety.ts';
import { SUMMARY_WINDOW_HOURS } from './deliverySummary.ts';
import { ENDPOINT_ERRORS, ENDPOINT_LIMITS as LIMITS } from './endpoint.ts';
import { ALL_TYPES, PAUSE_REASONS, WEBHOOK_TYPES } from './message.ts';
import type { deliveryView, leftOutView, summaryView, webhookView } from './webhookViews.ts';

type WebhookView = ReturnType<typeof webhookView>;
type SummaryView = ReturnType<typeof summaryView>;

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

const SUMMARY_COUNT = integer(undefined, { minimum: 0 });
const DURATION = nullable(number('Milliseconds.', { minimum: 0 }));

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
  DeliverySummary: shapeOf<SummaryView>({
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
    duration_ms: shapeOf<SummaryView['duration_ms']>({ p50: DURATION, p95: DURATION, p99: DURATION }),
  }),
} as const satisfies Readonly<Record<string, Schema>>;
