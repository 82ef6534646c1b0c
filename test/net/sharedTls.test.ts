import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import { parseCidrs } from '../../src/access/cidrSet.ts';
import { sendWebhook } from '../../src/net/sendWebhook.ts';
import { sharedAgent } from '../../src/net/sharedTls.ts';
import { trustedCertificate } from '../support/webhooks/receiver.ts';
import { receiverCertificate } from '../support/webhooks/tlsReceiver.ts';

const nets = parseCidrs('127.0.0.0/8');

/** Answers every request on a connection of its own; which of them have resumed a session. */
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

function send(port: number) {
  assert.ok(nets.ok);
  return sendWebhook({
    url: `https://127.0.0.1:${port}/`,
    headers: {},
    body: '{}',
    allowNets: nets.value,
  });
}

test('each delivery has a connection of its own, and those after the first resume its session', async (t) => {
  const { port, reused } = await startServer(t, await trustedCertificate());
  for (let n = 0; n < 3; n++) assert.equal((await send(port)).kind, 'answered');
  assert.deepEqual(reused, [false, true, true]);
});

test('a receiver that cannot resume a session, and has no trusted certificate, gets nothing', async (t) => {
  const first = await startServer(t, await trustedCertificate());
  assert.equal((await send(first.port)).kind, 'answered');
  await first.close();
  const impostor = await startServer(t, await receiverCertificate(), first.port);
  for (let n = 0; n < 2; n++) {
    const result = await send(impostor.port);
    assert.equal(result.kind === 'failed' && result.error, 'certificate_invalid');
  }
  assert.deepEqual(impostor.reused, []);
});

test('sessions are forgotten after ten minutes, and certificates are verified again', () => {
  // Far enough ahead that an agent which another test has made is too old.
  const nowMs = performance.now() + 700_000;
  const first = sharedAgent(nowMs);
  assert.equal(sharedAgent(nowMs + 500_000), first);
  assert.notEqual(sharedAgent(nowMs + 700_000 + 600_000), first);
});
