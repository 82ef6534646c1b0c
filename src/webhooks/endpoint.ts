import type { CidrSet } from '../access/ipAddress.ts';
import { BODY_INVALID, type FieldError } from '../lib/fieldError.ts';
import { isJsonObject, isMissing } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { RETRY_POLICIES, type RetryPolicy } from './delivery/transition.ts';
import { urlErrorMessage, validateWebhookUrl } from './delivery/urlSafety.ts';
import { isSubscription, type Subscription } from './message.ts';

/** What an owner decides about an endpoint. */
export interface EndpointDraft {
  /** Normalised. */
  readonly url: string;
  readonly description: string | null;
  /** At least one, each once, in the order sent. */
  readonly events: readonly Subscription[];
  readonly retryPolicy: RetryPolicy;
  /** The total number of attempts, 0 to 10. */
  readonly maxRetries: number;
  readonly active: boolean;
}

/** An endpoint's fields to change; those not sent are missing. */
export type EndpointChange = Partial<EndpointDraft>;

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
  const fields = readFields(body, allowNets);
  if (!fields.ok) return fields;
  const { url, description, events, retryPolicy, maxRetries, active } = fields.value;
  const errors = [
    ...(url === undefined ? [ENDPOINT_ERRORS.urlRequired] : []),
    ...(events === undefined ? [ENDPOINT_ERRORS.eventsRequired] : []),
    ...errorsOf(fields.value),
  ];
  if (url === undefined || !events?.ok || errors.length > 0) return fail({ kind: 'invalid', errors });
  return ok({
    url,
    description: sentValue(description) ?? null,
    events: events.value,
    retryPolicy: sentValue(retryPolicy) ?? 'exponential',
    maxRetries: sentValue(maxRetries) ?? ENDPOINT_LIMITS.defaultMaxRetries,
    active: sentValue(active) ?? true,
  });
}

/** The body that changes an endpoint. The same rules, but nothing is required, and a description of null removes it. */
export function parseEndpointUpdate(
  body: unknown,
  allowNets: CidrSet,
): Result<EndpointChange, EndpointError> {
  const fields = readFields(body, allowNets);
  if (!fields.ok) return fields;
  const errors = errorsOf(fields.value);
  if (errors.length > 0) return fail({ kind: 'invalid', errors });
  const { url, description, events, retryPolicy, maxRetries, active } = fields.value;
  return ok({
    ...(url !== undefined && { url }),
    ...(description?.ok && { description: description.value }),
    ...(events?.ok && { events: events.value }),
    ...(retryPolicy?.ok && { retryPolicy: retryPolicy.value }),
    ...(maxRetries?.ok && { maxRetries: maxRetries.value }),
    ...(active?.ok && { active: active.value }),
  });
}

/** A field of a body: undefined when not sent, otherwise its value or its error. */
type Sent<T> = Result<T, FieldError> | undefined;

interface SentFields {
  readonly url: string | undefined;
  readonly description: Sent<string | null>;
  readonly events: Sent<readonly Subscription[]>;
  readonly retryPolicy: Sent<RetryPolicy>;
  readonly maxRetries: Sent<number>;
  readonly active: Sent<boolean>;
}

function readFields(body: unknown, allowNets: CidrSet): Result<SentFields, EndpointError> {
  if (!isJsonObject(body)) return fail({ kind: 'invalid', errors: [ENDPOINT_ERRORS.bodyInvalid] });
  const url = sentUrl(body['url'], allowNets);
  if (url?.ok === false) return fail({ kind: 'url_invalid', message: url.error });
  return ok({
    url: url?.value,
    description: sentDescription(body['description']),
    events: sentEvents(body['events']),
    retryPolicy: sentRetryPolicy(body['retry_policy']),
    maxRetries: sentMaxRetries(body['max_retries']),
    active: sentActive(body['active']),
  });
}

function errorsOf({ url: _, ...validated }: SentFields): FieldError[] {
  return Object.values(validated).flatMap((sent) => (sent?.ok === false ? [sent.error] : []));
}

function sentValue<T>(sent: Sent<T>): T | undefined {
  return sent?.ok ? sent.value : undefined;
}

function sentUrl(value: unknown, allowNets: CidrSet): Result<string, string> | undefined {
  if (isMissing(value)) return undefined;
  if (typeof value !== 'string') return fail(urlErrorMessage('not_a_url'));
  const validated = validateWebhookUrl(value, allowNets);
  return validated.ok ? validated : fail(urlErrorMessage(validated.error));
}

/** Text that Postgres can store, unchanged. It may have several lines. */
function sentDescription(value: unknown): Sent<string | null> {
  if (value === undefined) return undefined;
  if (value === null) return ok(null);
  if (typeof value !== 'string' || !value.isWellFormed() || CONTROL.test(value)) {
    return fail(ENDPOINT_ERRORS.descriptionInvalid);
  }
  const { descriptionMaxCodePoints: max } = ENDPOINT_LIMITS;
  const isTooLong = value.length > 2 * max || [...value].length > max;
  return isTooLong ? fail(ENDPOINT_ERRORS.descriptionTooLong) : ok(value);
}

const CONTROL = /(?![\t\n\r])\p{Cc}/u;

function sentEvents(value: unknown): Sent<readonly Subscription[]> {
  if (isMissing(value)) return undefined;
  if (!Array.isArray(value)) return fail(ENDPOINT_ERRORS.eventsInvalid);
  if (value.length === 0) return fail(ENDPOINT_ERRORS.eventsRequired);
  return value.every(isSubscription) ? ok([...new Set(value)]) : fail(ENDPOINT_ERRORS.eventsInvalid);
}

function sentRetryPolicy(value: unknown): Sent<RetryPolicy> {
  if (isMissing(value)) return undefined;
  const policy = RETRY_POLICIES.find((known) => known === value);
  return policy ? ok(policy) : fail(ENDPOINT_ERRORS.retryPolicyInvalid);
}

function sentMaxRetries(value: unknown): Sent<number> {
  if (isMissing(value)) return undefined;
  const sound = Number.isInteger(value) && Number(value) >= 0 && Number(value) <= ENDPOINT_LIMITS.maxRetries;
  return sound ? ok(Number(value) + 0) : fail(ENDPOINT_ERRORS.maxRetriesOutOfRange);
}

function sentActive(value: unknown): Sent<boolean> {
  if (isMissing(value)) return undefined;
  return typeof value === 'boolean' ? ok(value) : fail(ENDPOINT_ERRORS.activeInvalid);
}
