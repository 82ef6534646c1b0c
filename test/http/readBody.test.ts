import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import express, { type Request, type Response } from 'express';
import { readBody } from '../../src/http/readBody.ts';
import type { RequestBody } from '../../src/http/route.ts';

const MB = 1024 * 1024;

/** A server that reads one body of at most 4 MB, after `before`, and what became of it. */
async function serve(t: TestContext, before: (request: Request) => Promise<unknown> = async () => undefined) {
  const outcome = Promise.withResolvers<RequestBody>();
  outcome.promise.catch(() => undefined); // each test looks at it in its time
  const app = express();
  app.use(async (request: Request, response: Response) => {
    await before(request);
    await readBody(request, response, 4 * MB).then(outcome.resolve, outcome.reject);
    response.end();
  });
  const server = app.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  t.after(() => socket.destroy());
  return { socket, outcome: outcome.promise };
}

const head = (bytes: number) =>
  `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;

function patterned(bytes: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: bytes }, (_, i) => (i * 31 + (i >> 8)) & 0xff));
}

describe('a body is read as it was sent', () => {
  for (const bytes of [0, 1, MB - 1, MB, 3 * MB + 17, 4 * MB]) {
    test(`${bytes} bytes, in pieces`, async (t) => {
      const { socket, outcome } = await serve(t);
      const body = patterned(bytes);
      socket.write(head(bytes));
      for (let at = 0, size = 1; at < bytes; at += size, size = (size * 7 + 13) % 300_000) {
        socket.write(body.subarray(at, at + size));
      }
      const read = await outcome;
      assert.ok(Buffer.concat(read.pieces).equals(body));
      assert.equal(read.isJson, true);
    });
  }
});

describe('a body that is not read to its end is refused', () => {
  for (const bytes of [1_000, 2 * MB]) {
    test(`because its client hangs up after half of ${bytes} bytes`, async (t) => {
      const { socket, outcome } = await serve(t);
      socket.write(head(bytes));
      socket.write(patterned(bytes / 2), () => socket.destroy());
      await assert.rejects(outcome, { status: 400 });
    });
  }

  test('because its client had hung up before it was asked for', async (t) => {
    const { socket, outcome } = await serve(
      t,
      (request) => new Promise<void>((resolve) => request.once('close', () => resolve())),
    );
    socket.write(head(2 * MB), () => socket.destroy());
    await assert.rejects(outcome, { status: 400 });
  });

  test('because it is longer than allowed, by what it says', async (t) => {
    const { socket, outcome } = await serve(t);
    socket.write(head(4 * MB + 1));
    socket.end(patterned(4 * MB + 1));
    await assert.rejects(outcome, { status: 413 });
  });
});
