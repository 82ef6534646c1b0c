import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { formatIso } from '../lib/time.ts';

const ID_HEX_CHARS = 32;
/** The last characters of a delivery id are a number. 96 random bits come before it. */
export const ORDINAL_HEX_CHARS = 8;

/** A fleet event with everything else that its webhook message contains. */
export interface FleetEventMessage {
  /** The webhook event id, not the one of the fleet event. */
  readonly id: string;
  readonly type: WebhookType;
  readonly createdAtMs: number;
  readonly fleetEventId: number;
  readonly occurredAtMs: number;
  readonly device: { readonly imei: string; readonly name: string | null; readonly plate: string | null };
  /** `data` of the fleet event on the wire, in the keys of v3. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * The body of a fleet event's deliveries: JSON text that is made once, then stored, signed and sent unchanged. The order
 * of keys is fixed. JSON.stringify escapes lone surrogates, so the text survives UTF-8 unchanged.
 */
export function fleetEventBody(message: FleetEventMessage): string {
  const { id, type, createdAtMs, fleetEventId, occurredAtMs, device, data } = message;
  return body(id, type, createdAtMs, {
    ...data,
    fleet_event_id: fleetEventId,
    device: { imei: device.imei, name: device.name, plate: device.plate },
    occurred_at: formatIso(occurredAtMs),
  });
}

/** The body of the synthetic event that the test route sends. */
export function pingBody(id: string, webhookId: number, createdAtMs: number): string {
  return body(id, 'ping', createdAtMs, {
    message: 'This is a test delivery of your webhook endpoint.',
    webhook_id: webhookId,
  });
}

/** The body that tells the other endpoints of an account that the service has paused one. */
export function pauseBody(
  id: string,
  { webhookId, reason }: { readonly webhookId: number; readonly reason: PauseReason },
  pausedAtMs: number,
): string {
  return body(id, 'webhook_paused', pausedAtMs, {
    message: 'This webhook endpoint gets no new deliveries until it is resumed.',
    webhook_id: webhookId,
    reason,
    paused_at: formatIso(pausedAtMs),
  });
}

/**
 * The webhook event id of a fleet event. Another `scope` makes another id: installations have their own, and so has a
 * database since it may give numbers of events again (enter_server).
 */
export function fleetEventWebhookId(scope: string, fleetEventId: number): string {
  const hash = createHash('sha256').update(`${scope}:${fleetEventId}`).digest('hex');
  return `evt_${hash.slice(0, ID_HEX_CHARS)}`;
}

/** A new event id, for an event that is not a fleet event. */
export function newEventId(): string {
  return `evt_${randomHex()}`;
}

/**
 * What the ids of the deliveries of one statement begin with. Their numbers follow, in ORDINAL_HEX_CHARS: deliveries of one
 * transaction have the same time, and lists order them by id.
 */
export function newDeliveryIdStart(): string {
  return `dlv_${randomHex().slice(ORDINAL_HEX_CHARS)}`;
}

export const DELIVERY_ID = /^dlv_[0-9a-f]{32}$/;

function body(id: string, type: WebhookType, createdAtMs: number, data: object): string {
  return JSON.stringify({ id, type, created_at: formatIso(createdAtMs), data });
}

function randomHex(): string {
  return randomBytes(ID_HEX_CHARS / 2).toString('hex');
}

/**
 * Every type of event that a webhook can receive; `webhook_paused` is about another endpoint of the account, and `ping` is
 * sent by the test route only.
 */
export const WEBHOOK_TYPES = [
  'geofence_enter',
  'geofence_exit',
  'ignition_on',
  'ignition_off',
  'parking_start',
  'parking_end',
  'tamper_alert',
  'rfid',
  'alarm',
  'webhook_paused',
  'ping',
] as const;

export type WebhookType = (typeof WEBHOOK_TYPES)[number];

/** Subscribes to every type, present and future. */
export const ALL_TYPES = '*';

/** What an endpoint subscribes to: an element of its `events`. */
export type Subscription = WebhookType | typeof ALL_TYPES;

export function isSubscription(value: unknown): value is Subscription {
  return value === ALL_TYPES || WEBHOOK_TYPES.some((type) => type === value);
}

/** True when an endpoint with these `events` receives this type: its list has the type itself or the wildcard. */
export function matches(events: readonly string[], type: WebhookType): boolean {
  return events.includes(type) || events.includes(ALL_TYPES);
}

/** An active webhook endpoint: its owner's world, and the event types it receives. */
export interface ActiveEndpoint {
  readonly id: number;
  readonly worldId: number;
  readonly events: readonly Subscription[];
}

/** The types of fleet events, which have one type for entry and exit. */
type FleetEventType =
  | Exclude<WebhookType, 'geofence_enter' | 'geofence_exit' | 'webhook_paused' | 'ping'>
  | 'geofence';

/** The type under which webhooks receive a fleet event; `direction` is the one of its area, null without one. */
export function webhookTypeOf(type: FleetEventType, direction: 'entry' | 'exit' | null): WebhookType {
  if (type !== 'geofence') return type;
  return direction === 'exit' ? 'geofence_exit' : 'geofence_enter';
}

/**
 * Why an endpoint gets no new deliveries. `endpoint_quota`: too many of its deliveries wait. `account_quota`: too many of
 * its account, and more than its share of them. `failing`: no attempt has succeeded for days.
 */
export const PAUSE_REASONS = ['endpoint_quota', 'account_quota', 'failing'] as const;

export type PauseReason = (typeof PAUSE_REASONS)[number];

/** The scheme of X-Service-Signature. */
export const SIGNATURE_VERSION = 'v1';

/** An attempt that is about to be signed. */
export interface AttemptToSign {
  readonly endpointId: number;
  readonly eventId: string;
  readonly deliveryId: string;
  /** 1 at the first attempt. */
  readonly attempt: number;
  /** As sent: signed in UTF-8. */
  readonly body: string;
  /** `whsec_…` as shown to the owner. */
  readonly secret: string;
  /** The secret before a rotation, while it still signs; otherwise null. */
  readonly previousSecret: string | null;
  readonly nowMs: number;
}

/**
 * The headers of a delivery attempt. The key of X-Service-Signature is the UTF-8 bytes of the whole secret. The key of
 * the Standard Webhooks headers (github.com/standard-webhooks, spec 1.0.0) is the 32 bytes that the secret encodes;
 * there a previous secret signs too. Both sign the bytes of the body as sent.
 */
export function deliveryHeaders(attempt: AttemptToSign): Record<string, string> {
  const { endpointId, eventId, deliveryId, body, secret, previousSecret, nowMs } = attempt;
  const timestampSeconds = String(Math.floor(nowMs / 1000));
  const secrets = previousSecret === null ? [secret] : [secret, previousSecret];
  const signed = `${eventId}.${timestampSeconds}.${body}`;
  return {
    'Content-Type': 'application/json',
    'X-Service-Signature': `sha256=${hmacSha256(createSecretKey(secret, 'utf8'), body).toString('hex')}`,
    'X-Service-Signature-Version': SIGNATURE_VERSION,
    'X-Service-Timestamp': String(nowMs),
    'X-Service-Delivery-Id': deliveryId,
    'X-Service-Delivery-Attempt': String(attempt.attempt),
    'Idempotency-Key': `${endpointId}:${eventId}`,
    'webhook-id': eventId,
    'webhook-timestamp': timestampSeconds,
    'webhook-signature': secrets
      .map((each) => `v1,${hmacSha256(keyBytes(each), signed).toString('base64')}`)
      .join(' '),
  };
}

function keyBytes(secret: string): KeyObject {
  return createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64');
}

/** Takes a key object, because Node takes six times as long with a Buffer. */
function hmacSha256(key: KeyObject, text: string): Buffer {
  return createHmac('sha256', key).update(text, 'utf8').digest();
}

/** What a signing secret begins with (Standard Webhooks); the rest is base64. */
export const SECRET_PREFIX = 'whsec_';

const SECRET_BYTES = 32;
const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** A new signing secret: `whsec_` and the standard, padded base64 of 32 random bytes. */
export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/**
 * `secret` encrypted with `key` (32 bytes, SECRETS_KEY): iv (12) | tag (16) | ciphertext, AES-256-GCM. `key` is a key
 * object, because Node takes five times as long with a Buffer.
 */
export function seal(key: KeyObject, secret: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), ciphertext]);
}

/** The secret that was sealed, or null when it was sealed with another key or changed since. */
export function open(key: KeyObject, sealed: Uint8Array): string | null {
  if (sealed.length < IV_BYTES + TAG_BYTES) return null;
  const iv = sealed.subarray(0, IV_BYTES);
  const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const text = decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return null; // final throws only when the tag does not match
  }
}

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'exhausted', 'requeued'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/**
 * How an attempt ended. `unsafe`: no packet was sent. `interrupted`: it was counted, and then its process died or stalled.
 * Nobody knows whether it was sent.
 */
export type AttemptOutcome = 'delivered' | 'failed' | 'unsafe' | 'interrupted';

/** What becomes of a delivery after an attempt. */
export interface Transition {
  readonly status: DeliveryStatus;
  /** From now to the next automatic attempt; null: there is none. */
  readonly nextAttemptDelayMs: number | null;
}

/** What an endpoint wants when it does not answer 2xx. */
export const RETRY_POLICIES = ['none', 'fixed', 'exponential'] as const;

export type RetryPolicy = (typeof RETRY_POLICIES)[number];

/** The part of an endpoint that decides about retries. */
export interface RetryRule {
  readonly policy: RetryPolicy;
  /** All attempts of a budget, the first included; 0 acts like 1. */
  readonly maxRetries: number;
}

/**
 * When the last attempt of a budget was interrupted, another one follows at once: the receiver may never have got any.
 * After this many such attempts the delivery is given up, in case it is the delivery that kills the process.
 */
export const UNSURE_ATTEMPTS_MAX = 10;

const FIXED_MINUTES = 5;
const FIRST_MINUTES = 2;

/**
 * The state table of deliveries in the API document, for the three states in which a delivery is attempted: pending,
 * failed and requeued. Where the table has a gap, a retry ends as a first attempt does.
 *
 * @param attemptsUsed attempts since the delivery was made or last replayed, this one included
 */
export function transition(
  outcome: AttemptOutcome,
  attemptsUsed: number,
  rule: RetryRule,
  minuteMs: number,
): Transition {
  switch (outcome) {
    case 'delivered':
      return { status: 'delivered', nextAttemptDelayMs: null };
    case 'unsafe':
      return { status: 'failed', nextAttemptDelayMs: null };
    case 'failed':
    case 'interrupted': {
      const budget = rule.policy === 'none' ? 1 : Math.max(1, rule.maxRetries);
      if (attemptsUsed < budget)
        return { status: 'failed', nextAttemptDelayMs: retryMinutes(rule.policy, attemptsUsed) * minuteMs };
      const isUnsure = outcome === 'interrupted' && attemptsUsed < budget + UNSURE_ATTEMPTS_MAX;
      return isUnsure
        ? { status: 'failed', nextAttemptDelayMs: 0 }
        : { status: 'exhausted', nextAttemptDelayMs: null };
    }
  }
}

/**
 * Without jitter: five exponential attempts are exactly 2, 4, 8 and 16 minutes apart. The doubling continues, up to 2^9
 * minutes before the tenth.
 */
function retryMinutes(policy: RetryPolicy, attemptsUsed: number): number {
  return policy === 'fixed' ? FIXED_MINUTES : FIRST_MINUTES * 2 ** (attemptsUsed - 1);
}

/** The most that is kept of an answer, in UTF-8. */
const ANSWER_BYTES = 1_024;
/** A signing secret, also where JSON or a URL has escaped it. */
const SECRET_IN_TEXT = /whsec_[\w+/=\\%-]*/g;

/**
 * How the body of an answer begins, for the owner of the endpoint: at most 1 024 bytes of UTF-8, ending with … if the body is
 * longer. Control characters and invalid UTF-8 are replaced by U+FFFD. Signing secrets are removed, because a receiver knows
 * its own and may repeat its configuration.
 */
export function answerBeginning(chunks: readonly Uint8Array[]): string {
  if (chunks.length === 0) return '';
  const body = Buffer.concat(chunks);
  const text = textOf(body, ANSWER_BYTES)
    .replace(/[^\P{Cc}\n\r\t]/gu, '\ufffd')
    .replace(SECRET_IN_TEXT, `${SECRET_PREFIX}…`);
  const bytes = Buffer.from(text);
  const isWhole = body.length <= ANSWER_BYTES && bytes.length <= ANSWER_BYTES;
  return isWhole ? text : `${textOf(bytes, ANSWER_BYTES - Buffer.byteLength('…'))}…`;
}

/** The first `maxBytes` as text, without a character that is cut. */
function textOf(bytes: Buffer, maxBytes: number): string {
  return new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: bytes.length > maxBytes });
}

/** How an answered attempt ended: only 2xx is delivered. A redirect is not. */
export function outcomeOfStatus(statusCode: number): 'delivered' | 'failed' {
  return statusCode >= 200 && statusCode <= 299 ? 'delivered' : 'failed';
}
