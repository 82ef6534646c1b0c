import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { SECRET_PREFIX } from './secretBox.ts';

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
