import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type RawReply, type RawRequest, rawRequest } from '../support/http/http.ts';
import { ingestService, STORED } from '../support/ingest/ingestService.ts';
import { INGEST_TOKEN } from '../support/pod.ts';

// What phones and trackers send is a table in test/ingest/formats.

/** Whole seconds, because phones send no fractions. */
const NOW_MS = Math.floor(Date.now() / 1000) * 1000 - 60_000;
const SECONDS = NOW_MS / 1000;
const KMH_PER_KNOT = 1.852;
const TOKEN = { 'X-Ingest-Token': INGEST_TOKEN };

describe('/osmand', () => {
  const service = ingestService();

  const outcome = ({ status, text }: RawReply): string =>
    `${status} ${JSON.parse(text).error?.code ?? ''}`.trim();
  const assertStored = (reply: RawReply, expected = STORED) => {
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(JSON.parse(reply.text).data, expected);
  };
  const assertNothingOf = async (imei: string) => assert.deepEqual(await service.history(imei), []);

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
      ['no parameter', ''],
      ['an unknown device', 'id=350000000009999&lat=41.9&lon=12.5'],
      ['no coordinates', 'id=IMEI'],
      ['no valid time', 'id=IMEI&lat=41.9&lon=12.5&timestamp=noon'],
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
    assertStored(await at(SECONDS), { ...STORED, accepted: 0, duplicates: 1 });
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
