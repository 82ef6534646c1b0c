import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rawRequest } from '../support/http/http.ts';
import { wirePoint } from '../support/ingest/ingestService.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { INGEST_TOKEN } from '../support/pod.ts';

const FULL = '350000000000001';
const OTHER = '350000000000002';
const NOW_MS = Date.now();

/** Room for no point of the device in the next ten minutes. */
const service = ownerPod({ devices: [{ imei: FULL }, { imei: OTHER }] }, async ({ sql }) => {
  await sql`
    update device_state set rate_until = now() + interval '70 minutes'
    where device_id = (select id from device where imei = ${FULL})`;
});

const post = (path: string, body?: unknown) =>
  rawRequest(service.pod.ingest, path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'X-Ingest-Token': INGEST_TOKEN, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

const MESSAGE =
  /^the device has stored more than 10 points a second over an hour; send this point again at (\S+Z) or later$/;

test('a point beyond the rate of its device is rejected with RATE_EXCEEDED, and its neighbours are stored', async () => {
  const points = [
    wirePoint(OTHER, NOW_MS),
    wirePoint(FULL, NOW_MS),
    { imei: FULL },
    wirePoint(OTHER, NOW_MS + 1),
    wirePoint(FULL, NOW_MS + 1),
  ];
  const reply = await post('/positions', points);
  assert.equal(reply.status, 200);
  const { rejected, ...counts } = JSON.parse(reply.text).data;
  assert.deepEqual(counts, { accepted: 2, duplicates: 0, late: 0, ignored: [] });
  assert.deepEqual(
    rejected.map(({ index, code }: { index: number; code: string }) => [index, code]),
    [
      [1, 'RATE_EXCEEDED'],
      [2, 'INVALID_COORDINATES'],
      [4, 'RATE_EXCEEDED'],
    ],
  );
  const [, retryAt] = MESSAGE.exec(rejected[0].message) ?? [];
  const waitMs = Date.parse(retryAt ?? '') - NOW_MS;
  assert.ok(waitMs > 9 * 60_000 && waitMs < 30 * 60_000, `${rejected[0].message}`);
});

test('the routes of Traccar and phones refuse it as they refuse other points', async () => {
  const fixTime = new Date(NOW_MS).toISOString();
  const position = { fixTime, valid: true, latitude: 41.9, longitude: 12.5, attributes: {} };
  const traccar = await post('/traccar', { position, device: { uniqueId: FULL } });
  const [rejected] = JSON.parse(traccar.text).data.rejected;
  assert.deepEqual([traccar.status, rejected.code], [200, 'RATE_EXCEEDED']);
  const phone = await post(`/osmand?id=${FULL}&lat=41.9&lon=12.5&timestamp=${NOW_MS}`);
  const { code, message } = JSON.parse(phone.text).error;
  assert.deepEqual([phone.status, code], [400, 'BAD_REQUEST']);
  assert.match(message, MESSAGE);
});

test('what was not stored counts in the metrics, and nothing of it is in the history', async () => {
  const { text } = await rawRequest(service.pod.ingest, '/metrics');
  assert.match(text, /^fleet_ingest_points_total\{outcome="rate_exceeded"\} 4$/m);
  const { body } = await service.pod.get(`/api/v3/devices/${FULL}/history`, service.key);
  assert.deepEqual(body.data, []);
});
