import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type RawReply, type RawRequest, rawRequest } from '../support/http.ts';
import { type IngestService, STORED, startIngestService } from '../support/ingestService.ts';
import { INGEST_TOKEN, request } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

/** A second, because Traccar and phones send no fractions. */
const NOW_MS = Math.floor(Date.now() / 1000) * 1000 - 60_000;
const KMH_PER_KNOT = 1.852;
const TOKEN = { 'X-Ingest-Token': INGEST_TOKEN };

describe('POST /traccar', () => {
  let service: IngestService;

  before(async () => {
    service = await startIngestService();
  });

  after(() => service.pod.stop());

  const summaryOf = ({ status, text }: RawReply) => {
    assert.equal(status, 200, text);
    return JSON.parse(text).data;
  };
  const outcome = ({ status, text }: RawReply): [number, string] => [status, JSON.parse(text).error?.code];
  const nothingOf = async (imei: string): Promise<void> => {
    assert.deepEqual(await service.history(imei), []);
  };

  const traccar = (body: unknown, headers: RawRequest['headers'] = TOKEN): Promise<RawReply> =>
    rawRequest(service.pod.ingest, '/traccar', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  /** As Traccar 6 forwards it, with the many fields that nobody here reads. */
  const forwarded = (imei: string, position: object = {}, attributes: object = {}) => ({
    position: {
      id: 17,
      protocol: 'teltonika',
      deviceId: 3,
      serverTime: '2026-01-01T00:00:00.000+00:00',
      deviceTime: '2026-01-01T00:00:00.000+00:00',
      fixTime: new Date(NOW_MS).toISOString().replace('Z', '+00:00'),
      outdated: false,
      valid: true,
      latitude: 41.9,
      longitude: 12.5,
      altitude: 33.5,
      speed: 10,
      course: 270.5,
      address: null,
      accuracy: 0,
      network: null,
      geofenceIds: null,
      attributes: {
        sat: 11,
        distance: 3.5,
        totalDistance: 1_234_567,
        motion: true,
        hours: 1,
        ...attributes,
      },
      ...position,
    },
    device: { id: 3, name: 'Van', uniqueId: imei, status: 'online', attributes: {} },
  });

  test('200: a forwarded position is stored in the units of this service', async () => {
    const imei = service.newDevice();
    const body = forwarded(imei, {}, { ignition: true, alarm: 'sos,tampering', driverUniqueId: 'CARD 7' });
    assert.deepEqual(summaryOf(await traccar(body)), STORED);
    const location = await service.read(`/devices/${imei}/location`);
    assert.ok(Math.abs(location.speed_kmh - 10 * KMH_PER_KNOT) < 1e-9);
    assert.deepEqual(location, {
      latitude: 41.9,
      longitude: 12.5,
      altitude_m: 33.5,
      speed_kmh: location.speed_kmh,
      recorded_at: new Date(NOW_MS).toISOString(),
    });
    const [point] = await service.read(`/devices/${imei}/history`);
    assert.deepEqual([point.heading, point.satellites], [270.5, 11]);
    assert.equal((await service.read(`/devices/${imei}`)).odometer_km, 1234.567);
    const events = await service.read(`/events?device=${imei}`);
    assert.deepEqual(
      events.map(({ type, data }: { type: string; data: { alarm?: string; rfid?: string } }) => [
        type,
        data.alarm ?? data.rfid,
      ]),
      [
        ['rfid', 'CARD 7'],
        ['tamper_alert', 'tampering'],
        ['alarm', 'sos'],
      ],
    );
  });

  test('200: the vehicle’s own odometer goes before the distance that Traccar added up', async () => {
    const imei = service.newDevice();
    summaryOf(await traccar(forwarded(imei, {}, { odometer: 98_765 })));
    assert.equal((await service.read(`/devices/${imei}`)).odometer_km, 98.765);
  });

  for (const [name, fixTime] of [
    ['+00:00', new Date(NOW_MS).toISOString().replace('Z', '+00:00')],
    ['+0000', new Date(NOW_MS).toISOString().replace('Z', '+0000')],
    ['+0200', new Date(NOW_MS + 7_200_000).toISOString().replace('Z', '+0200')],
    ['Z', new Date(NOW_MS).toISOString()],
    ['milliseconds', NOW_MS],
  ] as const) {
    test(`200: fixTime with ${name}`, async () => {
      const imei = service.newDevice();
      assert.deepEqual(summaryOf(await traccar(forwarded(imei, { fixTime }))), STORED);
      const { recorded_at } = await service.read(`/devices/${imei}/location`);
      assert.equal(Date.parse(recorded_at), NOW_MS);
    });
  }

  test('200: the same position again is a duplicate, so that a retry does no harm', async () => {
    const imei = service.newDevice();
    summaryOf(await traccar(forwarded(imei)));
    assert.deepEqual(summaryOf(await traccar(forwarded(imei))), { ...STORED, accepted: 0, duplicates: 1 });
  });

  test('200: a heartbeat that repeats the last fix tells its alarm once, when it was sent, and moves nothing', async () => {
    const imei = service.newDevice();
    const url = 'https://hooks.example.com/sos';
    const { body: webhook } = await request(`${service.pod.api}/api/webhooks`, {
      method: 'POST',
      headers: { 'X-API-Key': service.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ url, events: ['alarm'] }),
    });
    summaryOf(await traccar(forwarded(imei, { deviceTime: NOW_MS }, { ignition: true })));
    const before = [await service.read(`/devices/${imei}`), await service.history(imei)];
    const deviceTime = new Date(NOW_MS + 45_000).toISOString().replace('Z', '+00:00');
    const heartbeat = forwarded(imei, { outdated: true, deviceTime }, { ignition: true, alarm: 'sos' });
    for (const _ of [1, 2, 3]) {
      assert.deepEqual(summaryOf(await traccar(heartbeat)), { ...STORED, accepted: 0, duplicates: 1 });
    }
    const events = await service.read(`/events?device=${imei}`);
    assert.deepEqual(
      events.map(({ type, occurred_at, data }: Record<string, unknown>) => [type, occurred_at, data]),
      [
        [
          'alarm',
          new Date(NOW_MS + 45_000).toISOString(),
          { alarm: 'sos', position: { lat: 41.9, lng: 12.5 } },
        ],
      ],
    );
    assert.deepEqual([await service.read(`/devices/${imei}`), await service.history(imei)], before);
    const deliveries = async () =>
      (await service.pod.get(`/api/webhooks/${webhook.data.id}/deliveries`, service.key)).body.data;
    await waitFor(async () => (await deliveries()).length > 0);
    assert.deepEqual(
      (await deliveries()).map(({ event_type }: Record<string, unknown>) => event_type),
      ['alarm'],
    );
  });

  const refused: [name: string, code: string, body: (imei: string) => unknown][] = [
    ['no valid fix', 'INVALID_COORDINATES', (imei) => forwarded(imei, { valid: false })],
    ['impossible coordinates', 'INVALID_COORDINATES', (imei) => forwarded(imei, { latitude: 99 })],
    ['(0, 0)', 'INVALID_COORDINATES', (imei) => forwarded(imei, { latitude: 0, longitude: 0 })],
    ['no time', 'INVALID_TIMESTAMP', (imei) => forwarded(imei, { fixTime: null })],
    [
      'a clock in the past',
      'TOO_OLD',
      (imei) => forwarded(imei, { fixTime: '1970-01-01T00:00:00.000+00:00' }),
    ],
    [
      'a clock in the future',
      'FUTURE_TIMESTAMP',
      (imei) => forwarded(imei, { fixTime: '2999-01-01T00:00:00Z' }),
    ],
    ['an unknown device', 'UNKNOWN_DEVICE', () => forwarded('350000000009999')],
    ['no IMEI', 'INVALID_IMEI', () => forwarded('tracker-1')],
    ['no device', 'INVALID_IMEI', (imei) => ({ position: forwarded(imei).position })],
    ['no position', 'INVALID_BODY', (imei) => ({ device: { uniqueId: imei } })],
    ['an array', 'INVALID_BODY', (imei) => [forwarded(imei)]],
    ['a number', 'INVALID_BODY', () => 7],
  ];
  for (const [name, code, body] of refused) {
    test(`200: ${name} is rejected with ${code}, and Traccar does not retry it`, async () => {
      const imei = service.newDevice();
      const summary = summaryOf(await traccar(body(imei)));
      assert.deepEqual([summary.accepted, summary.rejected.length, summary.rejected[0].index], [0, 1, 0]);
      assert.equal(summary.rejected[0].code, code);
      await nothingOf(imei);
    });
  }

  test('400: what is no JSON', async () => {
    for (const body of ['', '{', 'id=1&lat=2'])
      assert.deepEqual(outcome(await traccar(body)), [400, 'INVALID_BODY']);
  });

  test('413: larger than any position, or made of more values', async () => {
    const imei = service.newDevice();
    for (const attributes of [{ raw: 'x'.repeat(65_536) }, { list: Array(3_000).fill({}) }]) {
      const reply = await traccar(forwarded(imei, {}, attributes));
      assert.deepEqual(outcome(reply), [413, 'PAYLOAD_TOO_LARGE']);
    }
    await nothingOf(imei);
  });

  test('200: a position with a great deal in its attributes', async () => {
    const imei = service.newDevice();
    const masts = Array.from({ length: 60 }, (_, n) => ({
      cellId: n,
      locationAreaCode: 1,
      signalStrength: -70,
    }));
    const body = forwarded(imei, { network: { cellTowers: masts } }, { raw: '78781f12'.repeat(5_000) });
    assert.deepEqual(summaryOf(await traccar(body)), STORED);
  });

  test('403: the token is asked for in the header only', async () => {
    const imei = service.newDevice();
    for (const headers of [{}, { 'X-Ingest-Token': 'x' }]) {
      assert.deepEqual(outcome(await traccar(forwarded(imei), headers)), [403, 'FORBIDDEN']);
    }
    const inQuery = await rawRequest(service.pod.ingest, `/traccar?token=${INGEST_TOKEN}`, {
      method: 'POST',
      body: '{}',
    });
    assert.equal(inQuery.status, 403);
    await nothingOf(imei);
  });

  test('405: GET', async () => {
    const reply = await rawRequest(service.pod.ingest, '/traccar', { headers: TOKEN });
    assert.deepEqual([reply.status, reply.headers.allow], [405, 'POST, OPTIONS']);
  });
});
