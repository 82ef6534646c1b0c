import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { ApiClient, ApiFailure } from '../../../src/cli/remote/apiClient.ts';
import { serve } from '../../support/http/serve.ts';

interface Scripted {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** The connection is cut instead. */
  readonly isCut?: true;
}

const OK: Scripted = { status: 200, body: { data: [] } };
const refusal = (status: number, code: string, message: string, headers = {}): Scripted => ({
  status,
  body: { error: { code, message } },
  headers,
});
const LIMITED = refusal(429, 'TOO_MANY_REQUESTS', '120 calls a minute');

/** A client of a server that answers one call after the other like this. */
async function clientOf(t: TestContext, answers: readonly Scripted[], interrupted?: AbortSignal) {
  const requests: IncomingMessage[] = [];
  const { url } = await serve(t, (request, response) => {
    const answer = answers[requests.push(request) - 1] ?? OK;
    if (answer.isCut) {
      request.socket.destroy();
      return;
    }
    const { status, body, headers = {} } = answer;
    response.writeHead(status, { Connection: 'close', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  const said: string[] = [];
  const client = new ApiClient({
    url: `${url}/fleet/`,
    key: 'fk_test',
    say: (line) => void said.push(line),
    interrupted: interrupted ?? new AbortController().signal,
    pauseMs: 1,
  });
  return { client, requests, said };
}

const failure =
  (message: RegExp, mayHaveHappened = false) =>
  (error: unknown) => {
    assert.ok(error instanceof ApiFailure, String(error));
    assert.match(error.message, message);
    assert.equal(error.mayHaveHappened, mayHaveHappened);
    return true;
  };

test('a call beyond a limit waits until it may be made, and says so once', async (t) => {
  const soon = refusal(429, 'TOO_MANY_REQUESTS', '120 calls a minute', { 'Retry-After': '0' });
  const { client, requests, said } = await clientOf(t, [
    ...Array.from({ length: 9 }, () => LIMITED),
    soon,
    OK,
  ]);
  assert.equal((await client.call('GET', '/areas?limit=1', [200])).status, 200);
  assert.equal(requests.length, 11);
  assert.deepEqual(said, ['waiting: 120 calls a minute']);
  const [first] = requests;
  assert.deepEqual([first?.url, first?.headers['x-api-key']], ['/fleet/api/v3/areas?limit=1', 'fk_test']);
});

test('a pod that is lost later is tried again some times, one that never answered is not', async (t) => {
  const { client, requests } = await clientOf(t, [
    { ...OK, isCut: true },
    OK,
    { ...OK, isCut: true },
    refusal(503, 'SERVICE_UNAVAILABLE', 'the database is away'),
    OK,
    ...Array.from({ length: 4 }, () => ({ ...OK, isCut: true as const })),
  ]);
  await assert.rejects(client.call('GET', '/usage', [200]), failure(/does not answer/));
  assert.equal(requests.length, 1);
  await client.call('GET', '/usage', [200]);
  await client.call('POST', '/areas/import?dry_run=false', [200], '{}');
  assert.equal(requests.length, 5);
  await assert.rejects(client.call('DELETE', '/areas/1', [204]), failure(/does not answer/, true));
  assert.equal(requests.length, 9);
});

test('what is refused, redirected, or no answer of the service ends the work with its reason', async (t) => {
  const { client } = await clientOf(t, [
    refusal(403, 'INSUFFICIENT_SCOPE', 'the key lacks write_areas'),
    { status: 302, body: '', headers: { Location: 'http://127.0.0.1:9/' } },
    { status: 200, body: '<html>' },
    { status: 404, body: '<html>' },
  ]);
  const call = (expected = [200]) => client.call('GET', '/usage', expected);
  await assert.rejects(call(), failure(/answers 403 INSUFFICIENT_SCOPE: the key lacks write_areas$/));
  await assert.rejects(call(), failure(/is not the address of this service \(it answers 302\)/));
  assert.deepEqual((await call()).body, {});
  await assert.rejects(call(), failure(/is not the address of this service \(it answers 404\)/));
});

test('an interruption ends the wait for a limit', async (t) => {
  const abort = new AbortController();
  const { client, requests } = await clientOf(
    t,
    Array.from({ length: 1_000 }, () => refusal(429, 'X', 'an hour', { 'Retry-After': '3600' })),
    abort.signal,
  );
  const call = assert.rejects(client.call('GET', '/usage', [200]), failure(/^interrupted$/));
  abort.abort();
  await call;
  assert.ok(requests.length <= 1);
});
