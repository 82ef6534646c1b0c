import assert from 'node:assert/strict';
import { Agent, get as httpGet, type RequestListener, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { close, createHttpServer, listen } from '../../src/http/server.ts';
import { waitFor } from '../support/waitFor.ts';

const GRACE_MS = 10_000;

async function serve(t: TestContext, listener: RequestListener): Promise<{ server: Server; port: number }> {
  const server = createHttpServer(listener);
  const port = await listen(server, 0, '127.0.0.1');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, port };
}

/** A socket of a client, and what it has got so far. */
function dial(t: TestContext, port: number): { socket: Socket; got: () => string; ended: Promise<void> } {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return { socket, got: () => text, ended };
}

const hello: RequestListener = (_request, response) => response.end('hello');

/** All that comes back for these bytes until the server hangs up. */
async function answerTo(t: TestContext, bytes: string): Promise<string> {
  const { port } = await serve(t, hello);
  const { socket, got, ended } = dial(t, port);
  socket.write(bytes);
  await ended;
  return got();
}

describe('slow clients', () => {
  test('are cut: 10 s for the headers, 60 s for the request, 75 s between requests, 150 s of silence', async (t) => {
    const { server } = await serve(t, hello);
    assert.deepEqual(
      [server.headersTimeout, server.requestTimeout, server.keepAliveTimeout, server.timeout],
      [10_000, 60_000, 75_000, 150_000],
    );
  });

  test('keep nobody else from an answer, whether they send a header or a body slowly, or nothing', async (t) => {
    const { port } = await serve(t, (request, response) => {
      // A request without a body is at its end from the start.
      if (request.readableEnded) response.end('hello');
      else request.resume().once('end', () => response.end('hello'));
    });
    for (let n = 0; n < 100; n++) {
      const { socket } = dial(t, port);
      if (n % 3 === 1) socket.write('GET / HTTP/1.1\r\nHost: x\r\nX-Drip: a');
      if (n % 3 === 2) socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx');
    }
    const reply = await fetch(`http://127.0.0.1:${port}/`);
    assert.equal(await reply.text(), 'hello');
  });

  test('are cut after a 400 when they do not hang up, and what they hold is given back', async (t) => {
    const { port } = await serve(t, (request) => void request.resume().once('close', () => closed.resolve()));
    const closed = Promise.withResolvers<void>();
    const { socket, got } = dial(t, port);
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\nno chunk\r\n');
    await closed.promise;
    assert.match(got(), /^HTTP\/1\.1 400 /);
  });

  test('are answered with 408 and cut when their headers do not end, and cut without a word when they do not begin', async (t) => {
    const { server, port } = await serve(t, hello);
    const dripping = dial(t, port);
    dripping.socket.write('GET / HTTP/1.1\r\nHost: x\r\n');
    const silent = dial(t, port);
    await waitFor(() => dripping.socket.readyState === 'open' && silent.socket.readyState === 'open');
    server.headersTimeout = 1; // looked at every 5 s
    await Promise.all([dripping.ended, silent.ended]);
    assert.match(dripping.got(), /^HTTP\/1\.1 408 .*"code":"BAD_REQUEST"/s);
    assert.equal(silent.got(), '', 'no request, no answer');
  });
});

describe('what is no request is answered in the envelope, and its connection ended:', () => {
  const long = `A: ${'a'.repeat(17_000)}`;
  const cases: [title: string, status: number, code: string, ...lines: string[]][] = [
    ['garbage', 400, 'BAD_REQUEST', 'hello'],
    ['headers over 16 KB', 431, 'HEADERS_TOO_LARGE', 'GET / HTTP/1.1', 'Host: x', long],
    [
      'two lengths',
      400,
      'BAD_REQUEST',
      'POST / HTTP/1.1',
      'Host: x',
      'Content-Length: 1',
      'Content-Length: 2',
    ],
    [
      'a length and chunks',
      400,
      'BAD_REQUEST',
      ...['POST / HTTP/1.1', 'Host: x', 'Content-Length: 1', 'Transfer-Encoding: chunked'],
    ],
    ['no Host', 400, 'BAD_REQUEST', 'GET / HTTP/1.1'],
    ['two Hosts', 400, 'BAD_REQUEST', 'GET / HTTP/1.1', 'Host: x', 'Host: y'],
    ['the same Host twice', 400, 'BAD_REQUEST', 'GET / HTTP/1.1', 'Host: x', 'A: b', 'hOST: x'],
    ['two Hosts in HTTP/1.0', 400, 'BAD_REQUEST', 'GET / HTTP/1.0', 'Host: x', 'Host: y'],
    ['an expectation without a Host', 400, 'BAD_REQUEST', 'GET / HTTP/1.1', 'Expect: tea'],
  ];
  for (const [title, status, code, ...lines] of cases) {
    test(title, async (t) => {
      const answer = await answerTo(t, `${lines.join('\r\n')}\r\n\r\n`);
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} .*"code":"${code}"`, 's'));
    });
  }

  test('with X-API-Status when it was for v3', async (t) => {
    for (const [request, isBeta] of [
      ['GET /api/v3/devices HTTP/1.1', true],
      [`GET /api/v3?a HTTP/1.1\r\nHost: x\r\n${long}`, true],
      ['GET /api/v3/devices HTTP/1.1\r\nHost: x\r\nA b: c', true],
      ['GET /api/v30 HTTP/1.1', false],
      ['GET /api/v2/devices HTTP/1.1\r\nHost: x\r\nA b: c', false],
    ] as const) {
      const answer = await answerTo(t, `${request}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1\.1 4\d\d /);
      assert.equal(/^X-API-Status: beta\r$/m.test(answer), isBeta, answer);
    }
  });
});

describe('a request is read', () => {
  test('without a Host in HTTP/1.0', async (t) => {
    assert.match(await answerTo(t, 'GET / HTTP/1.0\r\n\r\n'), /hello$/);
  });
});

describe('closing a server', () => {
  test('answers what is in flight, also on a connection that is kept, and waits no longer', async (t) => {
    const arrived = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const { server, port } = await serve(t, async (_request, response) => {
      arrived.resolve();
      await released.promise;
      response.end('late');
    });
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const answer = new Promise<string>((resolve, reject) => {
      httpGet({ port, host: '127.0.0.1', agent }, (response) => {
        response.setEncoding('utf8').on('data', resolve);
      }).on('error', reject);
    });
    await arrived.promise;
    const sinceMs = performance.now();
    const closed = close(server, GRACE_MS);
    released.resolve();
    assert.equal(await answer, 'late');
    await closed;
    assert.ok(performance.now() - sinceMs < GRACE_MS / 2);
  });

  test('closes a connection with the answer to what is asked on it meanwhile', async (t) => {
    const { server, port } = await serve(t, hello);
    const { socket, got, ended } = dial(t, port);
    // The first half of a request keeps the connection from being idle.
    socket.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\n');
    await waitFor(() => got().includes('hello'));
    const closed = close(server, GRACE_MS);
    socket.write('Host: x\r\n\r\n');
    await Promise.all([ended, closed]);
    assert.match(got(), /Connection: close\r\n/i);
  });

  test('answers what is on its way at that moment on an idle connection', async (t) => {
    const { server, port } = await serve(t, hello);
    const { socket, got, ended } = dial(t, port);
    socket.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\n');
    await waitFor(() => got().endsWith('hello'));
    const closed = close(server, GRACE_MS, GRACE_MS / 2);
    // As from a proxy that has not learnt of it yet.
    setImmediate(() => socket.write('POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n'));
    await Promise.all([ended, closed]);
    assert.match(got(), /hello.*Connection: close.*hello$/s);
  });

  test('keeps idle connections no longer than it was asked to', async (t) => {
    const { server, port } = await serve(t, hello);
    const { socket, got, ended } = dial(t, port);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await waitFor(() => got().endsWith('hello'));
    await close(server, GRACE_MS, 20);
    await ended;
  });

  test('cuts what has not finished within the grace', async (t) => {
    const { server, port } = await serve(t, () => undefined);
    const { socket, ended } = dial(t, port);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await waitFor(async () => (await connections(server)) === 1);
    await close(server, 20);
    await ended;
  });
});

test('listening on a port that is taken fails with its name', async (t) => {
  const { port } = await serve(t, hello);
  await assert.rejects(listen(createHttpServer(hello), port, '127.0.0.1'), {
    message: `cannot listen on 127.0.0.1, port ${port}: another process listens there`,
  });
});

function connections(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}
