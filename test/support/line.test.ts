import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type Line, openLine } from './line.ts';
import { waitFor } from './waitFor.ts';

/** A line to somebody who repeats everything in capitals. */
async function echoLine(t: TestContext): Promise<{ line: Line; heard: () => string }> {
  let heard = '';
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      heard += bytes;
      socket.write(String(bytes).toUpperCase());
    });
    socket.on('end', () => socket.end('.'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { line: await openLine(t, (server.address() as AddressInfo).port), heard: () => heard };
}

function callerOf(t: TestContext, { port }: Line): { socket: Socket; text: () => string } {
  let text = '';
  const socket = connect(port, '127.0.0.1').on('data', (bytes) => {
    text += bytes;
  });
  socket.on('error', () => undefined);
  t.after(() => socket.destroy());
  return { socket, text: () => text };
}

test('it carries both ways, to the last byte', async (t) => {
  const { line } = await echoLine(t);
  const { socket, text } = callerOf(t, line);
  socket.end('abc');
  await once(socket, 'close');
  assert.equal(text(), 'ABC.');
  assert.equal(line.sessions, 1);
  await waitFor(() => line.open === 0);
});

test('what is held arrives when it is healed, in order', async (t) => {
  const { line, heard } = await echoLine(t);
  const { socket, text } = callerOf(t, line);
  await waitFor(() => line.open === 1);
  line.hold();
  socket.write('a');
  socket.write('b');
  const later = callerOf(t, line);
  later.socket.write('c');
  await waitFor(() => line.sessions === 2);
  assert.equal(heard(), '');
  line.heal();
  await waitFor(() => text() === 'AB' && later.text() === 'C');
});

test('a silent connection stays open and silent after it is healed, a new one is not', async (t) => {
  const { line, heard } = await echoLine(t);
  const { socket } = callerOf(t, line);
  await waitFor(() => line.open === 1);
  line.fallSilent();
  socket.write('a');
  line.heal();
  socket.write('b');
  const later = callerOf(t, line);
  later.socket.write('c');
  await waitFor(() => later.text() === 'C');
  assert.equal(heard(), 'c');
  assert.equal(line.open, 2);
});

test('answers alone can be lost', async (t) => {
  const { line, heard } = await echoLine(t);
  const { socket, text } = callerOf(t, line);
  await waitFor(() => line.open === 1);
  line.loseAnswers();
  socket.write('a');
  await waitFor(() => heard() === 'a');
  assert.equal(text(), '');
});

test('it ends connections, and accepts none while it is parted or leads nowhere', async (t) => {
  const { line } = await echoLine(t);
  const { target } = line;
  const first = callerOf(t, line);
  await waitFor(() => line.open === 1);
  line.part();
  await once(first.socket, 'close');
  await once(callerOf(t, line).socket, 'close');
  line.heal();
  line.target = null;
  await once(callerOf(t, line).socket, 'close');
  line.target = target;
  const last = callerOf(t, line);
  last.socket.write('a');
  await waitFor(() => last.text() === 'A');
});

test('with a delay nothing is overtaken', async (t) => {
  const { line } = await echoLine(t);
  line.delayMs = 50;
  const { socket, text } = callerOf(t, line);
  socket.write('a');
  await waitFor(() => line.open === 1);
  line.delayMs = 0;
  socket.end('b');
  await once(socket, 'close');
  assert.equal(text(), 'AB.');
});
