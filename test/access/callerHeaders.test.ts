import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { callerHeaders } from '../../src/http/authorize.ts';

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
      assert.deepEqual(callerHeaders(headers.flat()), oracle(headers.flat()));
    }),
  );
});
