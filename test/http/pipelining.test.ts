import assert from 'node:assert/strict';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { createHttpServer, listen, WAITING_REQUESTS_MAX } from '../../src/http/server.ts';
import { waitFor } from '../support/waitFor.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** A client of a server with this listener, and what it has got so far. */
async function dial(
  t: TestContext,
  listener: RequestListener,
): Promise<{ socket: Socket; got: () => string }> {
  const server = createHttpServer(listener);
  const port = await listen(server, 0, '127.0.0.1');
  const socket = connect(port, '127.0.0.1');
  t.after(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  return { socket, got: () => text };
}

const answersIn = (text: string): number => text.split('HTTP/1.1 200 OK').length - 1;

describe('requests that do not wait for answers', () => {
  test('are answered while no more than the limit wait, again and again', async (t) => {
    const held: ServerResponse[] = [];
    const { socket, got } = await dial(t, (_request, response) => void held.push(response));
    for (let round = 1; round <= 3; round++) {
      socket.write(REQUEST.repeat(WAITING_REQUESTS_MAX + 1));
      await waitFor(() => held.length === WAITING_REQUESTS_MAX + 1);
      for (const response of held.splice(0)) response.end('hello');
      await waitFor(() => answersIn(got()) === round * (WAITING_REQUESTS_MAX + 1));
    }
  });

  test('end their connection when more wait, and no more of them are begun', async (t) => {
    let begun = 0;
    const { socket } = await dial(t, () => void begun++);
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.write(REQUEST.repeat(2_000));
    await closed;
    assert.equal(begun, WAITING_REQUESTS_MAX + 1);
  });

  test('do not keep a client of another connection from its answers', async (t) => {
    const server = createHttpServer((request, response) => {
      if (request.url === '/other') response.end('hello');
    });
    const port = await listen(server, 0, '127.0.0.1');
    const greedy = Array.from({ length: 20 }, () => connect(port, '127.0.0.1'));
    const other = connect(port, '127.0.0.1');
    t.after(() => {
      for (const socket of [...greedy, other]) socket.destroy();
      server.closeAllConnections();
      server.close();
    });
    let text = '';
    other.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    const cut = greedy.map((socket) => {
      socket.on('error', () => undefined);
      socket.write(REQUEST.repeat(2_000));
      return new Promise<void>((resolve) => socket.once('close', () => resolve()));
    });
    for (let answers = 1; answers <= 3; answers++) {
      other.write('GET /other HTTP/1.1\r\nHost: x\r\n\r\n');
      await waitFor(() => answersIn(text) === answers);
    }
    await Promise.all(cut);
    assert.equal(other.destroyed, false);
  });
});
