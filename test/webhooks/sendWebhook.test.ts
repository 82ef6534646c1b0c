import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { connect } from 'node:net';
import { after, describe, type TestContext, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { CidrSet, parseCidrs } from '../../src/access/ipAddress.ts';
import { type SelfSignedCertificate, selfSignedCertificate } from '../../src/cli/commands/webhook.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { ReceiverConnections } from '../../src/webhooks/delivery/receiverConnections.ts';
import {
  type Resolve,
  type SendResult,
  sendWebhook,
  type WebhookRequest,
} from '../../src/webhooks/delivery/sendWebhook.ts';
import {
  answering,
  outcomeOf,
  RECEIVER_NAME,
  receiverCertificate,
  startListener,
  startTlsReceiver,
} from '../support/webhooks/tlsReceiver.ts';

const BODY = JSON.stringify({ id: 'evt_1', data: { name: 'Città 🚚' } });
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** Of attempts that are meant to run into it. */
const SHORT_MS = 400;
const CERTIFICATE = await receiverCertificate();
const LOOPBACK = nets('127.0.0.0/8,::1');
const NOBODY = new CidrSet([]);
const connections = new ReceiverConnections();
after(() => connections.destroy());
let endpoints = 0;

function nets(text: string): CidrSet {
  const set = parseCidrs(text);
  assert.ok(set.ok);
  return set.value;
}

/** One attempt of an endpoint of its own to the receiver's name, which resolves to the loopback. */
function send(port: number, change: Partial<WebhookRequest> = {}): Promise<SendResult> {
  return sendWebhook(connections, {
    owner: { webhookId: ++endpoints, accountId: 1, revision: '' },
    url: `https://${RECEIVER_NAME}:${port}/in?a=b#c`,
    headers: { 'Content-Type': 'application/json', 'X-Service-Delivery-Id': 'dlv_1' },
    body: BODY,
    allowNets: LOOPBACK,
    resolve: answering('127.0.0.1'),
    ca: CERTIFICATE.certificatePem,
    ...change,
  });
}

const receiver = (t: TestContext, answer: (socket: TLSSocket) => void, host?: string) =>
  startTlsReceiver(t, CERTIFICATE, answer, host);

describe('a webhook that is sent', () => {
  test('carries the exact bytes, the headers given and the host of its URL', async (t) => {
    const { port, requests } = await receiver(t, (socket) => socket.end(OK));
    const result = await send(port);
    assert.equal(result.kind, 'answered');
    assert.ok(result.kind === 'answered' && Number.isInteger(result.durationMs) && result.durationMs >= 0);
    const [head = '', body = ''] = (requests[0] ?? '').split('\r\n\r\n');
    assert.equal(Buffer.from(body, 'latin1').toString('utf8'), BODY);
    const [line, ...headers] = head.split('\r\n');
    assert.equal(line, 'POST /in?a=b HTTP/1.1');
    assert.deepEqual(headers.map((header) => header.toLowerCase()).sort(), [
      'connection: keep-alive',
      `content-length: ${Buffer.byteLength(BODY)}`,
      'content-type: application/json',
      `host: ${RECEIVER_NAME}:${port}`,
      'user-agent: fleet-tracking-service',
      'x-service-delivery-id: dlv_1',
    ]);
  });

  const statuses = [200, 201, 204, 299, 300, 301, 304, 307, 400, 401, 410, 429, 500, 503];
  test('reports the status it was answered with, whichever it is', async (t) => {
    for (const status of statuses) {
      const { port } = await receiver(t, (socket) => socket.end(`HTTP/1.1 ${status} X\r\n\r\n`));
      assert.equal(await outcomeOf(send(port)), String(status));
    }
  });

  test('reports how the answer begins, also of one that is longer than is read', async (t) => {
    for (const [body, answer] of [
      ['', ''],
      ['{"error":"bu', '{"error":"bu'],
      ['z'.repeat(100_000), `${'z'.repeat(1_021)}…`],
    ] as const) {
      const { port } = await receiver(t, (socket) => socket.end(`HTTP/1.1 500 X\r\n\r\n${body}`));
      const result = await send(port);
      assert.deepEqual(result.kind === 'answered' && [result.statusCode, result.answer], [500, answer]);
    }
  });

  test('follows no redirect to the inside', async (t) => {
    const inside = await startListener(t);
    const { port, requests } = await receiver(t, (socket) =>
      socket.end(
        `HTTP/1.1 307 X\r\nLocation: https://127.0.0.1:${inside.port}/\r\nContent-Length: 0\r\n\r\n`,
      ),
    );
    assert.equal(await outcomeOf(send(port)), '307');
    assert.equal(requests.length, 1);
    await assertUntouched(inside);
  });

  test('asks no proxy of the environment', async (t) => {
    const proxy = await startListener(t, (socket) => socket.destroy());
    const { port, requests } = await receiver(t, (socket) => socket.end(OK));
    const script = `
      const { sendWebhook } = await import(${JSON.stringify(import.meta.resolve('../../src/webhooks/delivery/sendWebhook.ts'))});
      const { ReceiverConnections } = await import(${JSON.stringify(import.meta.resolve('../../src/webhooks/delivery/receiverConnections.ts'))});
      const { parseCidrs } = await import(${JSON.stringify(import.meta.resolve('../../src/access/ipAddress.ts'))});
      console.log((await sendWebhook(new ReceiverConnections(), { owner: { webhookId: 1, accountId: 1, revision: '' },
        url: 'https://127.0.0.1:${port}/', headers: {}, body: '{}',
        allowNets: parseCidrs('127.0.0.1').value, ca: ${JSON.stringify(CERTIFICATE.certificatePem)} })).statusCode);`;
    const url = `http://127.0.0.1:${proxy.port}`;
    const env = {
      ...process.env,
      NODE_USE_ENV_PROXY: '1',
      HTTPS_PROXY: url,
      https_proxy: url,
      NO_PROXY: '',
      no_proxy: '',
    };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      env,
    });
    assert.equal(stdout.trim(), '200');
    assert.equal(requests.length, 1);
    await assertUntouched(proxy);
  });
});

describe('a receiver that misbehaves', () => {
  const rows: [string, string, (socket: TLSSocket) => void][] = [
    ['answers nothing', 'timeout', () => undefined],
    ['sends half a head', 'timeout', (socket) => socket.write('HTTP/1.1 200 OK\r\nX-A: ')],
    ['drips its body', 'timeout', drip],
    ['resets before it answers', 'connection_reset', (socket) => socket.destroy()],
    ['closes before it answers', 'connection_reset', (socket) => socket.end()],
    [
      'closes in the middle of its body',
      'connection_reset',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'),
    ],
    [
      'closes in the middle of a chunked body',
      'connection_reset',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal'),
    ],
    ['answers no HTTP', 'invalid_response', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n\r\n')],
    [
      'sends a head without end',
      'invalid_response',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(40_000)}`),
    ],
    [
      'sends interim answers without end',
      'invalid_response',
      (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)),
    ],
    [
      'sends an interim answer, then a real one',
      '202',
      (socket) => socket.end('HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 X\r\n\r\n'),
    ],
    ['sends more than it announced', '200', (socket) => socket.end(`${OK}and more`)],
  ];
  for (const [what, expected, answer] of rows) {
    test(`that ${what}: ${expected}`, async (t) => {
      const { port } = await receiver(t, answer);
      // Only the attempts that are meant to wait get a short deadline.
      const deadlineMs = expected === 'timeout' ? SHORT_MS : 10_000;
      assert.equal(await outcomeOf(send(port, { deadlineMs })), expected);
    });
  }

  test('that switches protocols has not accepted the delivery', async (t) => {
    const { port } = await receiver(t, (socket) =>
      socket.write('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    );
    assert.equal(await outcomeOf(send(port)), 'connection_reset');
  });

  test('that answers 2xx with a gigabyte is cut off without harm', async (t) => {
    let written = 0;
    const closed = Promise.withResolvers<void>();
    const { port } = await receiver(t, (socket) => {
      socket.on('close', () => closed.resolve());
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n');
      const chunk = Buffer.alloc(64 * 1024);
      const pour = () => {
        do written += chunk.length;
        while (!socket.destroyed && socket.write(chunk));
      };
      socket.on('drain', pour);
      pour();
    });
    assert.equal(await outcomeOf(send(port)), '200');
    await closed.promise;
    assert.ok(written < 64 * 1024 * 1024, `${written} bytes left the receiver`);
  });

  test('that never shakes hands runs into the deadline', async (t) => {
    const { port } = await startListener(t);
    assert.equal(await outcomeOf(send(port, { deadlineMs: SHORT_MS })), 'timeout');
  });

  test('is not sent after the time by which it had to be, though its connection is ready', async (t) => {
    const { port, requests } = await receiver(t, (socket) => socket.end(OK));
    assert.equal(await outcomeOf(send(port, { sendUntilMs: performance.now() - 1 })), 'unsent');
    assert.equal(await outcomeOf(send(port)), '200');
    assert.equal(requests.length, 1);
  });

  test('that speaks no TLS is a failure of TLS', async (t) => {
    const { port } = await startListener(t, (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    assert.equal(await outcomeOf(send(port)), 'tls_failed');
  });

  test('that is not there refuses the connection', async () => {
    assert.equal(await outcomeOf(send(1)), 'connection_refused');
  });
});

describe('the certificate', async () => {
  const rows: [string, SelfSignedCertificate, boolean][] = [
    ['of another name', await receiverCertificate(['other.example.com', '127.0.0.1']), true],
    ['of a parent name', await receiverCertificate(['example.com', '*.hook.example.com']), true],
    [
      'that has expired',
      await selfSignedCertificate([RECEIVER_NAME], Date.now() - 2 * DAY_MS, Date.now() - DAY_MS),
      true,
    ],
    [
      'that is not valid yet',
      await selfSignedCertificate([RECEIVER_NAME], Date.now() + DAY_MS, Date.now() + 2 * DAY_MS),
      true,
    ],
    ['that nobody trusts', await receiverCertificate(), false],
  ];
  for (const [what, certificate, isTrusted] of rows) {
    test(`${what} is refused before a byte of the request is sent`, async (t) => {
      const { port, requests } = await startTlsReceiver(t, certificate, (socket) => socket.end(OK));
      const ca = isTrusted ? certificate.certificatePem : CERTIFICATE.certificatePem;
      assert.equal(await outcomeOf(send(port, { ca })), 'certificate_invalid');
      assert.equal(requests.length, 0);
    });
  }

  test('is checked by address when the URL names one', async (t) => {
    const { port } = await receiver(t, (socket) => socket.end(OK));
    assert.equal(await outcomeOf(send(port, { url: `https://127.0.0.1:${port}/` })), '200');
    const other = await startTlsReceiver(t, await receiverCertificate([RECEIVER_NAME]), (socket) =>
      socket.end(OK),
    );
    assert.notEqual(await outcomeOf(send(other.port, { url: `https://127.0.0.1:${other.port}/` })), '200');
  });

  test('is checked even where the environment switches that off for the process', async (t) => {
    const { port } = await startTlsReceiver(t, await receiverCertificate(), (socket) => socket.end(OK));
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    t.mock.method(process, 'emitWarning', () => undefined); // that the next line is unsafe
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    t.after(() => {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
    });
    assert.equal(await outcomeOf(send(port)), 'certificate_invalid');
  });
});

describe('the addresses of a receiver', () => {
  test('that are not public get no packet, alone or among others', async (t) => {
    const inside = await startListener(t);
    const answers = [['127.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['::ffff:127.0.0.1'], ['64:ff9b::127.0.0.1']];
    for (const answer of answers) {
      const result = await send(inside.port, { allowNets: NOBODY, resolve: answering(...answer) });
      assert.deepEqual(result, { kind: 'unsafe' });
    }
    await assertUntouched(inside);
  });

  test('are asked for once, and the connection goes where the answer was checked', async (t) => {
    const inside = await startListener(t, undefined, '127.0.0.2');
    const { port, requests } = await receiver(t, (socket) => socket.end(OK));
    const answers = ['127.0.0.1', '127.0.0.2'];
    const asked: string[] = [];
    const resolve: Resolve = async (hostname) => {
      asked.push(hostname);
      return { kind: 'addresses', addresses: [answers[asked.length - 1] ?? '127.0.0.2'] };
    };
    assert.equal(await outcomeOf(send(port, { resolve, allowNets: nets('127.0.0.1') })), '200');
    assert.deepEqual(asked, [RECEIVER_NAME]);
    assert.equal(requests.length, 1);
    await assertUntouched(inside, '127.0.0.2');
  });

  test('are tried one after the other', async (t) => {
    const { port } = await receiver(t, (socket) => socket.end(OK));
    const resolve = answering('127.0.0.9', '::1', '127.0.0.1');
    assert.equal(await outcomeOf(send(port, { resolve })), '200');
  });

  test('of a localhost name are the loopback, as far as it is exempt', async (t) => {
    const { port } = await receiver(t, (socket) => socket.end(OK));
    const resolve: Resolve = () => assert.fail('DNS is not asked');
    const url = `https://localhost:${port}/`;
    assert.equal(await outcomeOf(send(port, { url, resolve, allowNets: nets('127.0.0.0/8') })), '200');
    assert.equal(await outcomeOf(send(port, { url, resolve, allowNets: nets('10.0.0.0/8') })), 'unsafe');
  });

  test('may be of IPv6', async (t) => {
    const six = await startTlsReceiver(t, CERTIFICATE, (socket) => socket.end(OK), '::1').catch(() => null);
    if (six === null) return t.skip('this machine has no IPv6 loopback');
    assert.equal(await outcomeOf(send(six.port, { url: `https://[::1]:${six.port}/` })), '200');
    assert.match(six.requests[0] ?? '', new RegExp(`\r\nHost: \\[::1\\]:${six.port}\r\n`));
    assert.equal(await outcomeOf(send(six.port, { resolve: answering('::1') })), '200');
  });

  const failures: [string, string, Resolve][] = [
    ['there is none', 'dns_not_found', async () => ({ kind: 'failed', error: 'dns_not_found' })],
    ['DNS fails', 'dns_failed', async () => ({ kind: 'failed', error: 'dns_failed' })],
    ['the answer is empty', 'dns_not_found', answering()],
    ['DNS never answers', 'timeout', () => new Promise(() => undefined)],
  ];
  for (const [when, expected, resolve] of failures) {
    test(`are an ordinary failure when ${when}`, async () => {
      assert.equal(await outcomeOf(send(443, { resolve, deadlineMs: SHORT_MS })), expected);
    });
  }
});

describe('sendWebhook', () => {
  test('answers with a value even for a header that HTTP cannot carry', async (t) => {
    const { port } = await receiver(t, (socket) => socket.end(OK));
    assert.equal(await outcomeOf(send(port, { headers: { 'X-Bad': 'a\nb' } })), 'invalid_request');
  });

  test('sends nothing to a URL that is no longer safe', async () => {
    for (const url of ['http://hook.example.com/', 'https://u@hook.example.com/', 'nonsense']) {
      assert.deepEqual(await send(443, { url }), { kind: 'unsafe' });
    }
  });
});

/** 200 OK, then a byte now and then for ever. */
function drip(socket: TLSSocket): void {
  socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n');
  const timer = setInterval(() => socket.write('.'), 20);
  socket.on('close', () => clearInterval(timer));
}

/** A connection of the test's own is the first that the listener sees: had there been another, it came before. */
async function assertUntouched(
  { port, connections }: { readonly port: number; readonly connections: () => number },
  host = '127.0.0.1',
): Promise<void> {
  const before = connections();
  assert.equal(before, 0);
  await new Promise<void>((resolve, reject) => {
    const socket = connect(port, host, () => {
      socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve());
  });
  while (connections() === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(connections(), 1);
}
