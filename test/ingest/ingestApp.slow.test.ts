import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IngestOverload } from '../../src/ingest/ingest.ts';
import { DeadlineExceeded } from '../../src/lib/time.ts';
import { ingestListener, wire } from '../support/http/ingestListener.ts';

for (const [name, failure, status, code, level] of [
  ['too many points wait', new IngestOverload('too many points'), 503, 'SERVICE_UNAVAILABLE', null],
  ['the database cannot be asked', new DeadlineExceeded('secret'), 503, 'SERVICE_UNAVAILABLE', 'warn'],
  ['of an error of this service', new Error('secret'), 500, 'INTERNAL_ERROR', 'error'],
] as const) {
  test(`a point that is not stored because ${name} is never acknowledged: ${status} ${code}`, async (t) => {
    const logged: string[] = [];
    const { send } = await ingestListener(t, { store: () => Promise.reject(failure), logged });
    const position = { fixTime: Date.now(), latitude: 1, longitude: 1 };
    const device = { uniqueId: '350000000000001' };
    const replies = [
      await send(wire()),
      await send(JSON.stringify({ position, device }), { path: '/traccar' }),
      await send(`id=${device.uniqueId}&lat=1&lon=1`, { path: '/osmand' }),
    ];
    for (const reply of replies) {
      assert.deepEqual([reply.status, reply.body.error.code], [status, code]);
      assert.doesNotMatch(reply.text, /secret/);
    }
    assert.deepEqual(logged, level === null ? [] : [level, level, level]);
  });
}
