import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { type RawReply, type RawRequest, rawRequest } from '../support/http/http.ts';
import { ingestService, STORED, wirePoint } from '../support/ingest/ingestService.ts';
import { bareRequest, INGEST_TOKEN } from '../support/pod.ts';

// Which points are taken is a table in test/ingest/formats; bodies of every size and encoding are read in
// ingestBodies.slow.test.ts.

const NOW_MS = Date.now();
const NDJSON = { 'Content-Type': 'application/x-ndjson' };

const service = ingestService();

const point = (imei: string, values: object = {}) => wirePoint(imei, NOW_MS, values);
const line = (imei: string): string => JSON.stringify(point(imei));
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
const outcome = ({ status, text }: RawReply): string => `${status} ${JSON.parse(text).error?.code}`;

describe('POST /positions takes', () => {
  const forms: [form: string, body: (imei: string) => string | Buffer, headers?: RawRequest['headers']][] = [
    ['one object', line],
    ['an array, with white space and a byte order mark', (imei) => `\uFEFF \n[ ${line(imei)}\t]\r\n`],
    [
      'JSON lines',
      (imei) => `\n\r\n${line(imei)}\r\n\n`,
      { 'Content-Type': 'Application/X-NDJSON; charset=utf-8' },
    ],
    ['JSON that does not say so', line, { 'Content-Type': 'text/plain' }],
  ];
  for (const [form, body, headers] of forms) {
    test(form, async () => {
      const imei = service.newDevice();
      const reply = await post(body(imei), headers);
      assert.deepEqual([reply.status, JSON.parse(reply.text)], [200, { data: STORED }]);
      assert.equal((await service.history(imei)).length, 1);
    });
  }

  test('an empty batch', async () => {
    const nothing = { ...STORED, accepted: 0 };
    assert.deepEqual(await service.send([]), nothing);
    assert.deepEqual(JSON.parse((await post('\n\n', NDJSON)).text).data, nothing);
  });
});

describe('POST /positions stores nothing of', () => {
  const rejected: [
    title: string,
    expected: string,
    body: (imei: string) => string | Buffer,
    headers?: Record<string, string>,
  ][] = [
    ['an empty body', '400 INVALID_BODY', () => ''],
    ['10 001 lines', '413 PAYLOAD_TOO_LARGE', (imei) => `${line(imei)}\n`.repeat(10_001), NDJSON],
  ];
  for (const [title, expected, body, headers] of rejected) {
    test(`${title}: ${expected}`, async () => {
      const imei = service.newDevice();
      assert.equal(outcome(await post(body(imei), headers)), expected);
      assert.deepEqual(await service.history(imei), []);
    });
  }

  const tokens: [title: string, headers: Record<string, string | string[]>, path?: string][] = [
    ['no token', {}],
    ['the token and more', { 'X-Ingest-Token': `${INGEST_TOKEN}x` }],
    ['the token as Authorization', { Authorization: `Bearer ${INGEST_TOKEN}` }],
    ['the token as X-API-Key', { 'X-API-Key': INGEST_TOKEN }],
    ['the token as a parameter', {}, `/positions?token=${INGEST_TOKEN}`],
  ];
  for (const [title, headers, path = '/positions'] of tokens) {
    test(`a call with ${title}: 403 FORBIDDEN, whatever its body`, async () => {
      const imei = service.newDevice();
      for (const body of [line(imei), '{', `[${'1,'.repeat(20_000)}1]`]) {
        const reply = await rawRequest(service.pod.ingest, path, { method: 'POST', headers, body });
        assert.equal(outcome(reply), '403 FORBIDDEN');
      }
      assert.deepEqual(await service.history(imei), []);
    });
  }
});

describe('one bad point of a batch costs no other', () => {
  test('and is rejected by its index and code, with a message', async () => {
    const imei = service.newDevice();
    const bad: [code: string, point: unknown][] = [
      ['INVALID_BODY', [point(imei)]],
      ['INVALID_IMEI', point('123')],
      ['INVALID_COORDINATES', point(imei, { latitude: 0, longitude: 0 })],
      ['INVALID_TIMESTAMP', point(imei, { recorded_at: String(NOW_MS) })],
      ['FUTURE_TIMESTAMP', point(imei, { recorded_at: NOW_MS + 660_000 })],
      ['TOO_OLD', point(imei, { recorded_at: Math.floor(NOW_MS / 1000) })],
      ['UNKNOWN_DEVICE', point('350000000009999')],
    ];
    const good = (n: number) => point(imei, { recorded_at: NOW_MS - 1_000 * n });
    const summary = await service.send([good(0), ...bad.flatMap(([, value], n) => [value, good(n + 1)])]);
    assert.deepEqual(
      summary.rejected.map(({ index, code }) => [index, code]),
      bad.map(([code], n) => [2 * n + 1, code]),
    );
    for (const { message } of summary.rejected) assert.match(message, /^\S.{5,}$/);
    assert.deepEqual([summary.accepted, summary.late, summary.duplicates], [bad.length + 1, 0, 0]);
    assert.equal((await service.history(imei)).length, bad.length + 1);
  });
});

test('text of any kind comes back as it went in', async () => {
  const imei = service.newDevice();
  const tags = ['NULL', 'null', '{}', '{a,b}', '"', '\\', "'", '\\N', '$1', '%s', 'é🚚', '<b>', '\\u0000'];
  await service.send(
    tags.map((rfid, n) => point(imei, { recorded_at: NOW_MS + n, rfid, alarm: `a${n}"\\{}'` })),
  );
  const events: { data: { rfid: string } }[] = await service.read(`/events?device=${imei}&type=rfid`);
  assert.deepEqual(
    events.map(({ data }) => data.rfid),
    tags.toReversed(),
  );
});

test('the read API is not on the ingest port, and /positions is on no other: 404', async () => {
  const headers = { 'X-API-Key': service.key };
  assert.equal((await bareRequest(`${service.pod.ingest}/api/v3/devices`, { headers })).status, 404);
  const ingest = { method: 'POST', headers: { 'X-Ingest-Token': INGEST_TOKEN }, body: '[]' };
  assert.equal(outcome(await rawRequest(service.pod.api, '/positions', ingest)), '404 NOT_FOUND');
});

test('/positions answers other methods than POST with 405', async () => {
  const headers = { 'X-Ingest-Token': INGEST_TOKEN };
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']) {
    const reply = await rawRequest(service.pod.ingest, '/positions', { method, headers });
    assert.deepEqual([reply.status, reply.headers.allow], [405, 'POST, OPTIONS'], method);
  }
});

describe('a device without room for another point in the next ten minutes', () => {
  const MESSAGE =
    /^the device has stored more than 10 points a second over an hour; send this point again at (\S+Z) or later$/;
  let full = '';
  before(async () => {
    full = service.newDevice();
    await service.admin.sql(
      (sql) => sql`
        update device_state set rate_until = now() + interval '70 minutes'
        where device_id = (select id from device where imei = ${full})`,
    );
  });

  test('has points rejected with RATE_EXCEEDED, and their neighbours are stored', async () => {
    const other = service.newDevice();
    const at = (ms: number) => ({ recorded_at: NOW_MS + ms });
    const points = [point(other), point(full), { imei: full }, point(other, at(1)), point(full, at(1))];
    const { rejected, ...counts } = await service.send(points);
    assert.deepEqual(counts, { accepted: 2, duplicates: 0, late: 0, ignored: [] });
    assert.deepEqual(
      rejected.map(({ index, code }) => [index, code]),
      [
        [1, 'RATE_EXCEEDED'],
        [2, 'INVALID_COORDINATES'],
        [4, 'RATE_EXCEEDED'],
      ],
    );
    const [, retryAt] = MESSAGE.exec(rejected[0]?.message ?? '') ?? [];
    const waitMs = Date.parse(retryAt ?? '') - NOW_MS;
    assert.ok(waitMs > 9 * 60_000 && waitMs < 30 * 60_000, `${rejected[0]?.message}`);
  });

  test('is refused by the routes of Traccar and phones as they refuse other points', async () => {
    const fixTime = new Date(NOW_MS).toISOString();
    const position = { fixTime, valid: true, latitude: 41.9, longitude: 12.5, attributes: {} };
    const forwarded = JSON.stringify({ position, device: { uniqueId: full } });
    const traccar = await post(forwarded, {}, '/traccar');
    assert.deepEqual(
      [traccar.status, JSON.parse(traccar.text).data.rejected[0].code],
      [200, 'RATE_EXCEEDED'],
    );
    const phone = await post('', {}, `/osmand?id=${full}&lat=41.9&lon=12.5&timestamp=${NOW_MS}`);
    assert.equal(outcome(phone), '400 BAD_REQUEST');
    assert.match(JSON.parse(phone.text).error.message, MESSAGE);
  });

  test('has what was not stored counted in the metrics, and nothing of it in its history', async () => {
    const { text } = await rawRequest(service.pod.ingest, '/metrics');
    assert.match(text, /^fleet_ingest_points_total\{outcome="rate_exceeded"\} 4$/m);
    assert.deepEqual(await service.history(full), []);
  });
});
