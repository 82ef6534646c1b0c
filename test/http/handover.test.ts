import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import type { Answer } from '../../src/http/answer.ts';
import { PollingWriter } from '../../src/http/pollingListener.ts';
import type { PollingEntry } from '../../src/http/pollingTable.ts';
import type { Route } from '../../src/http/route.ts';
import { send } from '../../src/http/send.ts';
import { waitFor } from '../support/waitFor.ts';

const LARGE = Buffer.alloc(16 * 1024 * 1024, 'x');
const entry: PollingEntry = { version: 'v3', route: {} as Route, known: null, pattern: '/x' };
const writer = new PollingWriter(
  () => undefined,
  () => ({ status: 500, body: null }),
);

const WAYS: Readonly<Record<string, (response: ServerResponse, answer: Answer, method?: string) => unknown>> =
  {
    'written by the router': (response, answer, method) => send(response, answer, method),
    'written before it': (response, answer) => writer.put(response, entry, answer, 0),
  };

for (const [name, write] of Object.entries(WAYS)) {
  /** A server whose answers are handed over; what a test does when it is the turn of one decides when it goes out. */
  const opened = async (body: Buffer) => {
    const turns: (() => void)[] = [];
    let done = 0;
    const server = createServer((request: IncomingMessage, response) => {
      const isDone = { value: false };
      const handover = {
        inTurn: (write: () => void) => void turns.push(write),
        done: () => {
          if (!isDone.value) done++;
          isDone.value = true;
        },
      };
      write(response, { status: 200, body, handover }, request.method);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    after(() => {
      server.closeAllConnections();
      server.close();
    });
    const open = (requests: string): Socket => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(requests);
      return socket;
    };
    return { turns, open, done: () => done };
  };
  const get = 'GET /x HTTP/1.1\r\nHost: x\r\n\r\n';

  test(`an answer ${name} goes out in its turn, and is done when it was read`, async () => {
    const { turns, open, done } = await opened(Buffer.from('{}'));
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

  test(`answers ${name} that nobody reads are done when their connection closes, the one behind another too`, async () => {
    const { turns, open, done } = await opened(LARGE);
    const socket = open(get + get);
    socket.pause();
    await waitFor(() => turns.length === 2);
    for (const turn of turns) turn();
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(done(), 0);
    socket.destroy();
    await waitFor(() => done() === 2);
  });

  test(`an answer ${name} to somebody who has left is done before its turn, which does no harm`, async () => {
    const { turns, open, done } = await opened(Buffer.from('{}'));
    const socket = open(get);
    await waitFor(() => turns.length === 1);
    socket.destroy();
    await waitFor(() => done() === 1);
    turns[0]?.();
  });
}
