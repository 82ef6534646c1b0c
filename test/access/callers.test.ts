import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { newKey, readKey } from '../../src/access/credentials.ts';
import { clientAddress, parseCidrs } from '../../src/access/ipAddress.ts';
import { callerHeaders, callerOf, headerOf } from '../../src/http/authorize.ts';
import { runs } from '../support/torture.ts';

/** What Node's own object of headers says. */
function oracle(rawHeaders: readonly string[]) {
  const request = new IncomingMessage(new Socket());
  request.rawHeaders = [...rawHeaders];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = rawHeaders.slice(at, at + 2) as [string, string];
    const before = request.headers[name.toLowerCase()];
    request.headers[name.toLowerCase()] = before === undefined ? value : `${before}, ${value}`;
  }
  return {
    apiKey: request.headers['x-api-key'],
    forwardedFor: request.headers['x-forwarded-for'],
    apiVersion: request.headers['x-api-version'],
  };
}

const header = fc.tuple(
  fc.oneof(
    fc
      .constantFrom('X-API-Key', 'X-Forwarded-For', 'X-API-Version')
      .chain((name) =>
        fc
          .array(fc.boolean(), { minLength: name.length, maxLength: name.length })
          .map((upper) =>
            [...name].map((char, at) => (upper[at] ? char.toUpperCase() : char.toLowerCase())).join(''),
          ),
      ),
    fc.constantFrom('Host', 'X-Api-Kez', 'X-Api-Version2', 'Cookie', 'X-Forwarded-Foo', 'Authorization'),
  ),
  fc.string({ maxLength: 5 }),
);

test("the caller's headers are those of the whole request, however they are written and repeated", () => {
  fc.assert(
    fc.property(fc.array(header, { maxLength: 8 }), (headers) => {
      const all = headers.flat();
      const expected = oracle(all);
      assert.deepEqual(callerHeaders(all), expected);
      assert.equal(headerOf(all, 'x-api-key'), expected.apiKey);
      assert.equal(headerOf(all, 'x-forwarded-for'), expected.forwardedFor);
    }),
  );
});

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
