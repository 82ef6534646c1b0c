import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { newKey, readKey } from '../../src/access/credentials.ts';
import { clientAddress, parseCidrs } from '../../src/access/ipAddress.ts';
import { callerOf } from '../../src/http/authorize.ts';
import { runs } from '../support/torture.ts';

const PROXY = '10.0.0.1';
const [ALICE, BOB] = [1, 2].map((byte) => newKey((count) => new Uint8Array(count).fill(byte)));
const parsed = parseCidrs(`${PROXY}/32`);
assert.ok(parsed.ok);
const TRUSTED = parsed.value;

const connection = (remoteAddress: string) => ({ remoteAddress }) as Socket;

test('whoever shares a connection, in whatever order, is taken for who he is', () => {
  const request = fc.record({
    by: fc.nat(2),
    apiKey: fc.constantFrom(undefined, '', 'fk_', ALICE, BOB),
    forwardedFor: fc.constantFrom(undefined, '', '192.0.2.1', '192.0.2.2', '192.0.2.1, 192.0.2.2', 'x'),
  });
  fc.assert(
    fc.property(fc.array(request, { maxLength: 30 }), (requests) => {
      const connections = [PROXY, PROXY, '192.0.2.9'].map(connection);
      for (const { by, apiKey, forwardedFor } of requests) {
        const socket = connections[by] as Socket;
        const { shown, client } = callerOf(socket, apiKey, forwardedFor, TRUSTED);
        assert.deepEqual(shown, readKey(apiKey));
        assert.deepEqual(client, clientAddress(socket.remoteAddress, forwardedFor, TRUSTED));
      }
    }),
    { seed: 7, numRuns: runs(75) },
  );
});

test('who goes on asking on his connection is not read again', () => {
  const socket = connection(PROXY);
  const first = callerOf(socket, ALICE, '192.0.2.1', TRUSTED);
  assert.equal(callerOf(socket, ALICE, '192.0.2.1', TRUSTED), first);
  assert.notEqual(callerOf(connection(PROXY), ALICE, '192.0.2.1', TRUSTED), first);
  assert.notEqual(callerOf(socket, BOB, '192.0.2.1', TRUSTED), first);
});
