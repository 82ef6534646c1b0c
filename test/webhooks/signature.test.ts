import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { deliveryHeaders } from '../../src/webhooks/delivery.ts';

/** Made with openssl: body, secret → headers. */
interface Vector {
  readonly body: string;
  readonly secret: string;
  readonly previous_secret: string | null;
  readonly event_id: string;
  readonly now_ms: number;
  readonly signature: string;
  readonly standard_signature: string;
}

const VECTORS: readonly Vector[] = JSON.parse(
  readFileSync(join(import.meta.dirname, '../data/webhook-signatures.json'), 'utf8'),
);

const headersOf = (vector: Vector, attempt = 1) =>
  deliveryHeaders({
    endpointId: 17,
    eventId: vector.event_id,
    deliveryId: 'dlv_00000000000000000000000000000001',
    attempt,
    body: vector.body,
    secret: vector.secret,
    previousSecret: vector.previous_secret,
    nowMs: vector.now_ms,
  });

describe('the headers of a delivery', () => {
  test('are these, and only these', () => {
    const vector = VECTORS[1];
    assert.ok(vector);
    assert.deepEqual(headersOf(vector, 3), {
      'Content-Type': 'application/json',
      'X-Service-Signature': vector.signature,
      'X-Service-Signature-Version': 'v1',
      'X-Service-Timestamp': String(vector.now_ms),
      'X-Service-Delivery-Id': 'dlv_00000000000000000000000000000001',
      'X-Service-Delivery-Attempt': '3',
      'Idempotency-Key': `17:${vector.event_id}`,
      'webhook-id': vector.event_id,
      'webhook-timestamp': String(Math.floor(vector.now_ms / 1000)),
      'webhook-signature': vector.standard_signature,
    });
  });

  for (const [n, vector] of VECTORS.entries()) {
    test(`sign vector ${n} as openssl did when it was made`, () => {
      const headers = headersOf(vector);
      assert.equal(headers['X-Service-Signature'], vector.signature);
      assert.equal(headers['webhook-signature'], vector.standard_signature);
    });

    test(`of vector ${n} satisfy the Standard Webhooks library with every secret that signs`, (t) => {
      t.mock.timers.enable({ apis: ['Date'], now: vector.now_ms });
      const headers = headersOf(vector);
      for (const secret of [vector.secret, vector.previous_secret]) {
        if (secret === null) continue;
        assert.deepEqual(new Webhook(secret).verify(vector.body, headers), JSON.parse(vector.body));
        assert.throws(() => new Webhook(secret).verify(`${vector.body} `, headers));
      }
      const stranger = `whsec_${Buffer.alloc(32).toString('base64')}`;
      assert.throws(() => new Webhook(stranger).verify(vector.body, headers));
    });
  }

  test('sign the documented scheme with the new secret alone after a rotation', () => {
    const rotated = VECTORS.find(({ previous_secret }) => previous_secret !== null);
    assert.ok(rotated);
    assert.equal(
      headersOf(rotated)['X-Service-Signature'],
      headersOf({ ...rotated, previous_secret: null })['X-Service-Signature'],
    );
  });
});
