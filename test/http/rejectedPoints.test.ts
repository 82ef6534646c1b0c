import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type RawReply, type RawRequest, rawRequest } from '../support/http.ts';
import { type IngestService, startIngestService, wirePoint } from '../support/ingestService.ts';
import { INGEST_TOKEN } from '../support/pod.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.now();
const OLDEST_DAYS = 730;

describe('bad points of POST /positions', () => {
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

  describe('200: one bad point never costs its neighbours', () => {
    test('each is rejected by its index and code, with a message; the others are stored', async () => {
      const imei = service.newDevice();
      const bad: [code: string, point: unknown][] = [
        ['INVALID_BODY', null],
        ['INVALID_BODY', 7],
        ['INVALID_BODY', 'text'],
        ['INVALID_BODY', []],
        ['INVALID_BODY', [point(imei)]],
        ['INVALID_IMEI', {}],
        ['INVALID_IMEI', point('123')],
        ['INVALID_IMEI', point(`${imei}0000`)],
        ['INVALID_IMEI', { ...point(imei), imei: Number(imei) }],
        ['INVALID_IMEI', point(` ${imei}`)],
        ['INVALID_IMEI', { ...point(imei), imei: null }],
        ['INVALID_COORDINATES', point(imei, { latitude: 90.000001 })],
        ['INVALID_COORDINATES', point(imei, { longitude: -180.000001 })],
        ['INVALID_COORDINATES', point(imei, { latitude: '41.9' })],
        ['INVALID_COORDINATES', point(imei, { longitude: null })],
        ['INVALID_COORDINATES', point(imei, { latitude: 0, longitude: 0 })],
        ['INVALID_COORDINATES', point(imei, { latitude: -0, longitude: 0 })],
        ['INVALID_TIMESTAMP', point(imei, { recorded_at: undefined })],
        ['INVALID_TIMESTAMP', point(imei, { recorded_at: 'now' })],
        ['INVALID_TIMESTAMP', point(imei, { recorded_at: '2026-02-30T00:00:00Z' })],
        ['INVALID_TIMESTAMP', point(imei, { recorded_at: String(NOW_MS) })],
        ['INVALID_TIMESTAMP', point(imei, { recorded_at: {} })],
        ['FUTURE_TIMESTAMP', point(imei, { recorded_at: NOW_MS + 660_000 })],
        ['FUTURE_TIMESTAMP', point(imei, { recorded_at: '9999-12-31' })],
        ['FUTURE_TIMESTAMP', point(imei, { recorded_at: 1e300 })],
        ['TOO_OLD', point(imei, { recorded_at: NOW_MS - OLDEST_DAYS * DAY_MS - 60_000 })],
        ['TOO_OLD', point(imei, { recorded_at: '1901-12-13T20:45:52Z' })],
        ['TOO_OLD', point(imei, { recorded_at: -1e300 })],
        ['TOO_OLD', point(imei, { recorded_at: Math.floor(NOW_MS / 1000) })],
        ['UNKNOWN_DEVICE', point('350000000009999')],
        ['UNKNOWN_DEVICE', point('35000000000999')],
      ];
      // A good point before, between and after all bad ones.
      const batch = [
        point(imei),
        ...bad.flatMap(([, value], n) => [value, point(imei, { recorded_at: NOW_MS - 1_000 * (n + 1) })]),
      ];
      const summary = await service.send(batch);
      assert.deepEqual(
        summary.rejected.map(({ index, code }) => [index, code]),
        bad.map(([code], n) => [2 * n + 1, code]),
      );
      for (const { message } of summary.rejected) assert.match(message, /^\S.{5,}$/);
      assert.deepEqual([summary.accepted, summary.late, summary.duplicates], [bad.length + 1, 0, 0]);
      assert.equal((await service.history(imei)).length, bad.length + 1);
    });

    test('an NDJSON line that is not JSON is one rejected point', async () => {
      const imei = service.newDevice();
      const lines = [
        JSON.stringify(point(imei)),
        '{"imei":',
        JSON.stringify(point(imei, { recorded_at: NOW_MS - 1 })),
      ];
      const reply = await post(lines.join('\n'), { 'Content-Type': 'application/x-ndjson' });
      const { accepted, rejected } = JSON.parse(reply.text).data;
      assert.deepEqual(
        [accepted, rejected.length, rejected[0].index, rejected[0].code],
        [2, 1, 1, 'INVALID_BODY'],
      );
    });

    test('an impossible optional value is left out and named, and the point is stored', async () => {
      const imei = service.newDevice();
      const odd: [field: string, value: unknown][] = [
        ['altitude_m', 'high'],
        ['speed_kmh', -1],
        ['speed_kmh', '30'],
        ['heading', 360.5],
        ['heading', -1],
        ['satellites', 4.5],
        ['satellites', -1],
        ['odometer_km', -0.1],
        ['ignition', 'on'],
        ['ignition', 1],
        ['alarm', 7],
        ['alarm', ['sos']],
        ['rfid', {}],
        ['rfid', 'nul \u0000 character'],
        ['rfid', '\ud800'],
        ['alarm', 'x'.repeat(201)],
      ];
      const batch = odd.map(([field, value], n) => point(imei, { recorded_at: NOW_MS + n, [field]: value }));
      const summary = await service.send([
        ...batch,
        point(imei, { recorded_at: NOW_MS + 100, speed_kmh: null, rfid: '', unknown: 1 }),
      ]);
      assert.deepEqual(
        summary.ignored,
        odd.map(([field], index) => ({ index, field })),
      );
      assert.deepEqual([summary.accepted, summary.rejected], [odd.length + 1, []]);
      const twice = await service.send(
        point(imei, { recorded_at: NOW_MS + 200, heading: 'N', speed_kmh: 'fast' }),
      );
      assert.deepEqual(twice.ignored.map(({ field }) => field).toSorted(), ['heading', 'speed_kmh']);
    });

    test('text of any kind comes back as it went in', async () => {
      const imei = service.newDevice();
      const tags = [
        'NULL',
        'null',
        '{}',
        '{a,b}',
        '"',
        '\\',
        "'",
        '\\N',
        '$1',
        '%s',
        'é🚚',
        '<b>',
        '\\u0000',
      ];
      await service.send(
        tags.map((rfid, n) => point(imei, { recorded_at: NOW_MS + n, rfid, alarm: `a${n}"\\{}'` })),
      );
      const { body } = await service.pod.get(`/api/v3/events?device=${imei}&type=rfid`, service.key);
      assert.deepEqual(
        body.data.map((event: { data: { rfid: string } }) => event.data.rfid),
        tags.toReversed(),
      );
    });
  });
});
