import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type RawReply, type RawRequest, rawRequest } from '../support/http.ts';
import { type IngestService, STORED, startIngestService } from '../support/ingestService.ts';
import { INGEST_TOKEN } from '../support/pod.ts';

/** A second, because Traccar and phones send no fractions. */
const NOW_MS = Math.floor(Date.now() / 1000) * 1000 - 60_000;
const KMH_PER_KNOT = 1.852;
const TOKEN = { 'X-Ingest-Token': INGEST_TOKEN };
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

describe('/osmand', () => {
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

  const seconds = NOW_MS / 1000;
  const query = (text: string, headers: RawRequest['headers'] = TOKEN): Promise<RawReply> =>
    rawRequest(service.pod.ingest, `/osmand?${text}`, { headers });
  const form = (text: string, headers: RawRequest['headers'] = TOKEN): Promise<RawReply> =>
    rawRequest(service.pod.ingest, '/osmand', {
      method: 'POST',
      headers: { ...FORM, ...headers },
      body: text,
    });

  for (const [way, send] of [
    ['query', query],
    ['form', form],
  ] as const) {
    test(`200: all parameters as a ${way}, in the units of this service`, async () => {
      const imei = service.newDevice();
      const text =
        `id=${imei}&lat=41.9&lon=-12.5&timestamp=${seconds}&speed=10&bearing=270.5&altitude=33.5` +
        '&hdop=0.9&batt=87.5&accuracy=5&driverUniqueId=CARD+7&alarm=sos';
      assert.deepEqual(summaryOf(await send(text)), STORED);
      const location = await service.read(`/devices/${imei}/location`);
      assert.ok(Math.abs(location.speed_kmh - 10 * KMH_PER_KNOT) < 1e-9);
      assert.deepEqual([location.latitude, location.longitude, location.altitude_m], [41.9, -12.5, 33.5]);
      assert.equal(Date.parse(location.recorded_at), NOW_MS);
      assert.equal((await service.read(`/devices/${imei}/history`))[0].heading, 270.5);
      assert.deepEqual(
        (await service.read(`/events?device=${imei}`)).map(({ type }: { type: string }) => type),
        ['rfid', 'alarm'],
      );
    });
  }

  const accepted: [name: string, text: string][] = [
    ['deviceid instead of id', `deviceid=IMEI&lat=41.9&lon=12.5&timestamp=${seconds}`],
    ['location instead of lat and lon', `id=IMEI&location=41.9,12.5&timestamp=${seconds}`],
    ['location with a blank', `id=IMEI&location=41.9,%2012.5&timestamp=${seconds}`],
    ['milliseconds', `id=IMEI&lat=41.9&lon=12.5&timestamp=${NOW_MS}`],
    ['ISO 8601', `id=IMEI&lat=41.9&lon=12.5&timestamp=${new Date(NOW_MS).toISOString()}`],
    ['heading instead of bearing', `id=IMEI&lat=41.9&lon=12.5&timestamp=${seconds}&heading=90`],
    ['a small number as Java prints it', `id=IMEI&lat=4.19E1&lon=12.5&timestamp=${seconds}`],
  ];
  for (const [name, text] of accepted) {
    test(`200: ${name}`, async () => {
      const imei = service.newDevice();
      assert.deepEqual(summaryOf(await query(text.replace('IMEI', imei))), STORED);
      const { data } = { data: await service.read(`/devices/${imei}/location`) };
      assert.deepEqual([data.latitude, data.longitude, Date.parse(data.recorded_at)], [41.9, 12.5, NOW_MS]);
    });
  }

  test('200: without a timestamp the point is of now', async () => {
    const imei = service.newDevice();
    const sentAtMs = Date.now();
    assert.deepEqual(summaryOf(await query(`id=${imei}&lat=41.9&lon=12.5`)), STORED);
    const { recorded_at } = await service.read(`/devices/${imei}/location`);
    assert.ok(Date.parse(recorded_at) >= sentAtMs && Date.parse(recorded_at) <= Date.now());
  });

  test('200: query and form together, as POST with an empty body, and with an odd value named', async () => {
    const imei = service.newDevice();
    const url = `/osmand?id=${imei}&timestamp=${seconds}&lat=41.9&lon=12.5&bearing=north`;
    const empty = await rawRequest(service.pod.ingest, url, { method: 'POST', headers: TOKEN });
    assert.deepEqual(summaryOf(empty), { ...STORED, ignored: [{ index: 0, field: 'heading' }] });
    const both = await rawRequest(service.pod.ingest, `/osmand?id=${imei}`, {
      method: 'POST',
      headers: { ...TOKEN, ...FORM },
      body: `lat=41.9&lon=12.5&timestamp=${seconds + 1}`,
    });
    assert.deepEqual(summaryOf(both), STORED);
  });

  test('200: the same point again is a duplicate; an older one is late', async () => {
    const imei = service.newDevice();
    const at = (timestamp: number) => query(`id=${imei}&lat=41.9&lon=12.5&timestamp=${timestamp}`);
    summaryOf(await at(seconds));
    assert.deepEqual(summaryOf(await at(seconds)), { ...STORED, accepted: 0, duplicates: 1 });
    assert.deepEqual(summaryOf(await at(seconds - 1)), { ...STORED, late: 1 });
  });

  for (const [name, path, send] of [
    ['the query', '/osmand?token=', query],
    ['the query, behind a trailing slash', '/osmand/?token=', query],
    ['the form', '/osmand', form],
  ] as const) {
    test(`200: the token in ${name}`, async () => {
      const imei = service.newDevice();
      const text = `id=${imei}&lat=41.9&lon=12.5&timestamp=${seconds}`;
      const reply =
        send === form
          ? await form(`${text}&token=${INGEST_TOKEN}`, {})
          : await rawRequest(service.pod.ingest, `${path}${INGEST_TOKEN}&${text}`);
      assert.deepEqual(summaryOf(reply), STORED);
    });
  }

  const refused: [name: string, text: string][] = [
    ['no parameter', ''],
    ['no device', 'lat=41.9&lon=12.5'],
    ['no IMEI', 'id=phone&lat=41.9&lon=12.5'],
    ['an unknown device', 'id=350000000009999&lat=41.9&lon=12.5'],
    ['no coordinates', 'id=IMEI'],
    ['half a coordinate', 'id=IMEI&lat=41.9'],
    ['impossible coordinates', 'id=IMEI&lat=99&lon=12.5'],
    ['(0, 0)', 'id=IMEI&lat=0&lon=0'],
    ['half a location', 'id=IMEI&location=41.9'],
    ['three parts of a location', 'id=IMEI&location=41.9,12.5,7'],
    ['no time', 'id=IMEI&lat=41.9&lon=12.5&timestamp=noon'],
    ['a clock in the past', 'id=IMEI&lat=41.9&lon=12.5&timestamp=1'],
    ['a clock in the future', 'id=IMEI&lat=41.9&lon=12.5&timestamp=32503680000'],
    ['a parameter given twice', 'id=IMEI&lat=41.9&lon=12.5&lat=41.9'],
    ['no valid fix', 'id=IMEI&lat=41.9&lon=12.5&valid=false'],
  ];
  for (const [name, text] of refused) {
    test(`400: ${name}`, async () => {
      const imei = service.newDevice();
      for (const send of [query, form]) {
        assert.deepEqual(outcome(await send(text.replace('IMEI', imei))), [400, 'BAD_REQUEST']);
      }
      await nothingOf(imei);
    });
  }

  test('200: the token of the form goes before that of the query, as all its fields do', async () => {
    const imei = service.newDevice();
    const send = (inQuery: string, inForm: string) =>
      rawRequest(service.pod.ingest, `/osmand?token=${inQuery}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        body: `id=${imei}&lat=41.9&lon=12.5&token=${inForm}`,
      });
    assert.equal((await send('x', 'y')).status, 403);
    assert.equal((await send(INGEST_TOKEN, 'y')).status, 403);
    assert.equal((await send('x', INGEST_TOKEN)).status, 200);
  });

  test('200: parameters that are not read may come twice, as a phone sends the masts and networks it sees', async () => {
    for (const send of [query, form]) {
      const imei = service.newDevice();
      const text = `id=${imei}&lat=41.9&lon=12.5&timestamp=${seconds}&cell=1,2,3,4&cell=1,2,3,5&wifi=a&wifi=b&x=1&x=2`;
      assert.deepEqual(summaryOf(await send(text)), STORED);
    }
  });

  test('400: more parameters than any phone sends', async () => {
    const imei = service.newDevice();
    const text = `id=${imei}&lat=41.9&lon=12.5${'&x=1'.repeat(300)}`;
    for (const send of [query, form]) assert.deepEqual(outcome(await send(text)), [400, 'BAD_REQUEST']);
    await nothingOf(imei);
  });

  test('400: any other parameter twice, wherever the token stands', async () => {
    const imei = service.newDevice();
    for (const twice of [
      `id=${imei}&lat=41.9&lat=41.9&lon=12.5`,
      `id=${imei}&lat=41.9&lon=12.5&alarm=a&alarm=b`,
    ]) {
      for (const send of [query, form]) {
        assert.deepEqual(outcome(await send(`${twice}&token=${INGEST_TOKEN}`, {})), [400, 'BAD_REQUEST']);
        assert.deepEqual(outcome(await send(twice)), [400, 'BAD_REQUEST']);
      }
    }
    await nothingOf(imei);
  });

  test('403: a token that is missing, wrong or given twice', async () => {
    const imei = service.newDevice();
    const text = `id=${imei}&lat=41.9&lon=12.5`;
    const replies = [
      await query(text, {}),
      await form(text, {}),
      await query(`${text}&token=x`, {}),
      await form(`${text}&token=`, {}),
      await query(`${text}&token=${INGEST_TOKEN}&token=${INGEST_TOKEN}`, {}),
      await query(`${text}&token=${INGEST_TOKEN}`, { 'X-Ingest-Token': 'wrong' }),
    ];
    for (const reply of replies) assert.deepEqual(outcome(reply), [403, 'FORBIDDEN']);
    await nothingOf(imei);
  });

  test('405: methods other than GET and POST store nothing, HEAD neither', async () => {
    const imei = service.newDevice();
    for (const method of ['HEAD', 'PUT', 'DELETE']) {
      const reply = await rawRequest(service.pod.ingest, `/osmand?id=${imei}&lat=41.9&lon=12.5`, {
        method,
        headers: TOKEN,
      });
      assert.deepEqual([reply.status, reply.headers.allow], [405, 'GET, POST, OPTIONS']);
    }
    await nothingOf(imei);
  });

  test('413: a form larger than any tracker sends', async () => {
    const reply = await form(`id=${service.newDevice()}&lat=41.9&lon=12.5&x=${'x'.repeat(65_536)}`);
    assert.deepEqual(outcome(reply), [413, 'PAYLOAD_TOO_LARGE']);
  });

  describe('JSON, as Traccar Client 9 sends it', () => {
    const json = (body: unknown): Promise<RawReply> =>
      rawRequest(service.pod.ingest, `/osmand?token=${INGEST_TOKEN}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
    const location = {
      timestamp: new Date(NOW_MS).toISOString(),
      coords: { latitude: 41.9, longitude: 12.5 },
    };

    test('200: a location', async () => {
      const imei = service.newDevice();
      assert.deepEqual(summaryOf(await json({ location, device_id: imei })), STORED);
      const { recorded_at } = await service.read(`/devices/${imei}/location`);
      assert.equal(Date.parse(recorded_at), NOW_MS);
    });

    test('400: what is no JSON, no location, or no valid one', async () => {
      const imei = service.newDevice();
      assert.deepEqual(outcome(await json('{')), [400, 'INVALID_BODY']);
      for (const body of [{ device_id: imei }, { location: [location], device_id: imei }, [], { location }]) {
        assert.deepEqual(outcome(await json(body)), [400, 'BAD_REQUEST']);
      }
      await nothingOf(imei);
    });

    test('413: more values than any phone sends', async () => {
      const imei = service.newDevice();
      const body = { location: { ...location, extras: { list: Array(3_000).fill(1) } }, device_id: imei };
      assert.deepEqual(outcome(await json(body)), [413, 'PAYLOAD_TOO_LARGE']);
      await nothingOf(imei);
    });
  });
});
