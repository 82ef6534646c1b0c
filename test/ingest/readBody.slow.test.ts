import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import express, { type Request, type Response } from 'express';
import { type BodyRoom, readBody } from '../../src/http/requestBody.ts';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import { serve } from '../support/http/serve.ts';
import { seededRandom } from '../support/seededRandom.ts';

const KB = 1024;
const MAX_BYTES = 512 * KB;

interface Options {
  readonly before?: (request: Request) => Promise<unknown>;
  readonly more?: BodyRoom['more'];
}

/** A connection to a server that reads one body of at most 512 KB, after `before`, and what became of it. 64 KB need no room. */
async function open(
  t: TestContext,
  { before = async () => undefined, more = async () => undefined }: Options = {},
) {
  const outcome = Promise.withResolvers<readonly Buffer[]>();
  const room = { maxBytes: MAX_BYTES, freeBytes: 64 * KB, more };
  outcome.promise.catch(() => undefined); // each test looks at it in its time
  const app = express();
  app.use(async (request: Request, response: Response) => {
    await before(request);
    await readBody(request, room).then(outcome.resolve, outcome.reject);
    response.end();
  });
  const { port } = await serve(t, app);
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  t.after(() => socket.destroy());
  return { socket, outcome: outcome.promise };
}

const head = (bytes: number, more = '') =>
  `POST / HTTP/1.1\r\nHost: x\r\n${more}Content-Length: ${bytes}\r\n\r\n`;
const CHUNKED = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n';

function patterned(bytes: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: bytes }, (_, i) => (i * 31 + (i >> 8)) & 0xff));
}

/** Bytes that no encoding makes fewer. */
function noisy(bytes: number): Buffer {
  const random = seededRandom(7);
  return Buffer.from(Uint8Array.from({ length: bytes }, () => random() * 256));
}

describe('a body is read as it was sent', () => {
  for (const bytes of [0, 1, 64 * KB - 1, 64 * KB, 300 * KB + 17, MAX_BYTES]) {
    test(`in pieces of ${bytes} bytes`, async (t) => {
      const { socket, outcome } = await open(t);
      const body = patterned(bytes);
      socket.write(head(bytes));
      for (let at = 0, size = 1; at < bytes; at += size, size = (size * 7 + 13) % 100_000) {
        socket.write(body.subarray(at, at + size));
      }
      assert.ok(Buffer.concat(await outcome).equals(body));
    });
  }

  test('in chunks of a byte each, and kept in as few blocks as one piece', async (t) => {
    const { socket, outcome } = await open(t);
    const body = patterned(70_000);
    const chunks = [...body].flatMap((byte) => [Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]);
    socket.write(`${CHUNKED}\r\n`);
    socket.write(Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]));
    const blocks = await outcome;
    assert.ok(Buffer.concat(blocks).equals(body));
    assert.equal(blocks.length, 2);
  });

  test('when there is none', async (t) => {
    const { socket, outcome } = await open(t);
    socket.write('POST / HTTP/1.1\r\nHost: x\r\n\r\n');
    assert.deepEqual(await outcome, []);
  });

  const identity = (bytes: Buffer): Buffer => bytes;
  const encodings = {
    gzip: gzipSync,
    GZIP: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    identity,
  };
  for (const [encoding, compress] of Object.entries(encodings)) {
    test(`in ${encoding}`, async (t) => {
      for (const bytes of [0, 1, 64 * KB, 64 * KB + 1, MAX_BYTES]) {
        const { socket, outcome } = await open(t);
        const body = patterned(bytes);
        const sent = compress(body);
        socket.write(head(sent.length, `Content-Encoding: ${encoding}\r\n`));
        socket.write(sent);
        assert.ok(Buffer.concat(await outcome).equals(body), `${bytes} bytes`);
      }
    });
  }
});

describe('memory is asked for once, before the bytes that need it,', () => {
  const rows: readonly (readonly [title: string, head: string, body: Buffer, asked: number[]])[] = [
    ['not for 64 KB', head(64 * KB), patterned(64 * KB), []],
    ['for all that a body says it has', head(65 * KB), patterned(65 * KB), [65 * KB]],
    [
      'for the most there can be, when it does not say',
      `${CHUNKED}\r\n`,
      Buffer.concat([Buffer.from('11000\r\n'), patterned(0x11000), Buffer.from('\r\n0\r\n\r\n')]),
      [MAX_BYTES],
    ],
    ...packed('not for what unpacks to 64 KB', Buffer.alloc(64 * KB), []),
    ...packed('for the most that a small one can unpack to', Buffer.alloc(65 * KB), [MAX_BYTES]),
    ...packed('for that and what is sent, of a large one', noisy(256 * KB), [
      MAX_BYTES + gzipSync(noisy(256 * KB)).length,
    ]),
  ];
  for (const [title, head, body, expected] of rows) {
    test(title, async (t) => {
      const asked: number[] = [];
      const more = async (bytes: number) => void asked.push(bytes);
      const { socket, outcome } = await open(t, { more });
      socket.write(head);
      socket.write(body);
      await outcome;
      assert.deepEqual(asked, expected);
    });
  }

  test('and nothing more than the sockets hold is read until it is there', async (t) => {
    const room = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let server: Socket | undefined;
    const more = () => {
      asked.resolve();
      return room.promise;
    };
    const before = async (request: Request) => {
      server = request.socket;
    };
    const { socket, outcome } = await open(t, { before, more });
    const body = patterned(MAX_BYTES);
    socket.write(`${CHUNKED}\r\n80000\r\n`);
    socket.write(body);
    socket.write('\r\n0\r\n\r\n');
    await asked.promise;
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(server !== undefined && server.bytesRead <= 4 * 64 * KB, `${server?.bytesRead}`);
    room.resolve();
    assert.ok(Buffer.concat(await outcome).equals(body));
  });

  for (const bytes of [500_000, null]) {
    test(`and a body of ${bytes ?? 'an unknown number of'} bytes is passed over when there is none`, async (t) => {
      const { socket, outcome } = await open(t, { more: () => Promise.reject(new Overloaded('no room')) });
      const answered = once(socket, 'data');
      socket.write(bytes === null ? `${CHUNKED}\r\n7A120\r\n` : head(bytes));
      socket.write(patterned(500_000));
      socket.write(bytes === null ? '\r\n0\r\n\r\n' : 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await assert.rejects(outcome, Overloaded);
      await answered;
    });
  }
});

function packed(title: string, body: Buffer, asked: number[]) {
  const sent = gzipSync(body);
  return [[title, head(sent.length, 'Content-Encoding: gzip\r\n'), sent, asked]] as const;
}

describe('a body that is not read to its end is refused', () => {
  for (const bytes of [1_000, MAX_BYTES]) {
    test(`because its client hangs up after half of ${bytes} bytes`, async (t) => {
      const { socket, outcome } = await open(t);
      socket.write(head(bytes));
      socket.write(patterned(bytes / 2), () => socket.destroy());
      await assert.rejects(outcome, { status: 400 });
    });
  }

  test('because its client had hung up before it was asked for', async (t) => {
    const { socket, outcome } = await open(t, {
      before: (request) => new Promise<void>((resolve) => request.once('close', () => resolve())),
    });
    socket.write(head(MAX_BYTES), () => socket.destroy());
    await assert.rejects(outcome, { status: 400 });
  });

  const long = patterned(MAX_BYTES + 1);
  const bomb = brotliCompressSync(Buffer.alloc(MAX_BYTES + 1));
  for (const [where, head_, body] of [
    ['by its length', head(long.length), long],
    ['in chunks', `${CHUNKED}\r\n80001\r\n`, long],
    ['once it is unpacked', head(bomb.length, 'Content-Encoding: br\r\n'), bomb],
  ] as const) {
    test(`because it is longer than allowed ${where}`, async (t) => {
      const { socket, outcome } = await open(t);
      socket.write(head_);
      socket.write(body);
      await assert.rejects(outcome, { status: 413 });
    });
  }

  for (const [title, encoding, sent, status] of [
    ['it is cut off', 'gzip', gzipSync(noisy(1_000)).subarray(0, 500), 400],
    ['it is something else', 'br', patterned(1_000), 400],
    ['nobody knows its encoding', 'zip', patterned(1_000), 415],
    ['it has two encodings', 'gzip, gzip', gzipSync(gzipSync(patterned(1_000))), 415],
  ] as const) {
    test(`because ${title}`, async (t) => {
      const { socket, outcome } = await open(t);
      socket.write(head(sent.length, `Content-Encoding: ${encoding}\r\n`));
      socket.write(sent);
      await assert.rejects(outcome, { status });
    });
  }
});
