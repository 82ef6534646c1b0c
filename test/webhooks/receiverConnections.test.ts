import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import { parseCidrs } from '../../src/access/ipAddress.ts';
import { CONNECTION_LIMITS, ReceiverConnections } from '../../src/webhooks/delivery/receiverConnections.ts';
import { sendWebhook } from '../../src/webhooks/delivery/sendWebhook.ts';
import { trustedCertificate } from '../support/webhooks/receiver.ts';
import { receiverCertificate } from '../support/webhooks/tlsReceiver.ts';

const nets = parseCidrs('127.0.0.0/8');

/** Closes each connection after one answer; which of them have resumed a session. */
async function startServer(
  t: TestContext,
  certificate: Awaited<ReturnType<typeof trustedCertificate>>,
  port = 0,
) {
  const reused: boolean[] = [];
  const server = createServer({ cert: certificate.certificatePem, key: certificate.privateKeyPem });
  server.on('tlsClientError', () => undefined); // senders refuse on purpose
  server.on('secureConnection', (socket: TLSSocket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      reused.push(socket.isSessionReused());
      socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = () => new Promise((resolve) => server.close(resolve));
  t.after(close);
  return { port: (server.address() as AddressInfo).port, reused, close };
}

function connectionsOf(t: TestContext, limits = CONNECTION_LIMITS): ReceiverConnections {
  const connections = new ReceiverConnections(limits);
  t.after(() => connections.destroy());
  return connections;
}

function send(connections: ReceiverConnections, port: number) {
  assert.ok(nets.ok);
  return sendWebhook(connections, {
    owner: { webhookId: 1, accountId: 1, revision: '' },
    url: `https://127.0.0.1:${port}/`,
    headers: {},
    body: '{}',
    allowNets: nets.value,
  });
}

test('a new connection after a closed one resumes its session', async (t) => {
  const { port, reused } = await startServer(t, await trustedCertificate());
  const connections = connectionsOf(t);
  for (let n = 0; n < 3; n++) assert.equal((await send(connections, port)).kind, 'answered');
  assert.deepEqual(reused, [false, true, true]);
});

test('a receiver that cannot resume a session, and has no trusted certificate, gets nothing', async (t) => {
  const first = await startServer(t, await trustedCertificate());
  const connections = connectionsOf(t);
  assert.equal((await send(connections, first.port)).kind, 'answered');
  await first.close();
  const impostor = await startServer(t, await receiverCertificate(), first.port);
  for (let n = 0; n < 2; n++) {
    const result = await send(connections, impostor.port);
    assert.equal(result.kind === 'failed' && result.error, 'certificate_invalid');
  }
  assert.deepEqual(impostor.reused, []);
});

test('no session is resumed once its certificate was verified too long ago, however often it was resumed', async (t) => {
  const { port, reused } = await startServer(t, await trustedCertificate());
  const connections = connectionsOf(t);
  let aheadMs = 0;
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + aheadMs);
  for (const stepMs of [0, 400_000, 300_000, 0]) {
    aheadMs += stepMs;
    assert.equal((await send(connections, port)).kind, 'answered');
  }
  assert.deepEqual(reused, [false, true, false, true]);
});
