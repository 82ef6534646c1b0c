import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { INGEST_TOKEN, NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';
import { type Nginx, type NginxReply, skipWithoutNginx, startNginx } from './nginxServer.ts';

// The nginx.conf of the guide before two pods, with Postgres and Redis.

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
const PROXY = { TRUST_PROXY: '127.0.0.1' };
const MEGABYTE = 1024 * 1024;

interface Site {
  readonly nginx: Nginx;
  readonly pods: readonly [Pod, Pod];
  readonly admin: Admin;
  readonly key: string;
}

const portOf = (url: string): number => Number(new URL(url).port);
const codeOf = ({ status, body }: NginxReply): string => `${status} ${body?.error?.code ?? ''}`.trim();

async function startSite(
  t: TestContext,
  env: Readonly<Record<string, string>> = {},
  databaseUrl?: string,
): Promise<Site> {
  const url = databaseUrl ?? (await createDatabase(t)).url;
  const redis = await startRedis(t);
  const admin = adminOf(url, redis.url);
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  const start = () => startPod(url, { t, env: { ...NO_LIMITS, ...PROXY, REDIS_URL: redis.url, ...env } });
  const pods = [await start(), await start()] as const;
  const nginx = await startNginx(t, {
    api: [portOf(pods[0].api), portOf(pods[1].api)],
    ingest: portOf(pods[0].ingest),
  });
  return { nginx, pods, admin, key: (await admin.key(OWNER)).key };
}

/** How often the pods have stopped to use Redis. */
async function lostBy(pods: readonly Pod[]): Promise<number> {
  const counts = await Promise.all(
    pods.map(async (pod) => {
      const text = await (await fetch(`${pod.ingest}/metrics`)).text();
      return Number(/^fleet_redis_events_total{event="lost"} (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
    }),
  );
  const sum = counts.reduce((a, b) => a + b, 0);
  assert.ok(sum >= 0, 'the metric is there');
  return sum;
}

/** How many calls a pod has answered, by its own count. */
async function answeredBy(pod: Pod): Promise<number> {
  const metrics = await (await fetch(`${pod.ingest}/metrics`)).text();
  const counts = [...metrics.matchAll(/^fleet_http_request_duration_seconds_count\{.*\/api\/.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** A stream as its reader sees it. */
class StreamText {
  text = '';
  hasEnded = false;

  static async open(nginx: Nginx, key: string, lastId?: string): Promise<StreamText> {
    const headers = lastId === undefined ? {} : { 'Last-Event-ID': lastId };
    const response = await nginx.open('/api/v3/stream', key, headers);
    assert.equal(response.statusCode, 200);
    const stream = new StreamText();
    const end = () => {
      stream.hasEnded = true;
    };
    response.setEncoding('utf8').on('data', (text: string) => {
      stream.text += text;
    });
    response.on('end', end).on('error', end);
    await waitFor(() => stream.text.includes('event: device'));
    return stream;
  }

  get lastId(): string {
    return [...this.text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';
  }
}

describe('nginx before two pods', { skip: skipWithoutNginx() || skipWithoutRedis() }, () => {
  test('calls are counted by the client that makes them, over both pods, whatever it claims to be', async (t) => {
    const { nginx, pods, key } = await startSite(t, { RATE_LIMIT_IP_MINUTE: '30' });
    const claims: readonly ((n: number) => Record<string, string>)[] = [
      () => ({}),
      () => ({}),
      (n) => ({ 'X-Forwarded-For': `198.51.100.${n}` }),
      (n) => ({ 'X-Forwarded-For': `198.51.100.${n}, 127.0.0.1` }),
    ];
    const answered = (round: number): Promise<number[]> =>
      Promise.all(
        claims.map(async (claim, client) => {
          const calls = Array.from({ length: 80 }, (_, n) =>
            nginx.call('/api/v3/devices', { key, from: `127.0.${round}.${2 + client}`, headers: claim(n) }),
          );
          const replies = await Promise.all(calls);
          return replies.filter(({ status }) => status === 200).length;
        }),
      );
    // A pod of a busy machine that misses an answer of Redis counts alone for a moment: then other clients are counted.
    for (let round = 0; ; round++) {
      const before = await lostBy(pods);
      const counts = await answered(round);
      if ((await lostBy(pods)) > before) continue;
      assert.deepEqual(counts, [30, 30, 30, 30]);
      break;
    }
    for (const pod of pods) assert.ok((await answeredBy(pod)) > 100);
  });

  test('without Postgres, what is polled goes on beside what cannot be answered', async (t) => {
    const postgres = await startOwnPostgres(t);
    const { nginx, key } = await startSite(t, {}, postgres.url);
    const polled = '/api/v3/devices/nearest?lat=41.9&lng=12.5';
    for (let n = 0; n < 4; n++) assert.equal((await nginx.call(polled, { key })).status, 200);
    await postgres.kill();
    for (let n = 0; n < 8; n++) {
      assert.equal(codeOf(await nginx.call('/api/v3/events', { key })), '503 SERVICE_UNAVAILABLE');
      assert.equal(codeOf(await nginx.call(polled, { key })), '200', `call ${n}`);
    }
    await postgres.start();
    await waitFor(async () => (await nginx.call('/api/v3/events', { key })).status === 200);
  });

  test('two pods without limits', async (t) => {
    const { nginx, pods, admin, key } = await startSite(t);

    await t.test('an allowlist lets in who is on it, and nobody who says so', async () => {
      const allowed = (await admin.key(OWNER, { allow: '127.0.0.5' })).key;
      const cases: readonly [from: string, claim: string | null, outcome: string][] = [
        ['127.0.0.5', null, '200'],
        ['127.0.0.5', '203.0.113.9', '200'],
        ['127.0.0.6', null, '403 API_KEY_IP_BLOCKED'],
        ['127.0.0.6', '127.0.0.5', '403 API_KEY_IP_BLOCKED'],
        ['127.0.0.6', '127.0.0.5, 127.0.0.1', '403 API_KEY_IP_BLOCKED'],
        ['127.0.0.6', '127.0.0.5,', '403 API_KEY_IP_BLOCKED'],
      ];
      for (const [from, claim, outcome] of cases) {
        const headers: Record<string, string> = claim === null ? {} : { 'X-Forwarded-For': claim };
        for (const path of [`/api/v3/devices/${IMEI}`, '/api/v2/events']) {
          assert.equal(
            codeOf(await nginx.call(path, { key: allowed, from, headers })),
            outcome,
            `${from} as ${claim}, ${path}`,
          );
        }
      }
    });

    await t.test('external ids arrive as they were encoded', async () => {
      const body = { name: 'Gate', type: 'point', center: { lat: 41.9, lng: 12.5 } };
      for (const code of ['a/b#c', 'a/../b', 'a//b', '/', '../x', 'a:b@c.d_e-f', '#', '/osmand']) {
        const path = `/api/v3/areas/by-external-id/${encodeURIComponent(code)}`;
        const made = await nginx.call(path, { method: 'PUT', key, body });
        assert.equal(made.status, 201, `${code}: ${made.text}`);
        assert.equal(made.body.data.external_id, code);
        assert.equal((await nginx.call(path, { method: 'PUT', key, body })).status, 200);
        const listed = await nginx.call(`/api/v3/areas?external_id=${encodeURIComponent(code)}`, { key });
        assert.equal(listed.body.data[0]?.id, made.body.data.id);
      }
    });

    await t.test(
      'the largest import passes; a larger one is refused by the service, and a far larger one by nginx',
      async () => {
        const importOf = (bytes: number) => {
          const feature = {
            type: 'Feature',
            properties: { name: 'Gate', note: '' },
            geometry: { type: 'Point', coordinates: [12.5, 41.9] },
          };
          feature.properties.note = 'x'.repeat(bytes - JSON.stringify(feature).length);
          return nginx.call('/api/v3/areas/import', { method: 'POST', key, body: feature });
        };
        const passed = await importOf(32 * MEGABYTE);
        assert.equal(passed.body?.data?.created?.length, 1, passed.text);
        assert.equal(codeOf(await importOf(32 * MEGABYTE + 1)), '413 PAYLOAD_TOO_LARGE');
        assert.equal((await importOf(34 * MEGABYTE)).status, 413);
      },
    );

    await t.test('a phone reaches /osmand, and nobody the rest of the ingest port', async () => {
      const query = `id=${IMEI}&lat=41.9&lon=12.5&token=${INGEST_TOKEN}`;
      const taken = await nginx.call(`/osmand?${query}`);
      assert.deepEqual([taken.status, taken.body.data.accepted], [200, 1]);
      assert.equal((await nginx.call(`/osmand?${query}x`)).status, 403);
      for (const path of ['/positions', '/traccar', '/metrics', '/osmand/../metrics']) {
        const headers = { 'X-Ingest-Token': INGEST_TOKEN };
        assert.equal((await nginx.call(path, { headers })).status, 404, path);
      }
      assert.equal((await nginx.call('/readyz')).status, 200);
      assert.equal((await fetch(`${pods[0].ingest}/metrics`)).status, 200);
    });

    await t.test('connections to the pods are kept', async () => {
      let connections = 0;
      const relay = createServer((outside) => {
        connections++;
        const inside = connect(portOf(pods[0].api), '127.0.0.1');
        for (const socket of [outside, inside]) socket.on('error', () => undefined);
        outside.pipe(inside).pipe(outside);
      });
      relay.listen(0, '127.0.0.1');
      await once(relay, 'listening');
      t.after(() => relay.close());
      const address = relay.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      const relayed = await startNginx(t, { api: [port, port], ingest: port });
      for (let n = 0; n < 50; n++) assert.equal((await relayed.call('/api/v3/devices', { key })).status, 200);
      assert.ok(connections <= 2, `${connections} connections for 50 calls`);
    });

    await t.test(
      'a stream passes message by message, goes on over a reload, and on the other pod when one stops',
      async () => {
        let recordedAt = Date.now();
        const move = () =>
          pods[1].points([{ imei: IMEI, recorded_at: ++recordedAt, latitude: 41, longitude: 12 }]);
        const hasArrived = (stream: StreamText) => () =>
          stream.text.includes(`"recorded_at":"${new Date(recordedAt).toISOString()}"`);
        let stream = await StreamText.open(nginx, key);
        await move();
        await waitFor(hasArrived(stream));
        nginx.reload();
        await move();
        await waitFor(hasArrived(stream));
        assert.equal(stream.hasEnded, false);
        // Whichever of the two it is on.
        await pods[0].stop();
        await move();
        await waitFor(() => stream.hasEnded || hasArrived(stream)());
        if (stream.hasEnded) stream = await StreamText.open(nginx, key, stream.lastId);
        await waitFor(hasArrived(stream));
      },
    );
  });
});
