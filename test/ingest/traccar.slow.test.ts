import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RawReply, type RawRequest, rawRequest } from '../support/http/http.ts';
import { ingestService, STORED } from '../support/ingest/ingestService.ts';
import { INGEST_TOKEN } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';
import { webhookApi } from '../support/webhooks/webhooks.ts';

// What Traccar forwards is a table in test/ingest/formats/parseTraccar.test.ts.

/** Whole seconds, because Traccar sends no fractions. */
const NOW_MS = Math.floor(Date.now() / 1000) * 1000 - 60_000;
const KMH_PER_KNOT = 1.852;
const DUPLICATE = { ...STORED, accepted: 0, duplicates: 1 };
/** As Traccar writes a time. */
const offsetForm = (ms: number): string => new Date(ms).toISOString().replace('Z', '+00:00');

describe('POST /traccar', () => {
  const service = ingestService();

  const outcome = ({ status, text }: RawReply): string =>
    `${status} ${JSON.parse(text).error?.code ?? ''}`.trim();
  const assertStored = (reply: RawReply, expected = STORED) => {
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(JSON.parse(reply.text).data, expected);
  };
  const assertNothingOf = async (imei: string) => assert.deepEqual(await service.history(imei), []);

  const traccar = (body: unknown, headers: RawRequest['headers'] = { 'X-Ingest-Token': INGEST_TOKEN }) =>
    rawRequest(service.pod.ingest, '/traccar', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  /** As Traccar 6 forwards it, with many fields that are not read. */
  const forwarded = (imei: string, position: object = {}, attributes: object = {}) => ({
    position: {
      ...{ id: 17, protocol: 'teltonika', deviceId: 3, serverTime: '2026-01-01T00:00:00.000+00:00' },
      ...{
        deviceTime: '2026-01-01T00:00:00.000+00:00',
        fixTime: offsetForm(NOW_MS),
        outdated: false,
        valid: true,
      },
      ...{ latitude: 41.9, longitude: 12.5, altitude: 33.5, speed: 10, course: 270.5, accuracy: 0 },
      ...{ address: null, network: null, geofenceIds: null },
      attributes: { sat: 11, distance: 3.5, totalDistance: 1_234_567, motion: true, hours: 1, ...attributes },
      ...position,
    },
    device: { id: 3, name: 'Van', uniqueId: imei, status: 'online', attributes: {} },
  });

  test('stores a position in the units of this service', async () => {
    const imei = service.newDevice();
    const attributes = { ignition: true, alarm: 'sos,tampering', driverUniqueId: 'CARD 7' };
    assertStored(await traccar(forwarded(imei, {}, attributes)));
    const { speed_kmh, ...location } = await service.read(`/devices/${imei}/location`);
    assert.ok(Math.abs(speed_kmh - 10 * KMH_PER_KNOT) < 1e-9);
    const recorded_at = new Date(NOW_MS).toISOString();
    assert.deepEqual(location, { latitude: 41.9, longitude: 12.5, altitude_m: 33.5, recorded_at });
    const [point] = await service.history(imei);
    assert.deepEqual([point.heading, point.satellites], [270.5, 11]);
    assert.equal((await service.detail(imei)).odometer_km, 1234.567);
    const events: { type: string; data: { alarm?: string; rfid?: string } }[] = await service.read(
      `/events?device=${imei}`,
    );
    assert.deepEqual(
      events.map(({ type, data }) => `${type} ${data.alarm ?? data.rfid}`),
      ['rfid CARD 7', 'tamper_alert tampering', 'alarm sos'],
    );
  });

  test('takes a position with a great deal in its attributes', async () => {
    const cell = { cellId: 1, locationAreaCode: 1, signalStrength: -70 };
    const network = { cellTowers: Array.from({ length: 60 }, () => cell) };
    assertStored(
      await traccar(forwarded(service.newDevice(), { network }, { raw: '78781f12'.repeat(5_000) })),
    );
  });

  test('counts the same position again as a duplicate, so that a retry does no harm', async () => {
    const imei = service.newDevice();
    assertStored(await traccar(forwarded(imei)));
    assertStored(await traccar(forwarded(imei)), DUPLICATE);
  });

  test('makes one event and one delivery of the alarm of a heartbeat that repeats the last position, and moves nothing', async () => {
    const imei = service.newDevice();
    const webhooks = webhookApi(service.pod.api, service.key);
    const { id } = await webhooks.make({ url: 'https://hooks.example.com/sos', events: ['alarm'] });
    assertStored(await traccar(forwarded(imei, { deviceTime: NOW_MS }, { ignition: true })));
    const before = [await service.detail(imei), await service.history(imei)];
    const deviceTime = offsetForm(NOW_MS + 45_000);
    const heartbeat = forwarded(imei, { outdated: true, deviceTime }, { ignition: true, alarm: 'sos' });
    for (const _ of [1, 2, 3]) assertStored(await traccar(heartbeat), DUPLICATE);
    const [event, ...more] = await service.read(`/events?device=${imei}`);
    const occurred_at = new Date(NOW_MS + 45_000).toISOString();
    const data = { alarm: 'sos', position: { lat: 41.9, lng: 12.5 } };
    assert.deepEqual([{ ...event, type: 'alarm', occurred_at, data }, more], [event, []]);
    assert.deepEqual([await service.detail(imei), await service.history(imei)], before);
    await waitFor(async () => (await webhooks.deliveries(id)).length > 0);
    assert.deepEqual(
      (await webhooks.deliveries(id)).map(({ event_type }) => event_type),
      ['alarm'],
    );
  });

  const rejected: [title: string, code: string, body: (imei: string) => unknown][] = [
    ['no valid fix', 'INVALID_COORDINATES', (imei) => forwarded(imei, { valid: false })],
    ['no time', 'INVALID_TIMESTAMP', (imei) => forwarded(imei, { fixTime: null })],
    ['an unknown device', 'UNKNOWN_DEVICE', () => forwarded('350000000009999')],
    ['no device', 'INVALID_IMEI', (imei) => ({ position: forwarded(imei).position })],
    ['no position', 'INVALID_BODY', (imei) => ({ device: { uniqueId: imei } })],
  ];
  for (const [title, code, body] of rejected) {
    test(`answers 200 and rejects with ${code} what has ${title}, so that Traccar does not retry it`, async () => {
      const imei = service.newDevice();
      const reply = await traccar(body(imei));
      const { accepted, rejected } = JSON.parse(reply.text).data;
      assert.deepEqual([reply.status, accepted, rejected.length], [200, 0, 1]);
      assert.deepEqual([rejected[0].index, rejected[0].code], [0, code]);
      await assertNothingOf(imei);
    });
  }

  test('refuses what is no JSON with 400, and more than any position with 413', async () => {
    const imei = service.newDevice();
    for (const body of ['', '{', 'id=1&lat=2'])
      assert.equal(outcome(await traccar(body)), '400 INVALID_BODY');
    for (const attributes of [{ raw: 'x'.repeat(65_536) }, { list: Array(3_000).fill({}) }])
      assert.equal(outcome(await traccar(forwarded(imei, {}, attributes))), '413 PAYLOAD_TOO_LARGE');
    await assertNothingOf(imei);
  });

  test('takes the token from the header only: 403', async () => {
    const imei = service.newDevice();
    for (const headers of [{}, { 'X-Ingest-Token': 'x' }])
      assert.equal(outcome(await traccar(forwarded(imei), headers)), '403 FORBIDDEN');
    const path = `/traccar?token=${INGEST_TOKEN}`;
    assert.equal((await rawRequest(service.pod.ingest, path, { method: 'POST', body: '{}' })).status, 403);
    await assertNothingOf(imei);
  });

  test('answers GET with 405', async () => {
    const headers = { 'X-Ingest-Token': INGEST_TOKEN };
    const reply = await rawRequest(service.pod.ingest, '/traccar', { headers });
    assert.deepEqual([reply.status, reply.headers.allow], [405, 'POST, OPTIONS']);
  });
});
