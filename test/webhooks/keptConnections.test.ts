import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { parseCidrs } from '../../src/access/ipAddress.ts';
import {
  CONNECTION_LIMITS,
  type ConnectionLimits,
  type ConnectionOwner,
  ReceiverConnections,
} from '../../src/webhooks/delivery/receiverConnections.ts';
import { sendWebhook, type WebhookRequest } from '../../src/webhooks/delivery/sendWebhook.ts';
import { waitFor } from '../support/waitFor.ts';
import {
  answering,
  outcomeOf,
  RECEIVER_NAME,
  receiverCertificate,
  startTlsReceiver,
  type TlsReceiver,
} from '../support/webhooks/tlsReceiver.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const CERTIFICATE = await receiverCertificate();
const ENDPOINT: ConnectionOwner = { webhookId: 1, accountId: 1, revision: 'a' };
/** Of attempts that are meant to run into it. */
const SHORT_MS = 400;

interface Sender {
  readonly pool: ReceiverConnections;
  /** What an attempt came to. */
  send(change?: Partial<WebhookRequest>): Promise<string>;
}

/** A receiver that gives the nth request of all the nth answer, the last one for ever, and who sends to it. */
async function startBoth(
  t: TestContext,
  answers: readonly ((socket: TLSSocket) => void)[],
  limits: Partial<ConnectionLimits> = {},
): Promise<Sender & TlsReceiver> {
  let requests = 0;
  const receiver = await startTlsReceiver(
    t,
    CERTIFICATE,
    (socket) => answers[Math.min(requests++, answers.length - 1)]?.(socket),
    '0.0.0.0',
  );
  const pool = new ReceiverConnections({ ...CONNECTION_LIMITS, ...limits });
  t.after(() => pool.destroy());
  const nets = parseCidrs('127.0.0.0/8');
  assert.ok(nets.ok);
  const allowNets = nets.value;
  const send = (change: Partial<WebhookRequest> = {}): Promise<string> =>
    outcomeOf(
      sendWebhook(pool, {
        owner: ENDPOINT,
        url: `https://${RECEIVER_NAME}:${receiver.port}/`,
        headers: { 'X-Service-Delivery-Attempt': '1' },
        body: '{}',
        allowNets,
        resolve: answering('127.0.0.1'),
        ca: CERTIFICATE.certificatePem,
        ...change,
      }),
    );
  return { ...receiver, pool, send };
}

const ok = (socket: TLSSocket) => void socket.write(OK);

describe('a kept connection', () => {
  test('serves the later deliveries of its endpoint, one after the other', async (t) => {
    const { send, pool, requests, connections } = await startBoth(t, [ok]);
    for (let n = 0; n < 5; n++) assert.equal(await send(), '200');
    assert.equal(requests.length, 5);
    assert.equal(connections(), 1);
    assert.equal(pool.keptCount, 1);
  });

  test('serves no other endpoint, not even one with the same url', async (t) => {
    const { send, connections } = await startBoth(t, [ok]);
    await send();
    await send({ owner: { ...ENDPOINT, webhookId: 2 } });
    await send();
    assert.equal(connections(), 2);
  });

  test('is closed when its endpoint has changed', async (t) => {
    const { send, pool, connections } = await startBoth(t, [ok]);
    await send();
    await send({ owner: { ...ENDPOINT, revision: 'b' } });
    assert.equal(connections(), 2);
    assert.equal(pool.keptCount, 1);
  });

  test('is closed when its address is no longer among those that were checked for this delivery', async (t) => {
    const { send, pool, connections } = await startBoth(t, [ok]);
    await send();
    await send({ resolve: answering('127.0.0.2', '127.0.0.1') });
    assert.equal(connections(), 1, 'it is among them');
    await send({ resolve: answering('127.0.0.2') });
    assert.equal(connections(), 2);
    assert.equal(pool.keptCount, 1);
  });

  test('gets nothing when an address of its name is no longer safe', async (t) => {
    const { send, requests } = await startBoth(t, [ok]);
    await send();
    assert.equal(await send({ resolve: answering('127.0.0.1', '10.0.0.1') }), 'unsafe');
    assert.equal(requests.length, 1);
  });

  test('serves a limited number of requests', async (t) => {
    const { send, connections } = await startBoth(t, [ok], { requests: 2 });
    for (let n = 0; n < 5; n++) await send();
    assert.equal(connections(), 3);
  });

  test('ends when its certificate was verified too long ago', async (t) => {
    const { send, connections } = await startBoth(t, [ok]);
    await send();
    const laterMs = performance.now() + CONNECTION_LIMITS.verifiedMs;
    t.mock.method(performance, 'now', () => laterMs + 1);
    await send();
    assert.equal(connections(), 2);
  });

  test('ends when it has not been used for a while', async (t) => {
    const { send, pool, connections } = await startBoth(t, [ok], { idleMs: 50 });
    await send();
    await waitFor(() => pool.keptCount === 0);
    await send();
    assert.equal(connections(), 2);
  });

  test('is one of few: of its account, and of all; those that have rested longest go first', async (t) => {
    const limits = { kept: 3, keptPerAccount: 2 };
    const { send, pool, connections } = await startBoth(t, [ok], limits);
    const of = (accountId: number, webhookId: number) =>
      send({ owner: { webhookId, accountId, revision: '' } });
    await of(1, 1);
    await of(2, 2);
    await of(1, 3);
    await of(1, 4); // the third of its account: 1 goes
    assert.equal(pool.keptCount, 3);
    assert.equal(connections(), 4);
    await of(2, 2);
    await of(1, 3);
    assert.equal(connections(), 4, 'these were kept');
    await of(3, 5); // the fourth of all: 4 goes
    assert.equal(pool.keptCount, 3);
    await of(1, 4);
    await of(1, 1);
    assert.equal(connections(), 7, 'these were not');
  });

  test('is closed when the pod stops', async (t) => {
    const ended = Promise.withResolvers<void>();
    const { send, pool } = await startBoth(t, [
      (socket) => {
        socket.once('close', () => ended.resolve());
        ok(socket);
      },
    ]);
    await send();
    pool.destroy();
    await ended.promise;
    assert.equal(pool.keptCount, 0);
  });
});

describe('no connection is kept', () => {
  const rows: readonly [string, (socket: TLSSocket) => void][] = [
    [
      'when the receiver says that it closes',
      (socket) => socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'),
    ],
    ['of HTTP/1.0', (socket) => socket.write('HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n')],
    [
      'when less than two seconds of it are promised',
      (socket) => socket.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n'),
    ],
    [
      'when the answer has more than is read',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n${'x'.repeat(20_000)}`),
    ],
    ['when more comes than the answer', (socket) => socket.write(`${OK}${OK}`)],
  ];
  for (const [when, answer] of rows) {
    test(when, async (t) => {
      const { send, connections } = await startBoth(t, [answer]);
      for (let n = 1; n <= 2; n++) {
        assert.equal(await send(), '200');
        assert.equal(connections(), n);
      }
    });
  }

  test('when the receiver speaks later though nobody has asked', async (t) => {
    const { send, pool, connections } = await startBoth(t, [
      (socket) => {
        ok(socket);
        setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'), 20);
      },
      (socket) => socket.write('HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n'),
    ]);
    await send();
    await waitFor(() => pool.keptCount === 0);
    assert.equal(await send(), '503', 'the answer to this delivery, not what was said before it');
    assert.equal(connections(), 2);
  });

  test('after an answer that drips', async (t) => {
    const drip = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n.';
    const { send, connections } = await startBoth(t, [ok, (socket) => socket.write(drip), ok]);
    await send();
    assert.equal(await send({ deadlineMs: SHORT_MS }), 'timeout');
    await send();
    assert.equal(connections(), 2);
  });
});

describe('a receiver that closes a kept connection', () => {
  test('between two deliveries gets the second over a new one, once', async (t) => {
    const { send, pool, requests, connections } = await startBoth(t, [
      (socket) => {
        ok(socket);
        setTimeout(() => socket.end(), 20);
      },
      ok,
    ]);
    await send();
    await waitFor(() => pool.keptCount === 0);
    assert.equal(await send(), '200');
    assert.equal(requests.length, 2);
    assert.equal(connections(), 2);
  });

  for (const [how, close] of [
    ['without a word', (socket: TLSSocket) => void socket.destroy()],
    ['in order', (socket: TLSSocket) => void socket.end()],
  ] as const) {
    test(`under a request ${how} gets the same request again, and that is one attempt`, async (t) => {
      const { send, requests, connections } = await startBoth(t, [ok, close, ok]);
      await send();
      assert.equal(await send(), '200');
      assert.equal(connections(), 2);
      assert.equal(requests.length, 3);
      assert.equal(requests[2], requests[1]);
    });
  }

  test('and the next one under the same request has failed the attempt', async (t) => {
    const { send, requests } = await startBoth(t, [ok, (socket) => socket.destroy()]);
    await send();
    assert.equal(await send(), 'connection_reset');
    assert.equal(requests.length, 3);
  });

  test('after the first byte of its answer has failed the attempt', async (t) => {
    const { send, requests } = await startBoth(t, [ok, (socket) => socket.end('HTTP/1.1 2'), ok]);
    await send();
    assert.equal(await send(), 'connection_reset');
    assert.equal(requests.length, 2);
  });

  test('is not sent the request again when the time for it is over', async (t) => {
    const { send, requests } = await startBoth(t, [ok, (socket) => socket.destroy(), () => undefined]);
    await send();
    assert.equal(await send({ deadlineMs: SHORT_MS }), 'timeout', 'one deadline for both');
    const lateMs = performance.now();
    assert.equal(await send({ sendUntilMs: lateMs }), 'unsent');
    assert.equal(requests.length, 3);
  });
});
