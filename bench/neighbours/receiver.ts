import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { SelfSignedCertificate } from '../../src/cli/commands/webhook.ts';

/** Starts a webhook receiver on a free port of the loopback. It runs until the process ends. Returns its address. */
export function openReceiver(
  { certificatePem, privateKeyPem }: SelfSignedCertificate,
  receive: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer({ cert: certificatePem, key: privateKeyPem }, receive);
  // Senders close the connection when a request times out.
  server.on('tlsClientError', () => undefined);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}
