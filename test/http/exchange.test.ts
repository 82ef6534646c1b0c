import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AnswerWriter, endSilent, StandingHeaders } from '../../src/http/exchange.ts';
import { bareExchange } from '../support/http/http.ts';
import { serve } from '../support/http/serve.ts';
import { waitFor } from '../support/waitFor.ts';

const LARGE = Buffer.alloc(16 * 1024 * 1024, 'x');
const writer = new AnswerWriter({ observe: () => undefined, fail: () => ({ status: 500, body: null }) }, []);

/** A server whose answers are handed over; what a test does when it is the turn of one decides when it goes out. */
const opened = async (t: TestContext, body: Buffer) => {
  const turns: (() => void)[] = [];
  let done = 0;
  const { port } = await serve(t, (request: IncomingMessage, response) => {
    const isDone = { value: false };
    const handover = {
      inTurn: (write: () => void) => void turns.push(write),
      done: () => {
        if (!isDone.value) done++;
        isDone.value = true;
      },
    };
    const exchange = {
      request,
      response,
      version: 'v3',
      pattern: '/x',
      startedAtMs: 0,
      span: null,
      unknown: null,
    } as const;
    writer.put(exchange, { status: 200, body, handover });
  });
  const open = (requests: string): Socket => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(requests);
    return socket;
  };
  return { turns, open, done: () => done };
};
const get = 'GET /x HTTP/1.1\r\nHost: x\r\n\r\n';

test(`an answer goes out in its turn, and is done when it was read`, async (t) => {
  const { turns, open, done } = await opened(t, Buffer.from('{}'));
  const socket = open(get);
  await waitFor(() => turns.length === 1);
  assert.equal(socket.bytesRead, 0);
  assert.equal(done(), 0);
  turns[0]?.();
  const [text] = await once(socket, 'data');
  assert.match(String(text), /^HTTP\/1.1 200/);
  await waitFor(() => done() === 1);
  socket.destroy();
});

test(`answers that nobody reads are done when their connection closes, the one behind another too`, async (t) => {
  const { turns, open, done } = await opened(t, LARGE);
  const socket = open(get + get);
  socket.pause();
  await waitFor(() => turns.length === 2);
  for (const turn of turns) turn();
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(done(), 0);
  socket.destroy();
  await waitFor(() => done() === 2);
});

test(`an answer to somebody who has left is done before its turn, which does no harm`, async (t) => {
  const { turns, open, done } = await opened(t, Buffer.from('{}'));
  const socket = open(get);
  await waitFor(() => turns.length === 1);
  socket.destroy();
  await waitFor(() => done() === 1);
  turns[0]?.();
});

/** What a server sends to each of some requests on one connection. */
async function sentBy(write: (response: ServerResponse) => void, requests: string): Promise<string> {
  const { url, close } = await serve(undefined, (_request, response) => {
    response.sendDate = false;
    write(response);
    response.end('{"a":1}');
  });
  const sent = await bareExchange(url, [requests]);
  await close();
  return sent;
}

test('Node still has the step that takes headers as text, and sends the same bytes by it', async () => {
  assert.equal(typeof (ServerResponse.prototype as { _storeHeader?: unknown })._storeHeader, 'function');
  const standing = new StandingHeaders(['X-One', '1', 'X-Two', "default-src 'self'"]);
  const get = (more = '') => `GET / HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
  for (const own of [
    ['Content-Length', '7'],
    [],
    ['X-Own', 'yes', 'Content-Type', 'text/plain', 'Content-Length', '7'],
  ]) {
    for (const status of [200, 201, 204, 304, 404, 503]) {
      for (const requests of [
        get() + get('Connection: close\r\n'),
        get('Connection: close\r\n').replace('GET', 'HEAD'),
        get().replace('HTTP/1.1', 'HTTP/1.0'),
      ]) {
        const [slow, fast] = await Promise.all([
          sentBy((response) => standing.write(response, status, own), requests),
          sentBy((response) => standing.writeFast(response, status, own), requests),
        ]);
        assert.match(slow, new RegExp(`^HTTP/1.1 ${status} .*\\r\\nX-One: 1\\r\\nX-Two: `));
        assert.equal(fast, slow);
      }
    }
  }
});

describe('a connection ends', () => {
  const LIMITS = { keepAliveTimeout: 300, keepAliveTimeoutBuffer: 0 };
  const BODY = Buffer.alloc(30_000_000, 'a');

  /** A client whose connection is looked at every 10 ms, and a second of silence in a request ends it. */
  async function dial(t: TestContext, listener: RequestListener): Promise<Socket> {
    const server = createServer(LIMITS, listener);
    server.setTimeout(1_000);
    endSilent(server, 10);
    t.after(() => server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => undefined);
    t.after(() => socket.destroy());
    return socket;
  }

  test('when nothing is asked on it', async (t) => {
    const socket = await dial(t, (_request, response) => response.end('hello'));
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const [answer] = await once(socket.setEncoding('latin1'), 'data');
    assert.match(answer, /hello$/);
    await once(socket, 'end');
  });

  test('when it has never asked anything', async (t) => {
    await once((await dial(t, () => undefined)).resume(), 'end');
  });

  test('when an answer is never read', async (t) => {
    const closed = Promise.withResolvers<void>();
    const socket = await dial(t, (_request, response) => {
      response.end(BODY).once('close', () => closed.resolve());
    });
    socket.pause().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await closed.promise;
  });

  test('not while an answer is read, however slowly', async (t) => {
    const socket = await dial(t, (_request, response) => response.end(BODY));
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    let taken = 0;
    const startMs = performance.now();
    for await (const piece of socket) {
      taken += (piece as Buffer).length;
      if (performance.now() - startMs < 2_500) await sleep(5);
      if (taken > BODY.length) break;
    }
    assert.ok(taken > BODY.length, `${taken} bytes`);
  });

  test('by a check that others do not wait for, however many connections there are', async (t) => {
    const server = new EventEmitter() as Server;
    endSilent(server, 1);
    t.after(() => server.emit('close'));
    let [checked, together, most] = [0, 0, 0];
    const connection = () =>
      Object.defineProperty(new EventEmitter(), 'bytesRead', {
        get: () => {
          const untilMs = performance.now() + 1;
          while (performance.now() < untilMs);
          checked++;
          most = Math.max(most, ++together);
          return 0;
        },
      });
    for (let n = 0; n < 100; n++) server.emit('connection', connection());
    while (checked < 100) {
      together = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(most < 10, `${most} connections were checked in one turn`);
  });

  test('by what Node calls for the timer of a connection', () => {
    assert.equal(typeof (Socket.prototype as { _onTimeout?: unknown })._onTimeout, 'function');
  });
});
