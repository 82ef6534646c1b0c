import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { describe, type TestContext, test } from 'node:test';
import { resolveHost } from '../../src/webhooks/delivery/sendWebhook.ts';

const A = 1;
const AAAA = 28;
const NXDOMAIN = 3;
const SERVFAIL = 2;
/** The addresses of a question as bytes, a response code, or silence. */
type Answer = readonly number[][] | number | null;

/** A DNS server on the loopback for the length of a test; records what it is asked. */
async function startDns(t: TestContext, answer: (type: number) => Answer) {
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query);
    asked.push(`${name} ${type === A ? 'A' : type === AAAA ? 'AAAA' : type}`);
    const given = answer(type);
    if (given === null) return;
    const records = typeof given === 'number' ? [] : given;
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (typeof given === 'number' ? given : 0), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    head.writeUInt32BE(0, 8);
    const answers = records.map((bytes) =>
      Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]),
    );
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  t.after(() => socket.close());
  return { servers: [`127.0.0.1:${socket.address().port}`], asked };
}

function readQuestion(query: Buffer) {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

const SIX = [0x26, 6, 0x47, 0, 0x47, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x11];

describe('resolveHost', () => {
  const rows: [string, Answer, Answer, string[] | string][] = [
    [
      'both answers',
      [
        [1, 2, 3, 4],
        [5, 6, 7, 8],
      ],
      [SIX],
      ['1.2.3.4', '5.6.7.8', '2606:4700:4700::1111'],
    ],
    ['A alone', [[1, 2, 3, 4]], [], ['1.2.3.4']],
    ['AAAA alone', [], [SIX], ['2606:4700:4700::1111']],
    ['A where AAAA fails', [[1, 2, 3, 4]], SERVFAIL, ['1.2.3.4']],
    ['AAAA where there is no A', NXDOMAIN, [SIX], ['2606:4700:4700::1111']],
    ['that there is nothing', [], [], 'dns_not_found'],
    ['that there is no such name', NXDOMAIN, NXDOMAIN, 'dns_not_found'],
    ['that DNS failed', SERVFAIL, SERVFAIL, 'dns_failed'],
    ['that DNS failed, if in part', NXDOMAIN, SERVFAIL, 'dns_failed'],
  ];
  for (const [what, a, aaaa, expected] of rows) {
    test(`says ${what}`, async (t) => {
      const { servers } = await startDns(t, (type) => (type === A ? a : aaaa));
      const resolution = await resolveHost('hook.example.com', new AbortController().signal, servers);
      assert.deepEqual(
        resolution,
        typeof expected === 'string'
          ? { kind: 'failed', error: expected }
          : { kind: 'addresses', addresses: expected },
      );
    });
  }

  test('asks each question once, of DNS even for names that the hosts file has', async (t) => {
    const { servers, asked } = await startDns(t, (type) => (type === A ? [[1, 2, 3, 4]] : []));
    for (const name of ['localhost', 'single']) {
      const resolution = await resolveHost(name, new AbortController().signal, servers);
      assert.deepEqual(resolution, { kind: 'addresses', addresses: ['1.2.3.4'] });
    }
    assert.deepEqual(asked.sort(), ['localhost A', 'localhost AAAA', 'single A', 'single AAAA']);
  });

  test('gives up when its signal aborts', async (t) => {
    const { servers } = await startDns(t, () => null);
    const deadline = new AbortController();
    const resolution = resolveHost('hook.example.com', deadline.signal, servers);
    deadline.abort();
    assert.deepEqual(await resolution, { kind: 'failed', error: 'dns_failed' });
  });
});
