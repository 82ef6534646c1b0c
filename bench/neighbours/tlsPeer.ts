import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { SelfSignedCertificate } from '../../src/cli/selfSignedCertificate.ts';

/** A receiver of webhooks on a free port of the loopback, until its process ends; returns its address. */
export function openReceiver(
  { certificatePem, privateKeyPem }: SelfSignedCertificate,
  receive: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer({ cert: certificatePem, key: privateKeyPem }, receive);
  // Senders hang up when their time is over.
  server.on('tlsClientError', () => undefined);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}
