import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { sendStreamed } from '../../src/http/longBody.ts';
import { serve } from '../support/http/serve.ts';

test('a reader that stops reading is sent no more than buffers hold, and is cut off after a time', async () => {
  const piece = Buffer.alloc(64 * 1024, 'x');
  let pieces = 0;
  const closed = Promise.withResolvers<void>();
  const body = {
    bytes: null,
    stallLimitMs: 300,
    open: async () => undefined,
    next: async (take: (piece: Buffer) => void) => {
      take(piece);
      pieces++;
      return true;
    },
    close: () => closed.resolve(),
  };
  const { port, close } = await serve(
    undefined,
    (_request, response) => void sendStreamed(response, body, () => undefined),
  );
  const socket = connect(port, '127.0.0.1');
  try {
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await closed.promise;
    assert.ok(pieces > 1 && pieces < 1_000, `${pieces} pieces`);
  } finally {
    socket.destroy();
    await close();
  }
});
