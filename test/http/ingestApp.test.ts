import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { DeadlineExceeded } from '../../src/base/deadline.ts';
import { type Ingest, IngestOverload } from '../../src/flows/ingest.ts';
import { ingestApp } from '../../src/http/ingestApp.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { request } from '../support/pod.ts';

const TOKEN = 'token-for-tests';

/** The ingest listener on a flow that fails, and the levels of what it logged. */
async function serve(t: TestContext, failure: Error) {
  const levels: string[] = [];
  const server = createHttpServer(
    ingestApp({
      ingest: { store: () => Promise.reject(failure) } as unknown as Ingest,
      token: TOKEN,
      longestHistoryDays: 730,
      clock: Date.now,
      probes: { loaded: () => true, ready: () => true },
      metrics: {
        exposition: async () => ({ contentType: 'text/plain', text: '' }),
        countRejected: () => undefined,
        observeRequest: () => undefined,
      },
      log: { error: () => void levels.push('error'), warn: () => void levels.push('warn') },
    }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const send = (path: string, body: string) =>
    request(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'X-Ingest-Token': TOKEN },
      body,
    });
  const point = { imei: '350000000000001', recorded_at: Date.now(), latitude: 1, longitude: 1 };
  const position = { fixTime: Date.now(), latitude: 1, longitude: 1 };
  const replies = [
    await send('/positions', JSON.stringify(point)),
    await send('/traccar', JSON.stringify({ position, device: { uniqueId: point.imei } })),
    await send('/osmand', `id=${point.imei}&lat=1&lon=1`),
  ];
  return { replies, levels };
}

for (const [name, failure, status, code, level] of [
  ['too many points wait', new IngestOverload('too many points'), 503, 'SERVICE_UNAVAILABLE', null],
  ['the database cannot be asked', new DeadlineExceeded('secret'), 503, 'SERVICE_UNAVAILABLE', 'warn'],
  ['of a fault of this service', new Error('secret'), 500, 'INTERNAL_ERROR', 'error'],
] as const) {
  test(`a point that is not stored because ${name} is never acknowledged: ${status} ${code}`, async (t) => {
    const { replies, levels } = await serve(t, failure);
    for (const reply of replies) {
      assert.deepEqual([reply.status, reply.body.error.code], [status, code]);
      assert.doesNotMatch(reply.text, /secret/);
      assert.equal(reply.headers.get('retry-after'), null);
    }
    assert.deepEqual(levels, level === null ? [] : [level, level, level]);
  });
}
