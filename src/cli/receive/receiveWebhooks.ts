import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { parseJson } from '../../lib/parseJson.ts';
import type { SelfSignedCertificate } from './selfSignedCertificate.ts';

/** A delivery as it is shown. */
export interface ReceivedWebhook {
  readonly delivery_id: string | null;
  readonly attempt: number | null;
  readonly signature: 'valid' | 'invalid' | 'unchecked';
  /** As JSON; as text where it is none. */
  readonly body: unknown;
}

export interface ReceiverOptions {
  readonly port: number;
  readonly certificate: SelfSignedCertificate;
  /** `whsec_…`; undefined: signatures are not checked. */
  readonly secret: string | undefined;
  readonly onReceived: (webhook: ReceivedWebhook) => void;
}

const HOST = '127.0.0.1';
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * A receiver of webhooks on the loopback, as the API document wants one: verifies the raw body in constant time,
 * answers 401 to a wrong signature, 200 to everything else. Rejects when it cannot listen.
 */
export async function receiveWebhooks({ port, certificate, secret, onReceived }: ReceiverOptions) {
  const { certificatePem: cert, privateKeyPem: key } = certificate;
  const server = createServer({ cert, key }, (request, response) => {
    readBody(request).then(
      (body) => {
        if (body === null) return response.writeHead(413, { Connection: 'close' }).end();
        const webhook = describe(request, body, secret);
        onReceived(webhook);
        return response.writeHead(webhook.signature === 'invalid' ? 401 : 200).end();
      },
      () => response.destroy(), // the sender went away
    );
  });
  server.listen(port, HOST);
  await once(server, 'listening');
  return {
    url: `https://${HOST}:${(server.address() as AddressInfo).port}/`,
    close: async (): Promise<void> => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The raw body; null when it is larger than any delivery. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function describe({ headers }: IncomingMessage, body: Buffer, secret: string | undefined): ReceivedWebhook {
  const header = (name: string) => headers[name]?.toString() ?? null;
  const attempt = header('x-service-delivery-attempt');
  const parsed = parseJson(body);
  return {
    delivery_id: header('x-service-delivery-id'),
    attempt: attempt === null ? null : Number(attempt),
    signature: secret === undefined ? 'unchecked' : check(header('x-service-signature') ?? '', body, secret),
    body: parsed.ok ? parsed.value : body.toString('utf8'),
  };
}

function check(signature: string, body: Buffer, secret: string): 'valid' | 'invalid' {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected) ? 'valid' : 'invalid';
}
