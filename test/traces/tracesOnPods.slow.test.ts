import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { started } from '../support/started.ts';
import { type CollectedSpan, startCollector, treeOf } from '../support/traces/collector.ts';
import { waitFor } from '../support/waitFor.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';
import { EventSource, endpointBody, webhookApi, webhookEnv } from '../support/webhooks/webhooks.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000017';
const COLLECTOR_KEY = 'hidden-word-for-the-collector';
const RECEIVER_PATH = '/hidden-path?token=hidden-word-of-the-receiver';
/** Of whoever sends the points, and of whoever polls. */
const SENDER = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
const POLLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const headerOf = ({ traceId, spanId }: typeof SENDER) => ({ traceparent: `00-${traceId}-${spanId}-01` });

/** `OTEL_TRACES_SAMPLER_ARG=0`: only what continues a trace is recorded. */
const tracedEnv = (collectorUrl: string, more: Readonly<Record<string, string>> = {}) =>
  webhookEnv(60_000, {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collectorUrl}/otlp`,
    OTEL_EXPORTER_OTLP_HEADERS: `x-collector-key=${COLLECTOR_KEY}`,
    OTEL_TRACES_SAMPLER_ARG: '0',
    ...more,
  });

async function startTraced() {
  const { url } = await createDatabase();
  const [redis, collector, receiver] = [await startRedis(), await startCollector(), await startReceiver()];
  const admin = adminOf(url, redis.url);
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  const { key } = await admin.key(OWNER);
  const shared = tracedEnv(collector.url, { REDIS_URL: redis.url });
  const [front, back] = await Promise.all([
    startPod(url, { env: { ...shared, ROLES: 'api,ingest' } }),
    startPod(url, { env: { ...shared, ROLES: 'delivery,api', OTEL_SERVICE_NAME: 'fleet-delivery' } }),
  ]);
  const hook = await webhookApi(front.api, key).make(endpointBody(receiver.url + RECEIVER_PATH));
  const stop = async (): Promise<void> => {
    await Promise.all([front.stop(), back.stop()]);
    await Promise.all([collector.close(), receiver.close(), redis.stop()]);
  };
  const source = new EventSource(IMEI, Date.now() - 86_400_000);
  return { key, hook, collector, receiver, front, back, source, stop };
}

async function sendPoint({ ingest }: Pod, point: object, headers: Readonly<Record<string, string>>) {
  const { status } = await fetch(`${ingest}/positions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': 'token-for-all-tests', ...headers },
    body: JSON.stringify(point),
  });
  assert.equal(status, 200);
}

const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan => {
  const found = spans.filter((span) => span.name === name);
  assert.equal(found.length, 1, `one span ${name} among ${spans.map((span) => span.name)}`);
  return found[0] as CollectedSpan;
};

describe('two pods with a collector', { skip: skipWithoutRedis() }, () => {
  const setup = started(startTraced, ({ stop }) => stop());

  test('a point, its event and its webhook are one trace, whichever pod does what', async () => {
    const { collector, receiver, front, source } = setup;
    await sendPoint(front, source.point(), headerOf(SENDER));
    const spans = await collector.traceWith(SENDER.traceId, 'deliver webhook');
    assert.deepEqual(treeOf(spans, SENDER.spanId), [
      'POST /positions',
      '  answer',
      '  parse',
      '  store',
      '    deliver webhook',
      '      POST',
      '      claim',
      '      resolve address',
      '      result',
      '    transaction',
      '      commit',
      '      evaluate',
      '      lock devices',
      '      publish',
      '      store events',
      '      store points',
    ]);
    assert.ok(spans.every((span) => span.traceId === SENDER.traceId));
    assert.deepEqual(named(spans, 'POST /positions').attributes, {
      'http.request.method': 'POST',
      'http.route': '/positions',
      'http.response.status_code': 200,
      'fleet.points': 1,
    });
    const transaction = named(spans, 'transaction');
    assert.equal(transaction.attributes['db.system.name'], 'postgresql');
    assert.equal(transaction.attributes['fleet.events'], 1);
    const [delivery] = receiver.to(RECEIVER_PATH);
    const request = named(spans, 'POST');
    assert.equal(delivery?.headers['traceparent'], `00-${SENDER.traceId}-${request.spanId}-01`);
    assert.deepEqual(request.attributes, {
      'http.request.method': 'POST',
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(receiver.url).port),
      'http.response.status_code': 200,
    });
    const { attributes, resource } = named(spans, 'deliver webhook');
    assert.equal(attributes['fleet.event.id'], JSON.parse(delivery?.body ?? '').id);
    assert.equal(attributes['fleet.delivery.attempt'], 1);
    assert.equal(resource['service.name'], 'fleet-delivery');
    assert.equal(named(spans, 'POST /positions').resource['service.name'], 'fleet');
  });

  test('a poll: admission with its round trip to Redis, search, answer', async () => {
    const { collector, front, key } = setup;
    const nearest = '/api/v3/devices/nearest?lat=41.9&lng=12.5';
    assert.equal((await front.get(nearest, key)).status, 200);
    assert.equal((await front.get(nearest, key, headerOf(POLLER))).status, 200);
    const spans = await collector.traceWith(POLLER.traceId, 'GET /api/v3/devices/nearest');
    assert.deepEqual(treeOf(spans, POLLER.spanId), [
      'GET /api/v3/devices/nearest',
      '  admission',
      '    limits and versions',
      '  answer',
      '  search',
    ]);
    const { attributes, kind } = named(spans, 'GET /api/v3/devices/nearest');
    assert.equal(kind, 2, 'a server');
    assert.deepEqual(Object.keys(attributes).toSorted(), [
      'fleet.account.id',
      'http.request.method',
      'http.response.status_code',
      'http.route',
    ]);
    assert.deepEqual(named(spans, 'limits and versions').attributes, { 'db.system.name': 'redis' });
    for (const span of spans) assert.ok(span.startNs <= span.endNs);
  });

  test('a route with an IMEI, and an error, say no more than their pattern and status', async () => {
    const { collector, front, key } = setup;
    const traceId = 'a'.repeat(32);
    const headers = headerOf({ traceId, spanId: 'b'.repeat(16) });
    assert.equal((await front.get(`/api/v3/devices/${IMEI}/location`, key, headers)).status, 200);
    assert.equal((await front.get('/api/v3/devices/350000000000099', key, headers)).status, 404);
    const spans = await collector.traceWith(traceId, 'GET /api/v3/devices/:imei');
    assert.equal(named(spans, 'GET /api/v3/devices/:imei').attributes['http.response.status_code'], 404);
    assert.ok(spans.some(({ name }) => name === 'GET /api/v3/devices/:imei/location'));
  });

  test('what continues no trace is not recorded, and its webhook gets no traceparent', async () => {
    const { collector, receiver, front, source } = setup;
    const before = receiver.to(RECEIVER_PATH).length;
    await sendPoint(front, source.point(), {});
    await waitFor(() => receiver.to(RECEIVER_PATH).length > before);
    assert.equal(receiver.to(RECEIVER_PATH).at(-1)?.headers['traceparent'], undefined);
    await sendPoint(front, source.point(), headerOf({ traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) }));
    await collector.traceWith('c'.repeat(32), 'deliver webhook');
    const known = [SENDER.traceId, POLLER.traceId, 'a'.repeat(32), 'c'.repeat(32)];
    assert.deepEqual(
      collector.spans.filter(({ traceId }) => !known.includes(traceId)),
      [],
    );
  });

  test('a stop sends what has ended; nothing that was sent holds a secret, a device or a place', async () => {
    const { collector, front, back, key, hook } = setup;
    const traceId = 'e'.repeat(32);
    await front.get('/api/v3/devices', key, headerOf({ traceId, spanId: 'f'.repeat(16) }));
    await Promise.all([front.stop(), back.stop()]);
    assert.ok(collector.spans.some((span) => span.traceId === traceId && span.name === 'answer'));
    assert.ok(collector.headers.every((headers) => headers['x-collector-key'] === COLLECTOR_KEY));
    assert.deepEqual([...new Set(collector.paths)], ['/otlp/v1/traces']);
    const sent = collector.bodies.join('\n');
    assert.ok(sent.includes('/api/v3/devices/:imei/location'), 'there is something to search');
    for (const secret of [
      key,
      hook.secret,
      'token-for-all-tests',
      'hidden-',
      IMEI,
      '350000000000099',
      '41.9',
      OWNER,
    ])
      assert.ok(!sent.includes(secret), `${secret} was sent`);
  });
});

describe('a collector that never answers', () => {
  test('costs its spans and nothing else: they are counted, calls are answered, and the stop does not wait', async (t) => {
    const { url } = await createDatabase(t);
    const collector = await startCollector(t);
    collector.behave('hang');
    const env = { ...tracedEnv(collector.url), ...NO_LIMITS, OTEL_TRACES_SAMPLER: 'always_on' };
    const pod = await startPod(url, { t, env });
    const dropped = async () =>
      Number(
        /^fleet_trace_spans_dropped_total\{reason="export_failed"\} (\d+)$/m.exec(
          await (await fetch(`${pod.ingest}/metrics`)).text(),
        )?.[1],
      );
    assert.equal(await dropped(), 0);
    assert.equal((await pod.get('/api/v3/devices', 'fk_wrong')).status, 403);
    await waitFor(() => collector.bodies.length > 0);
    assert.equal((await pod.get('/api/v3/devices', 'fk_wrong')).status, 403);
    await waitFor(async () => (await dropped()) > 0);
    await pod.get('/api/v3/devices', 'fk_wrong');
    const sinceMs = performance.now();
    await pod.stop();
    assert.ok(collector.spans.length === 0 && collector.bodies.length > 1, 'it has tried');
    t.diagnostic(`stopped after ${Math.round(performance.now() - sinceMs)} ms`);
  });
});
