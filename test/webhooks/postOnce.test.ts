import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseIpAddress } from '../../src/access/ipAddress.ts';
import { ReceiverConnections } from '../../src/webhooks/delivery/receiverConnections.ts';
import { postOnce } from '../../src/webhooks/delivery/sendWebhook.ts';
import { receiverCertificate, startTlsReceiver } from '../support/webhooks/tlsReceiver.ts';

for (const [name, isLate] of [
  ['in time is sent', false],
  ['too late is not sent, though no timer has said so yet: others may have taken over', true],
] as const) {
  test(`a request whose connection is ready ${name}`, async (t) => {
    const certificate = await receiverCertificate();
    const receiver = await startTlsReceiver(t, certificate, (socket) =>
      socket.end('HTTP/1.1 204 No Content\r\n\r\n'),
    );
    const address = parseIpAddress('127.0.0.1');
    assert.ok(address);
    const connections = new ReceiverConnections();
    t.after(() => connections.destroy());
    const exchange = await postOnce({
      url: new URL(`https://127.0.0.1:${receiver.port}/`),
      headers: {},
      body: '{}',
      addresses: [address],
      connections,
      owner: { webhookId: 1, accountId: 1, revision: '' },
      ca: certificate.certificatePem,
      signal: new AbortController().signal,
      untilMs: performance.now() + (isLate ? -1 : 60_000),
    });
    assert.deepEqual(exchange, isLate ? { kind: 'unsent' } : { kind: 'answered', statusCode: 204 });
    assert.equal(receiver.connections(), 1);
    assert.equal(receiver.requests.length, isLate ? 0 : 1);
  });
}
