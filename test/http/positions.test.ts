import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { type RawReply, type RawRequest, rawRequest } from '../support/http.ts';
import { type IngestService, STORED, startIngestService, wirePoint } from '../support/ingestService.ts';
import { bareRequest, INGEST_TOKEN } from '../support/pod.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.now();
const OLDEST_DAYS = 730;
const MB = 1024 * 1024;

describe('POST /positions', () => {
  let service: IngestService;

  before(async () => {
    service = await startIngestService();
  });

  after(() => service.pod.stop());

  const point = (imei: string, values: object = {}) => wirePoint(imei, NOW_MS, values);
  const post = (
    body: string | Buffer,
    headers: RawRequest['headers'] = {},
    path = '/positions',
  ): Promise<RawReply> =>
    rawRequest(service.pod.ingest, path, {
      method: 'POST',
      body,
      headers: { 'X-Ingest-Token': INGEST_TOKEN, 'Content-Type': 'application/json', ...headers },
    });
  const outcome = ({ status, text }: RawReply): [number, string] => [status, JSON.parse(text).error?.code];

  describe('200: every way to write a batch', () => {
    const oneLine = (imei: string): string => JSON.stringify(point(imei));
    const forms: [name: string, headers: RawRequest['headers'], body: (imei: string) => string | Buffer][] = [
      ['one object', {}, oneLine],
      ['an array', {}, (imei) => `[${oneLine(imei)}]`],
      ['an array with white space and a byte order mark', {}, (imei) => `\uFEFF \n[ ${oneLine(imei)}\t]\r\n`],
      ['NDJSON', { 'Content-Type': 'application/x-ndjson' }, oneLine],
      [
        'NDJSON with blank lines',
        { 'Content-Type': 'Application/X-NDJSON; charset=utf-8' },
        (imei) => `\n\r\n${oneLine(imei)}\r\n\n`,
      ],
      ['JSON by no media type', { 'Content-Type': '' }, oneLine],
      ['JSON by another media type', { 'Content-Type': 'text/plain' }, oneLine],
      ['gzip', { 'Content-Encoding': 'gzip' }, (imei) => gzipSync(oneLine(imei))],
      ['deflate', { 'Content-Encoding': 'deflate' }, (imei) => deflateSync(oneLine(imei))],
      ['brotli', { 'Content-Encoding': 'br' }, (imei) => brotliCompressSync(oneLine(imei))],
      ['chunked', { 'Transfer-Encoding': 'chunked' }, oneLine],
    ];
    for (const [name, headers, body] of forms) {
      test(name, async () => {
        const imei = service.newDevice();
        const reply = await post(body(imei), headers);
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(JSON.parse(reply.text), { data: STORED });
        assert.equal((await service.history(imei)).length, 1);
      });
    }

    test('an empty batch', async () => {
      const nothing = { ...STORED, accepted: 0 };
      assert.deepEqual(await service.send([]), nothing);
      const ndjson = await post('\n\n', { 'Content-Type': 'application/x-ndjson' });
      assert.deepEqual(JSON.parse(ndjson.text).data, nothing);
    });

    test('a trailing slash', async () => {
      assert.equal((await post(JSON.stringify(point(service.newDevice())), {}, '/positions/')).status, 200);
    });

    for (const [name, value, ms] of [
      ['epoch milliseconds', NOW_MS - 1, NOW_MS - 1],
      ['a fraction of a millisecond, cut', NOW_MS - 1.5, NOW_MS - 2],
      [
        'ISO 8601 with an offset',
        `${new Date(NOW_MS - 5 + 5_400_000).toISOString().slice(0, -1)}+01:30`,
        NOW_MS - 5,
      ],
      ['10 minutes ahead', Date.now() + 590_000, null],
      ['as old as the longest plan keeps', NOW_MS - OLDEST_DAYS * DAY_MS + 60_000, null],
    ] as const) {
      test(`recorded_at: ${name}`, async () => {
        const imei = service.newDevice();
        assert.deepEqual(await service.send(point(imei, { recorded_at: value })), STORED);
        const { location } = await service.detail(imei);
        assert.equal(Date.parse(location.recorded_at), ms ?? value);
      });
    }
  });

  describe('400 and 413: a batch that cannot be taken is refused as a whole', () => {
    const good = (imei: string): string => JSON.stringify(point(imei));
    const refused: [
      name: string,
      status: number,
      code: string,
      headers: object,
      body: (imei: string) => string | Buffer,
    ][] = [
      ['no body', 400, 'INVALID_BODY', {}, () => ''],
      ['text', 400, 'INVALID_BODY', {}, () => 'hello'],
      ['a number', 400, 'INVALID_BODY', {}, () => '7'],
      ['null', 400, 'INVALID_BODY', {}, () => 'null'],
      ['an array cut off', 400, 'INVALID_BODY', {}, (imei) => `[${good(imei)}`],
      ['an array with a comma too many', 400, 'INVALID_BODY', {}, (imei) => `[${good(imei)},]`],
      ['an array with one bad element', 400, 'INVALID_BODY', {}, (imei) => `[${good(imei)},{"imei":}]`],
      ['something after the array', 400, 'INVALID_BODY', {}, (imei) => `[${good(imei)}]x`],
      ['NDJSON sent as JSON', 400, 'INVALID_BODY', {}, (imei) => `${good(imei)}\n${good(imei)}`],
      [
        'NDJSON without one JSON line',
        400,
        'INVALID_BODY',
        { 'Content-Type': 'application/x-ndjson' },
        () => 'a\nb',
      ],
      ['UTF-16', 400, 'INVALID_BODY', {}, (imei) => Buffer.from(good(imei), 'utf16le')],
      ['what is no gzip', 400, 'INVALID_BODY', { 'Content-Encoding': 'gzip' }, good],
      [
        'a gzip cut off',
        400,
        'INVALID_BODY',
        { 'Content-Encoding': 'gzip' },
        (imei) => gzipSync(good(imei)).subarray(0, -6),
      ],
      ['an unknown encoding', 400, 'INVALID_BODY', { 'Content-Encoding': 'zip' }, good],
      [
        '10 001 points',
        413,
        'PAYLOAD_TOO_LARGE',
        {},
        (imei) => `[${`${good(imei)},`.repeat(10_000)}${good(imei)}]`,
      ],
      [
        '10 001 lines',
        413,
        'PAYLOAD_TOO_LARGE',
        { 'Content-Type': 'application/x-ndjson' },
        (imei) => `${good(imei)}\n`.repeat(10_001),
      ],
      ['more than 16 MB', 413, 'PAYLOAD_TOO_LARGE', {}, (imei) => `[${good(imei)}${' '.repeat(16 * MB)}]`],
      [
        'more than 16 MB without a length',
        413,
        'PAYLOAD_TOO_LARGE',
        { 'Transfer-Encoding': 'chunked' },
        (imei) => `[${good(imei)}${' '.repeat(16 * MB)}]`,
      ],
      [
        'more than 16 MB once unpacked',
        413,
        'PAYLOAD_TOO_LARGE',
        { 'Content-Encoding': 'gzip' },
        (imei) => gzipSync(`[${good(imei)}${' '.repeat(17 * MB)}]`),
      ],
    ];
    for (const [name, status, code, headers, body] of refused) {
      test(`${name}: ${status} ${code}, and nothing is stored`, async () => {
        const imei = service.newDevice();
        assert.deepEqual(outcome(await post(body(imei), headers as RawRequest['headers'])), [status, code]);
        assert.deepEqual(await service.history(imei), []);
      });
    }

    test('10 000 points in 16 MB are taken', async () => {
      const imei = service.newDevice();
      const points = Array.from({ length: 10_000 }, (_, n) =>
        point(imei, { recorded_at: NOW_MS - n * 1_000 }),
      );
      const json = JSON.stringify(points);
      const reply = await post(`${json}${' '.repeat(16 * MB - json.length)}`);
      assert.deepEqual(JSON.parse(reply.text), { data: { ...STORED, accepted: 10_000 } });
    });
  });

  describe('403', () => {
    const tokens: [name: string, headers: Record<string, string | string[]>, path?: string][] = [
      ['no token', {}],
      ['another token', { 'X-Ingest-Token': 'token-for-test' }],
      ['the token and more', { 'X-Ingest-Token': `${INGEST_TOKEN}x` }],
      ['the token in another case', { 'X-Ingest-Token': INGEST_TOKEN.toUpperCase() }],
      ['an empty token', { 'X-Ingest-Token': '' }],
      ['the token twice', { 'X-Ingest-Token': [INGEST_TOKEN, INGEST_TOKEN] }],
      ['the token as Authorization', { Authorization: `Bearer ${INGEST_TOKEN}` }],
      ['the token as X-API-Key', { 'X-API-Key': INGEST_TOKEN }],
      ['the token as a parameter', {}, `/positions?token=${INGEST_TOKEN}`],
    ];
    for (const [name, headers, path = '/positions'] of tokens) {
      test(`${name}: FORBIDDEN, whatever the body, and nothing is stored`, async () => {
        const imei = service.newDevice();
        for (const body of [JSON.stringify(point(imei)), '{', `[${'1,'.repeat(20_000)}1]`]) {
          const reply = await rawRequest(service.pod.ingest, path, { method: 'POST', headers, body });
          assert.deepEqual(outcome(reply), [403, 'FORBIDDEN']);
        }
        assert.deepEqual(await service.history(imei), []);
      });
    }

    test('an API key opens nothing here', async () => {
      const reply = await rawRequest(service.pod.ingest, '/positions', {
        method: 'POST',
        headers: { 'X-API-Key': service.key },
      });
      assert.deepEqual(outcome(reply), [403, 'FORBIDDEN']);
    });
  });

  test('404: the read API is not on the ingest port, and ingest not on the public one', async () => {
    const onIngest = await bareRequest(`${service.pod.ingest}/api/v3/devices`, {
      headers: { 'X-API-Key': service.key },
    });
    assert.equal(onIngest.status, 404);
    const onPublic = await rawRequest(service.pod.api, '/positions', {
      method: 'POST',
      headers: { 'X-Ingest-Token': INGEST_TOKEN },
      body: '[]',
    });
    assert.deepEqual(outcome(onPublic), [404, 'NOT_FOUND']);
  });

  test('405: /positions takes POST only', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']) {
      const reply = await rawRequest(service.pod.ingest, '/positions', {
        method,
        headers: { 'X-Ingest-Token': INGEST_TOKEN },
      });
      assert.deepEqual([reply.status, reply.headers.allow], [405, 'POST, OPTIONS'], method);
    }
  });
});
