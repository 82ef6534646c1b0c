import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { StreamSink } from '../../src/http/answer.ts';
import { joinedChunk, liveChunk, sendLive } from '../../src/http/longBody.ts';
import { serve } from '../support/http/serve.ts';
import { waitFor } from '../support/waitFor.ts';

/** A server whose answers are live, and the sinks of those that were asked for. */
async function opened(t: TestContext) {
  const sinks: StreamSink[] = [];
  const waiting: ServerResponse[] = [];
  let closed = 0;
  const { port } = await serve(t, (request, response) => {
    if (request.url === '/before') {
      waiting.push(response);
      return;
    }
    const attach = (sink: StreamSink) => {
      sinks.push(sink);
      return { close: () => void closed++ };
    };
    sendLive(response, { attach });
  });
  /** Sends a request as it stands, and collects what comes. */
  const ask = (text: string) => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(text);
    const got = { socket, text: '' };
    socket.setEncoding('utf8').on('data', (part: string) => {
      got.text += part;
    });
    return got;
  };
  return { port, sinks, waiting, ask, closed: () => closed };
}

const LIVE = 'GET /live HTTP/1.1\r\nHost: x\r\n\r\n';
const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4);

test('chunks go out as they are, whoever they were made for, and the last text after them', async (t) => {
  const { port, sinks } = await opened(t);
  const texts = ['', ''];
  const ended = texts.map(async (_, n) => {
    const [response] = await once(get({ port, host: '127.0.0.1', agent: false }), 'response');
    for await (const part of response.setEncoding('utf8')) texts[n] += part;
  });
  await waitFor(() => sinks.length === 2);
  const [a, b] = [liveChunk('data: Straße\n\n'), liveChunk(`${'x'.repeat(100_000)}\n\n`)];
  for (const sink of sinks)
    for (const chunk of [a, b, joinedChunk([b.payload, a.payload])]) sink.write(chunk);
  sinks[0]?.end('retry: 500\n\n');
  sinks[1]?.end('');
  await Promise.all(ended);
  const all = [a, b, b, a].map(({ payload }) => payload.toString()).join('');
  assert.deepEqual(texts, [`${all}retry: 500\n\n`, all]);
});

test('a caller of HTTP/1.0, which knows no chunks, gets the payload alone', async (t) => {
  const { sinks, ask } = await opened(t);
  const got = ask('GET /live HTTP/1.0\r\n\r\n');
  await waitFor(() => sinks.length === 1);
  sinks[0]?.write(liveChunk('data: 1\n\n'));
  sinks[0]?.end('');
  await once(got.socket, 'close');
  assert.equal(bodyOf(got.text), 'data: 1\n\n');
});

test('what is written while an answer waits behind another of its connection comes first', async (t) => {
  const { sinks, waiting, ask } = await opened(t);
  const got = ask(`GET /before HTTP/1.1\r\nHost: x\r\n\r\n${LIVE}`);
  await waitFor(() => sinks.length === 1);
  const [sink] = sinks as [StreamSink];
  sink.write(liveChunk('1\n'));
  assert.ok(sink.pendingBytes > 0);
  waiting[0]?.end('before');
  // At once, and once the connection is its own.
  sink.write(liveChunk('2\n'));
  await waitFor(() => got.text.includes('2\n'));
  sink.write(liveChunk('3\n'));
  sink.end('');
  await waitFor(() => got.text.endsWith('0\r\n\r\n'));
  assert.equal(bodyOf(bodyOf(got.text)), '2\r\n1\n\r\n2\r\n2\n\r\n2\r\n3\n\r\n0\r\n\r\n');
  got.socket.destroy();
});

test('what a reader has not taken is counted, and drains when it is', async (t) => {
  const { sinks, ask, closed } = await opened(t);
  const got = ask(LIVE);
  got.socket.pause();
  await waitFor(() => sinks.length === 1);
  const [sink] = sinks as [StreamSink];
  const chunk = liveChunk('x'.repeat(1_000_000));
  for (let n = 0; n < 20; n++) sink.write(chunk);
  assert.ok(sink.pendingBytes > 10_000_000, `${sink.pendingBytes}`);
  let drained = 0;
  sink.onDrained(() => drained++);
  got.socket.resume();
  await waitFor(() => drained === 1);
  assert.equal(sink.pendingBytes, 0);
  got.socket.pause();
  for (let n = 0; n < 20; n++) sink.write(chunk);
  sink.onDrained(() => drained++);
  got.socket.destroy();
  await waitFor(() => drained === 2 && closed() === 1);
  sink.write(chunk);
  sink.onDrained(() => drained++);
  assert.equal(drained, 3);
});

test('an answer that has ended, and waits behind another of its connection, takes nothing more', async (t) => {
  const { sinks, waiting, ask } = await opened(t);
  const got = ask(`GET /before HTTP/1.1\r\nHost: x\r\n\r\n${LIVE}`);
  await waitFor(() => sinks.length === 1);
  const [sink] = sinks as [StreamSink];
  sink.end('1\n');
  sink.write(liveChunk('2\n'));
  sink.end('3\n');
  waiting[0]?.end('before');
  await waitFor(() => got.text.endsWith('0\r\n\r\n'));
  assert.equal(bodyOf(bodyOf(got.text)), '2\r\n1\n\r\n0\r\n\r\n');
  got.socket.destroy();
});
