import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

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

/** How an answered attempt ended: only 2xx is delivered. A redirect is not. */
export function outcomeOfStatus(statusCode: number): 'delivered' | 'failed' {
  return statusCode >= 200 && statusCode <= 299 ? 'delivered' : 'failed';
}
