import type { CidrSet } from '../access/ipAddress.ts';
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
import { isJsonObject, isMissing } from '../lib/parseText.ts';
import { BODY_INVALID, type FieldError, fail, ok, type Result } from '../lib/result.ts';
import { URL_ERROR_MESSAGES, URL_MAX_CHARS, validateWebhookUrl } from './delivery/urlSafety.ts';
import {
  ALL_TYPES,
  isSubscription,
  PAUSE_REASONS,
  type PauseReason,
  RETRY_POLICIES,
  type RetryPolicy,
  SECRET_PREFIX,
  SIGNATURE_VERSION,
  type Subscription,
  WEBHOOK_TYPES,
} from './delivery.ts';

/** What an owner decides about an endpoint, under the names of the API and of the table. */
export interface EndpointDraft {
  /** Normalised. */
  readonly url: string;
  readonly description: string | null;
  /** At least one, each once, in the order sent. */
  readonly events: readonly Subscription[];
  readonly retry_policy: RetryPolicy;
  /** The total number of attempts, 0 to 10. */
  readonly max_retries: number;
  readonly active: boolean;
}

/** An endpoint's fields to change; those not sent are missing. */
export type EndpointChange = Partial<EndpointDraft>;

/** An endpoint as its owner sees it. The secret is not among it. */
export interface Webhook extends EndpointDraft {
  readonly id: number;
  /** Null unless it gets no new deliveries. */
  readonly paused: { readonly reason: PauseReason; readonly since: string } | null;
  readonly failing: Failing | null;
  readonly signature_version: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** The failed attempts of an endpoint since the last one that succeeded. Times are ISO 8601. */
interface Failing {
  readonly since: string;
  readonly attempts: number;
  readonly next_attempt_at: string | null;
}

/** The events that a paused endpoint lacks, by the hour in which they were recorded. */
export interface LeftOut {
  readonly events: number;
  /** False when there are more than were counted: later ones. */
  readonly is_complete: boolean;
  readonly hours: readonly { readonly from: Date; readonly events: number }[];
}

/** What is wrong with a body: its url alone (400 WEBHOOK_URL_INVALID), or every other invalid field at once (422). */
export type EndpointError =
  | { readonly kind: 'url_invalid'; readonly message: string }
  | { readonly kind: 'invalid'; readonly errors: readonly FieldError[] };

export const ENDPOINT_LIMITS = {
  perOwner: 100,
  descriptionMaxCodePoints: 256,
  maxRetries: 10,
  defaultMaxRetries: 5,
} as const;

export const ENDPOINT_ERRORS = {
  bodyInvalid: BODY_INVALID,
  limitReached: {
    field: null,
    code: 'LIMIT_REACHED',
    message: `an owner has at most ${ENDPOINT_LIMITS.perOwner} webhooks`,
  },
  urlRequired: { field: 'url', code: 'REQUIRED', message: 'url is required' },
  descriptionInvalid: {
    field: 'description',
    code: 'INVALID',
    message: 'description must be text without control characters',
  },
  descriptionTooLong: {
    field: 'description',
    code: 'TOO_LONG',
    message: `description has more than ${ENDPOINT_LIMITS.descriptionMaxCodePoints} characters`,
  },
  eventsRequired: { field: 'events', code: 'REQUIRED', message: 'events must name at least one type' },
  eventsInvalid: {
    field: 'events',
    code: 'INVALID',
    message: 'events must be a list of known event types or *',
  },
  retryPolicyInvalid: {
    field: 'retry_policy',
    code: 'INVALID',
    message: 'retry_policy must be none, fixed or exponential',
  },
  maxRetriesOutOfRange: {
    field: 'max_retries',
    code: 'OUT_OF_RANGE',
    message: `max_retries must be a whole number from 0 to ${ENDPOINT_LIMITS.maxRetries}`,
  },
  activeInvalid: { field: 'active', code: 'INVALID', message: 'active must be true or false' },
} as const satisfies Readonly<Record<string, FieldError>>;

/**
 * The body that creates an endpoint. If a url is sent, it is validated first. A missing one is reported
 * with the other fields. null counts as not sent; unknown fields are ignored. Never throws.
 */
export function parseEndpointCreate(body: unknown, allowNets: CidrSet): Result<EndpointDraft, EndpointError> {
  const sent = readFields(body, allowNets, [ENDPOINT_ERRORS.urlRequired, ENDPOINT_ERRORS.eventsRequired]);
  if (!sent.ok) return sent;
  const { defaultMaxRetries } = ENDPOINT_LIMITS;
  const defaults = { retry_policy: 'exponential', max_retries: defaultMaxRetries, active: true } as const;
  return ok({ description: null, ...defaults, ...(sent.value as Pick<EndpointDraft, 'url' | 'events'>) });
}

/** The body that changes an endpoint. The same rules, but nothing is required, and a description of null removes it. */
export function parseEndpointUpdate(
  body: unknown,
  allowNets: CidrSet,
): Result<EndpointChange, EndpointError> {
  return readFields(body, allowNets, []);
}

/** The fields that are sent. `required`: the errors of fields that have to be. */
function readFields(
  body: unknown,
  allowNets: CidrSet,
  required: readonly (FieldError & { readonly field: string })[],
): Result<EndpointChange, EndpointError> {
  if (!isJsonObject(body)) return fail({ kind: 'invalid', errors: [ENDPOINT_ERRORS.bodyInvalid] });
  const sent: Record<string, unknown> = {};
  if (!isMissing(body['url'])) {
    const { url } = body;
    const validated =
      typeof url === 'string' ? validateWebhookUrl(url, allowNets) : fail('not_a_url' as const);
    if (!validated.ok) return fail({ kind: 'url_invalid', message: URL_ERROR_MESSAGES[validated.error] });
    sent['url'] = validated.value;
  }
  const errors: FieldError[] = required.filter(({ field }) => isMissing(body[field]));
  for (const [name, parse] of Object.entries(PARSERS)) {
    const value = body[name];
    if (value === undefined || (value === null && name !== 'description')) continue;
    const parsed = parse(value);
    if (parsed.ok) sent[name] = parsed.value;
    else errors.push(parsed.error);
  }
  return errors.length > 0 ? fail({ kind: 'invalid', errors }) : ok(sent);
}

const PARSERS: {
  readonly [Name in Exclude<keyof EndpointDraft, 'url'>]: (
    value: unknown,
  ) => Result<EndpointDraft[Name], FieldError>;
} = {
  /** Text that Postgres can store, unchanged. It may have several lines. */
  description(value) {
    if (value === null) return ok(null);
    if (typeof value !== 'string' || !value.isWellFormed() || CONTROL.test(value))
      return fail(ENDPOINT_ERRORS.descriptionInvalid);
    const { descriptionMaxCodePoints: max } = ENDPOINT_LIMITS;
    const isTooLong = value.length > 2 * max || [...value].length > max;
    return isTooLong ? fail(ENDPOINT_ERRORS.descriptionTooLong) : ok(value);
  },
  events(value) {
    if (!Array.isArray(value)) return fail(ENDPOINT_ERRORS.eventsInvalid);
    if (value.length === 0) return fail(ENDPOINT_ERRORS.eventsRequired);
    return value.every(isSubscription) ? ok([...new Set(value)]) : fail(ENDPOINT_ERRORS.eventsInvalid);
  },
  retry_policy(value) {
    const policy = RETRY_POLICIES.find((known) => known === value);
    return policy ? ok(policy) : fail(ENDPOINT_ERRORS.retryPolicyInvalid);
  },
  max_retries(value) {
    const isSound =
      Number.isInteger(value) && Number(value) >= 0 && Number(value) <= ENDPOINT_LIMITS.maxRetries;
    return isSound ? ok(Number(value) + 0) : fail(ENDPOINT_ERRORS.maxRetriesOutOfRange);
  },
  active: (value) => (typeof value === 'boolean' ? ok(value) : fail(ENDPOINT_ERRORS.activeInvalid)),
};

const CONTROL = /(?![\t\n\r])\p{Cc}/u;

export const EXAMPLE_WEBHOOK: Webhook = {
  id: 7,
  url: 'https://hooks.example.com/fleet',
  description: 'Dispatch desk',
  events: ['geofence_enter', 'geofence_exit', 'alarm'],
  retry_policy: 'exponential',
  max_retries: ENDPOINT_LIMITS.defaultMaxRetries,
  active: true,
  paused: null,
  failing: null,
  signature_version: SIGNATURE_VERSION,
  created_at: new Date(Date.UTC(2026, 0, 15, 10)),
  updated_at: new Date(Date.UTC(2026, 0, 15, 10)),
};

/** The bytes 0 to 31; no endpoint has this secret. */
export const EXAMPLE_SECRET =
  SECRET_PREFIX + Buffer.from(Uint8Array.from({ length: 32 }, (_, n) => n)).toString('base64');

const DESCRIPTION = nullable(text(undefined, { maxLength: ENDPOINT_LIMITS.descriptionMaxCodePoints }));

const EVENTS = list(choice([ALL_TYPES, ...WEBHOOK_TYPES]), {
  minItems: 1,
  description: `${ALL_TYPES}: every type, present and future.`,
});

const URL_TEXT = text('https, and reachable from the internet.', { format: 'uri', maxLength: URL_MAX_CHARS });

const MAX_RETRIES = integer('The total number of attempts; 0 acts like 1.', {
  minimum: 0,
  maximum: ENDPOINT_LIMITS.maxRetries,
});

const WEBHOOK: Record<keyof Webhook, Schema> = {
  id: ID,
  url: URL_TEXT,
  description: DESCRIPTION,
  events: EVENTS,
  retry_policy: choice(RETRY_POLICIES),
  max_retries: MAX_RETRIES,
  active: { type: 'boolean', description: 'Only an active endpoint receives events.' },
  paused: nullable(
    shapeOf<NonNullable<Webhook['paused']>>(
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
  failing: nullable(
    shapeOf<Failing>(
      {
        since: time('The first failed attempt since the last one that succeeded.'),
        attempts: integer('The failed attempts since then, of all deliveries.', { minimum: 1 }),
        next_attempt_at: nullable(time('null: none is due.')),
      },
      { description: 'null: the last attempt has succeeded, or none was made yet.' },
    ),
  ),
  signature_version: choice([SIGNATURE_VERSION]),
  created_at: time(),
  updated_at: time(),
};

const ERRORS: readonly FieldError[] = Object.values(ENDPOINT_ERRORS);

const ERROR_FIELDS = new Set(ERRORS.flatMap(({ field }) => (field === null ? [] : [field])));

export const WEBHOOK_SCHEMAS = {
  Webhook: shapeOf<Webhook>(WEBHOOK),
  WebhookWithSecret: shapeOf<Webhook & { secret: string }>({
    ...WEBHOOK,
    secret: text('Signs every delivery. Shown only here, so keep it.', { pattern: '^whsec_' }),
  }),
  WebhookInput: {
    type: 'object',
    required: ['url', 'events'],
    properties: {
      url: URL_TEXT,
      events: EVENTS,
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
      max_retries: defaulting(nullable(MAX_RETRIES), ENDPOINT_LIMITS.defaultMaxRetries),
      active: defaulting(nullable({ type: 'boolean' }), true),
    },
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
  LeftOut: shapeOf<LeftOut>({
    events: integer('Events whose deliveries are not made yet.', { minimum: 0 }),
    is_complete: {
      type: 'boolean',
      description: 'false: only the first hundred thousand events are counted.',
    },
    hours: list(
      shapeOf<LeftOut['hours'][number]>({
        from: time('The hour in which they were recorded.'),
        events: integer(undefined, { minimum: 1 }),
      }),
      { description: 'The earliest first; hours without events are missing.' },
    ),
  }),
} as const satisfies Readonly<Record<string, Schema>>;
