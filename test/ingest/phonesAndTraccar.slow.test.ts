import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RawReply, type RawRequest, rawRequest } from '../support/http/http.ts';
import { ingestService, STORED } from '../support/ingest/ingestService.ts';
import { INGEST_TOKEN } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';
import { webhookApi } from '../support/webhooks/webhooks.ts';

// What phones, trackers and Traccar send is a table in test/ingest/formats/wireFormats.test.ts.

/** Whole seconds, because they send no fractions. */
const NOW_MS = Math.floor(Date.now() / 1000) * 1000 - 60_000;
const SECONDS = NOW_MS / 1000;
const KMH_PER_KNOT = 1.852;
const TOKEN = { 'X-Ingest-Token': INGEST_TOKEN };
const DUPLICATE = { ...STORED, accepted: 0, duplicates: 1 };

const service = ingestService();

const outcome = ({ status, text }: RawReply): string =>
  `${status} ${JSON.parse(text).error?.code ?? ''}`.trim();
const assertStored = (reply: RawReply, expected = STORED) => {
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(JSON.parse(reply.text).data, expected);
};
const assertNothingOf = async (imei: string) => assert.deepEqual(await service.history(imei), []);

describe('/osmand', () => {
  const post = (path: string, type: string, body: string, headers: RawRequest['headers'] = TOKEN) =>
    rawRequest(service.pod.ingest, path, {
      method: 'POST',
      headers: { 'Content-Type': type, ...headers },
      body,
    });
  const query = (text: string, headers: RawRequest['headers'] = TOKEN): Promise<RawReply> =>
    rawRequest(service.pod.ingest, `/osmand?${text}`, { headers });
  const form = (text: string, headers?: RawRequest['headers'], path = '/osmand'): Promise<RawReply> =>
    post(path, 'application/x-www-form-urlencoded', text, headers);

  for (const [place, send] of [
    ['the query', query],
    ['a form', form],
  ] as const) {
    test(`stores all parameters of ${place} in the units of this service`, async () => {
      const imei = service.newDevice();
      const place = `id=${imei}&lat=41.9&lon=-12.5&timestamp=${SECONDS}&speed=10&bearing=270.5&altitude=33.5`;
      assertStored(await send(`${place}&hdop=0.9&batt=87.5&accuracy=5&driverUniqueId=CARD+7&alarm=sos`));
      const { speed_kmh, ...location } = await service.read(`/devices/${imei}/location`);
      assert.ok(Math.abs(speed_kmh - 10 * KMH_PER_KNOT) < 1e-9);
      const recorded_at = new Date(NOW_MS).toISOString();
      assert.deepEqual(location, { latitude: 41.9, longitude: -12.5, altitude_m: 33.5, recorded_at });
      assert.equal((await service.history(imei))[0].heading, 270.5);
      const events: { type: string }[] = await service.read(`/events?device=${imei}`);
      assert.deepEqual(
        events.map(({ type }) => type),
        ['rfid', 'alarm'],
      );
    });

    test(`stores a point of ${place} that names no time as one of now`, async () => {
      const [imei, sentAtMs] = [service.newDevice(), Date.now()];
      assertStored(await send(`id=${imei}&lat=41.9&lon=12.5&cell=1,2&cell=1,3`));
      const recordedAtMs = Date.parse((await service.read(`/devices/${imei}/location`)).recorded_at);
      assert.ok(recordedAtMs >= sentAtMs && recordedAtMs <= Date.now());
    });

    for (const [title, text] of [
      ['an unknown device', 'id=350000000009999&lat=41.9&lon=12.5'],
      ['a parameter given twice', 'id=IMEI&lat=41.9&lon=12.5&lat=41.9'],
      ['more parameters than any phone sends', `id=IMEI&lat=41.9&lon=12.5${'&x=1'.repeat(300)}`],
    ] as const) {
      test(`refuses ${place} with ${title}: 400`, async () => {
        const imei = service.newDevice();
        assert.equal(outcome(await send(text.replace('IMEI', imei))), '400 BAD_REQUEST');
        await assertNothingOf(imei);
      });
    }
  }

  test('takes the query and a form together, and POST without a body, and names an odd value', async () => {
    const imei = service.newDevice();
    const text = `/osmand?id=${imei}&timestamp=${SECONDS}&lat=41.9&lon=12.5&bearing=north`;
    const empty = await rawRequest(service.pod.ingest, text, { method: 'POST', headers: TOKEN });
    assertStored(empty, { ...STORED, ignored: [{ index: 0, field: 'heading' }] });
    assertStored(await form(`lat=41.9&lon=12.5&timestamp=${SECONDS + 1}`, TOKEN, `/osmand?id=${imei}`));
  });

  test('says that a point came before, or is late', async () => {
    const imei = service.newDevice();
    const at = (timestamp: number) => query(`id=${imei}&lat=41.9&lon=12.5&timestamp=${timestamp}`);
    assertStored(await at(SECONDS));
    assertStored(await at(SECONDS), DUPLICATE);
    assertStored(await at(SECONDS - 1), { ...STORED, late: 1 });
  });

  test('takes the token from the header, the query or the form, of which the form goes first', async () => {
    const text = () => `id=${service.newDevice()}&lat=41.9&lon=12.5`;
    assertStored(await query(`${text()}&token=${INGEST_TOKEN}`, {}));
    assertStored(await rawRequest(service.pod.ingest, `/osmand/?token=${INGEST_TOKEN}&${text()}`));
    assertStored(await form(`${text()}&token=${INGEST_TOKEN}`, {}));
    assertStored(await form(`${text()}&token=${INGEST_TOKEN}`, {}, '/osmand?token=x'));
  });

  test('refuses a token that is missing, wrong or given twice with 403', async () => {
    const imei = service.newDevice();
    const text = `id=${imei}&lat=41.9&lon=12.5`;
    const good = `token=${INGEST_TOKEN}`;
    for (const reply of [
      await query(text, {}),
      await form(text, {}),
      await query(`${text}&token=x`, {}),
      await form(`${text}&token=`, {}),
      await query(`${text}&${good}&${good}`, {}),
      await query(`${text}&${good}`, { 'X-Ingest-Token': 'wrong' }),
      await form(`${text}&token=y`, {}, `/osmand?${good}`),
    ])
      assert.equal(outcome(reply), '403 FORBIDDEN');
    await assertNothingOf(imei);
  });

  test('answers other methods than GET and POST with 405 and stores nothing', async () => {
    const imei = service.newDevice();
    for (const method of ['HEAD', 'PUT', 'DELETE']) {
      const path = `/osmand?id=${imei}&lat=41.9&lon=12.5`;
      const reply = await rawRequest(service.pod.ingest, path, { method, headers: TOKEN });
      assert.deepEqual([reply.status, reply.headers.allow], [405, 'GET, POST, OPTIONS']);
    }
    await assertNothingOf(imei);
  });

  test('refuses a form larger than any tracker sends with 413', async () => {
    const reply = await form(`id=${service.newDevice()}&lat=41.9&lon=12.5&x=${'x'.repeat(65_536)}`);
    assert.equal(outcome(reply), '413 PAYLOAD_TOO_LARGE');
  });

  test('takes the JSON of Traccar Client 9, and refuses what is none', async () => {
    const imei = service.newDevice();
    const coords = { latitude: 41.9, longitude: 12.5 };
    const location = { timestamp: new Date(NOW_MS).toISOString(), coords };
    const long = { ...location, extras: { list: Array(3_000).fill(1) } };
    const json = (body: unknown): Promise<RawReply> =>
      post(`/osmand?token=${INGEST_TOKEN}`, 'application/json', JSON.stringify(body), {});
    for (const [body, expected] of [
      [{ device_id: imei }, '400 BAD_REQUEST'],
      [{ location: [location], device_id: imei }, '400 BAD_REQUEST'],
      [[], '400 BAD_REQUEST'],
      [{ location: long, device_id: imei }, '413 PAYLOAD_TOO_LARGE'],
    ] as const)
      assert.equal(outcome(await json(body)), expected);
    assert.equal(outcome(await post('/osmand', 'application/json', '{')), '400 INVALID_BODY');
    await assertNothingOf(imei);
    assertStored(await json({ location, device_id: imei }));
    assert.equal(Date.parse((await service.read(`/devices/${imei}/location`)).recorded_at), NOW_MS);
  });
});

describe('POST /traccar', () => {
  /** As Traccar writes a time. */
  const offsetForm = (ms: number): string => new Date(ms).toISOString().replace('Z', '+00:00');
  const traccar = (body: unknown, headers: RawRequest['headers'] = TOKEN) =>
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

  test('answers 200 to a position that is refused, with its code, so that Traccar does not retry it', async () => {
    const imei = service.newDevice();
    const reply = await traccar(forwarded(imei, { valid: false }));
    const { accepted, rejected } = JSON.parse(reply.text).data;
    assert.deepEqual([reply.status, accepted, rejected.length], [200, 0, 1]);
    assert.deepEqual([rejected[0].index, rejected[0].code], [0, 'INVALID_COORDINATES']);
    await assertNothingOf(imei);
  });

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
    const reply = await rawRequest(service.pod.ingest, '/traccar', { headers: TOKEN });
    assert.deepEqual([reply.status, reply.headers.allow], [405, 'POST, OPTIONS']);
  });
});
