import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rawRequest } from '../support/http/http.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { INGEST_TOKEN } from '../support/pod.ts';

const VAN = '350000000000001';

/** What an operator's dashboards are built on. */
const FAMILIES = [
  ...['fleet_http_request_duration_seconds', 'fleet_ingest_points_total', 'fleet_events_total'],
  ...['fleet_redis_events_total', 'fleet_memory_devices', 'fleet_memory_positions'],
  ...['fleet_memory_worlds', 'fleet_memory_keys', 'fleet_memory_load_seconds', 'fleet_memory_stays'],
  ...['fleet_stays_refused_total'],
  ...['fleet_feed_lag_seconds', 'fleet_ingest_waiting_points', 'process_resident_memory_bytes'],
  ...['nodejs_eventloop_lag_seconds', 'fleet_build_info'],
];

describe('probes and metrics', () => {
  const devices = [{ imei: VAN }, { imei: '350000000000002' }];
  const owner = ownerPod({ devices }, async ({ pod }) => {
    const point = { imei: VAN, recorded_at: Date.now(), latitude: 1, longitude: 1, rfid: 'card' };
    const late = { ...point, recorded_at: point.recorded_at - 1_000 };
    await pod.points([point]);
    await pod.points([point, late, { ...point, imei: '350000000000009' }, {}, { ...point, imei: 'x' }]);
  });

  const { pod } = owner;
  const port = (name: string): string => (name === 'public' ? pod.api : pod.ingest);

  for (const name of ['public', 'ingest']) {
    test(`/healthz and /readyz are on the ${name} port, without key and token`, async () => {
      for (const [path, body] of [
        ['/healthz', '{"status":"up"}'],
        ['/readyz', '{"status":"ready","reasons":[]}'],
        ['/healthz/', '{"status":"up"}'],
        ['/readyz?writes=true', '{"status":"ready","reasons":[]}'],
        ['/readyz?verbose=1&verbose=1', '{"status":"ready","reasons":[]}'],
      ] as const) {
        const reply = await rawRequest(port(name), path);
        assert.deepEqual([reply.status, reply.text], [200, body]);
        assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8');
        const head = await rawRequest(port(name), path, { method: 'HEAD' });
        assert.deepEqual([head.status, head.text], [200, '']);
      }
    });

    test(`other methods are refused on the ${name} port`, async () => {
      for (const path of name === 'ingest' ? ['/healthz', '/readyz', '/metrics'] : ['/healthz', '/readyz']) {
        const reply = await rawRequest(port(name), path, { method: 'POST', body: '{}' });
        assert.deepEqual(
          [reply.status, JSON.parse(reply.text).error.code, reply.headers.allow],
          [405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, OPTIONS'],
        );
        const options = await rawRequest(port(name), path, { method: 'OPTIONS' });
        assert.deepEqual([options.status, options.headers.allow], [204, 'GET, HEAD, OPTIONS']);
      }
    });
  }

  test('/metrics is not on the public port, with or without a key', async () => {
    assert.equal((await rawRequest(pod.api, '/metrics')).status, 404);
    assert.equal((await pod.get('/metrics', owner.key)).status, 404);
    assert.equal((await pod.get('/metrics', undefined, { 'X-Ingest-Token': INGEST_TOKEN })).status, 404);
  });

  describe('/metrics on the ingest port', () => {
    const scrape = async (): Promise<string> => {
      const reply = await rawRequest(pod.ingest, '/metrics');
      assert.equal(reply.status, 200);
      assert.match(String(reply.headers['content-type']), /^text\/plain; version=0\.0\.4/);
      return reply.text;
    };
    const value = (text: string, sample: string): number => {
      const line = text.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
      assert.ok(line !== undefined, sample);
      return Number(line.slice(sample.length + 1));
    };

    test('shows every family, each with its help and type', async () => {
      const text = await scrape();
      for (const family of FAMILIES) {
        assert.match(text, new RegExp(`^# HELP ${family} .`, 'm'));
        assert.match(text, new RegExp(`^# TYPE ${family} (counter|gauge|histogram)$`, 'm'));
      }
    });

    test('counts points by what became of them, events, and what memory holds', async () => {
      const text = await scrape();
      for (const [outcome, count] of [
        ['accepted', 1],
        ['late', 1],
        ['duplicate', 1],
        ['unknown_device', 1],
        ['rejected', 2],
      ]) {
        assert.equal(value(text, `fleet_ingest_points_total{outcome="${outcome}"}`), count, String(outcome));
      }
      assert.equal(value(text, 'fleet_events_total'), 1);
      assert.equal(value(text, 'fleet_memory_devices'), 2);
      assert.equal(value(text, 'fleet_memory_positions'), 1);
      assert.equal(value(text, 'fleet_ingest_waiting_points'), 0);
      assert.ok(value(text, 'fleet_feed_lag_seconds') < 60);
    });

    test('observes answers by route pattern and status, and says nothing of keys, tokens and devices', async () => {
      await pod.get(`/api/v2/devices/${VAN}`, owner.key);
      await pod.get(`/api/v3/devices/${VAN}/location?api_key=${owner.key}`, owner.key);
      await pod.get(`/api/v2/devices/${VAN}/nowhere`, owner.key);
      await pod.get(`/api/v2/devices?key=${owner.key}`);
      await pod.get(`/api/v2/events?key=${owner.key}`);
      await rawRequest(pod.ingest, '/positions', { method: 'POST', headers: { 'X-Ingest-Token': 'wrong' } });
      const text = await scrape();
      const count = (route: string, status: number) =>
        value(
          text,
          `fleet_http_request_duration_seconds_count{route="${route}",method="GET",status="${status}"}`,
        );
      assert.equal(count('/api/v2/devices/:imei', 200), 1);
      assert.equal(count('/api/v3/devices/:imei/location', 200), 1);
      assert.ok(count('other', 404) >= 1);
      assert.deepEqual([count('/api/v2/devices', 403), count('/api/v2/events', 403)], [1, 1]);
      const ingested = (status: number) =>
        value(
          text,
          `fleet_http_request_duration_seconds_count{route="/positions",method="POST",status="${status}"}`,
        );
      assert.deepEqual([ingested(200), ingested(403)], [2, 1]);
      for (const secret of [owner.key, owner.key.slice(0, 6), INGEST_TOKEN, VAN])
        assert.ok(!text.includes(secret), secret);
    });
  });
});
