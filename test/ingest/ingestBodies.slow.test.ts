import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { ingestListener, type ListenerAnswer, wire } from '../support/http/ingestListener.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const MAX_BYTES = 16 * 1024 * 1024;
/** Of an attack: enough to stop the event loop for long if it were read at once. */
const LARGE_BYTES = IS_TORTURE ? MAX_BYTES : MAX_BYTES / 4;
const NDJSON = { 'Content-Type': 'application/x-ndjson' };
const outcome = ({ status, body }: ListenerAnswer) => [status, body.error?.code ?? body.data.accepted];

/** A large body of one text over and over. */
const filled = (text: string, open = '', close = ''): Buffer =>
  Buffer.concat([
    Buffer.from(open),
    Buffer.alloc(LARGE_BYTES - open.length - close.length, text),
    Buffer.from(close),
  ]);

describe('another sender is answered at once beside a large body of', () => {
  const bodies: [name: string, body: Buffer, headers?: Record<string, string>][] = [
    ['blank lines', filled('\n'), NDJSON],
    ['one long line', filled('x', '"', '"'), NDJSON],
    ['one element of very many values', filled('{},', '[{"x":[', '{}]}]')],
    ['deep nesting', filled('[')],
    [
      'large elements of as many values as are read',
      Buffer.alloc(LARGE_BYTES, `{"x":[${'{},'.repeat(400)}{}]}\n`),
      NDJSON,
    ],
    ['blank lines, compressed', gzipSync(filled('\n')), { ...NDJSON, 'Content-Encoding': 'gzip' }],
  ];
  for (const [name, body, headers = {}] of bodies) {
    test(name, async (t) => {
      const { send } = await ingestListener(t);
      const attack = { over: false };
      const attackers = Promise.all(
        Array.from({ length: 2 }, () => send(body, { from: '192.0.2.66', headers })),
      ).finally(() => {
        attack.over = true;
      });
      // Another sender, before them, beside them and to their end: each of its points is taken.
      let beside = 0;
      let turns = 0;
      const count = () => {
        turns++;
        if (!attack.over) setImmediate(count);
      };
      setImmediate(count);
      while (!attack.over) {
        assert.deepEqual(outcome(await send(wire(), { from: '192.0.2.7' })), [200, 1]);
        if (!attack.over) beside++;
      }
      for (const answer of await attackers) assert.ok([200, 400, 413].includes(answer.status), answer.text);
      assert.ok(beside >= 3, `only ${beside} calls were answered beside the attack`);
      assert.ok(turns >= 30, `the event loop turned only ${turns} times`);
    });
  }
});

describe('one body', () => {
  const points = (count: number) => `[${Array.from({ length: count }, (_, n) => wire(n)).join(',')}]`;
  test('may hold 10 000 points, and come with its length, in chunks, or compressed', async (t) => {
    const { send } = await ingestListener(t);
    const body = points(10_000);
    const chunked = { 'Transfer-Encoding': 'chunked' };
    assert.deepEqual(outcome(await send(body)), [200, 10_000]);
    assert.deepEqual(outcome(await send(body, { headers: chunked })), [200, 10_000]);
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MIN_QUALITY };
    for (const [encoding, compressed] of [
      ['gzip', gzipSync(points(1_000))],
      ['deflate', deflateSync(points(1_000))],
      ['br', brotliCompressSync(points(1_000), { params })],
    ] as const) {
      const headers = { 'Content-Encoding': encoding };
      assert.deepEqual(outcome(await send(compressed, { headers })), [200, 1_000], encoding);
    }
  });

  test('may have 10 000 rejections or 80 000 ignored values in its answer, each with its index', async (t) => {
    const { send } = await ingestListener(t);
    const { body: rejected } = await send(`[${Array(10_000).fill('{}').join(',')}]`);
    assert.deepEqual(
      rejected.data.rejected.map(({ index }: { index: number }) => index),
      Array.from({ length: 10_000 }, (_, n) => n),
    );
    const odd = { speed_kmh: -1, heading: -1, satellites: -1, odometer_km: -1, altitude_m: 1e9, ignition: 1 };
    const { body: ignored } = await send(
      `[${Array.from({ length: 10_000 }, (_, n) => wire(n, { ...odd, alarm: 1, rfid: 1 })).join(',')}]`,
    );
    assert.deepEqual([ignored.data.accepted, ignored.data.ignored.length], [10_000, 80_000]);
    assert.deepEqual(ignored.data.ignored.at(-1), { index: 9_999, field: 'rfid' });
  });
});

describe('a body is refused', () => {
  test('with 413 when it is too large by its length, in chunks, or once unpacked', async (t) => {
    const { send } = await ingestListener(t, { store: () => assert.fail('nothing is to be stored') });
    const body = Buffer.alloc(MAX_BYTES + 1, '\n');
    const chunked = { ...NDJSON, 'Transfer-Encoding': 'chunked' };
    const compressed = { ...NDJSON, 'Content-Encoding': 'gzip' };
    for (const answer of [
      await send(body, { headers: NDJSON }),
      await send(body, { headers: chunked }),
      await send(gzipSync(body), { headers: compressed }),
    ]) {
      assert.deepEqual(outcome(answer), [413, 'PAYLOAD_TOO_LARGE']);
    }
  });

  test('with 400 when it cannot be unpacked, or is in an unknown encoding', async (t) => {
    const { send } = await ingestListener(t);
    const cut = gzipSync(wire()).subarray(0, 40);
    for (const [encoding, body] of [
      ['gzip', wire()],
      ['gzip', cut],
      ['br', wire()],
      ['zip', wire()],
    ] as const) {
      const headers = { 'Content-Encoding': encoding };
      assert.deepEqual(outcome(await send(body, { headers })), [400, 'INVALID_BODY'], encoding);
    }
  });
});

describe('of bodies that are not small a few are read at a time:', () => {
  const LARGE = 100_000;
  const large = () => `${wire()}${' '.repeat(LARGE)}`;
  const unfinished = { 'Content-Length': LARGE };
  const waits = async (listener: Awaited<ReturnType<typeof ingestListener>>, waiting: number) =>
    waitFor(() => listener.semaphore.waiting === waiting);

  /** A listener with three places, two for each network, and the second network's two bodies that never end. */
  async function crowded(t: TestContext) {
    const places = { running: 3, runningPerKey: 2, waiting: 3, waitingPerKey: 2 };
    const listener = await ingestListener(t, { places });
    const attacker = { from: '192.0.2.66', headers: unfinished };
    const held = [listener.open(attacker), listener.open(attacker), listener.open(attacker)];
    for (const { sent } of held) sent.write('{');
    await waits(listener, 1);
    return { listener, held, attacker };
  }

  test('slow senders leave places to others, and need none for small bodies', async (t) => {
    const { listener, attacker } = await crowded(t);
    assert.deepEqual(outcome(await listener.send(large(), { from: '192.0.2.7' })), [200, 1]);
    assert.deepEqual(outcome(await listener.send(wire(), { from: attacker.from })), [200, 1]);
    assert.equal(listener.semaphore.waiting, 1, 'its own third body waits');
  });

  test('a place is free again when its sender hangs up', async (t) => {
    const { listener, held, attacker } = await crowded(t);
    const next = listener.send(large(), { from: attacker.from });
    await waits(listener, 2);
    for (const { sent } of held) sent.destroy();
    assert.deepEqual(outcome(await next), [200, 1]);
  });

  test('one more than may wait for a place is refused with 503', async (t) => {
    const { listener, attacker } = await crowded(t);
    void listener.open(attacker).sent.write('{');
    await waits(listener, 2);
    const answer = await listener.send(large(), { from: attacker.from });
    assert.deepEqual(outcome(answer), [503, 'SERVICE_UNAVAILABLE']);
    assert.deepEqual(outcome(await listener.send(large(), { from: '192.0.2.7' })), [200, 1]);
  });

  test('senders without a token take no place of those who have one', async (t) => {
    const places = { running: 1, runningPerKey: 1, waiting: 1, waitingPerKey: 1 };
    const listener = await ingestListener(t, { places });
    const guest = { path: '/osmand', token: null, headers: unfinished };
    const held = [listener.open(guest), listener.open(guest)];
    for (const { sent } of held) sent.write('id=1&');
    await waitFor(() => listener.forms.waiting === 1);
    const rejected = await listener.send('x'.repeat(LARGE), { path: '/osmand', token: null });
    assert.deepEqual(outcome(rejected), [503, 'SERVICE_UNAVAILABLE']);
    assert.deepEqual(outcome(await listener.send(large())), [200, 1]);
  });

  test('every body gives its place back, whether it is stored or refused', async (t) => {
    const places = { running: 1, runningPerKey: 1, waiting: 100, waitingPerKey: 100 };
    const listener = await ingestListener(t, { places });
    const bodies = [large(), 'x'.repeat(LARGE), `[${'1,'.repeat(20_000)}1]`, Buffer.alloc(MAX_BYTES + 1)];
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => listener.send(bodies[n % bodies.length] as string)),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array.from({ length: 8 }, (_, n) => [200, 400, 413, 413][n % bodies.length]),
    );
  });
});

test('a token that is wrong is refused before anything of the body is read', async (t) => {
  const { open, semaphore } = await ingestListener(t);
  for (const path of ['/positions', '/traccar']) {
    const { sent, answer } = open({ path, token: 'wrong', headers: { 'Content-Length': MAX_BYTES } });
    sent.write('[');
    assert.deepEqual(outcome(await answer), [403, 'FORBIDDEN']);
    assert.equal(semaphore.waiting, 0);
    sent.destroy();
  }
});
