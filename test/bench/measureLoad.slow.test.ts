import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { Latencies } from '../../bench/measure/latencies.ts';
import { measureLoad } from '../../bench/measure/measureLoad.ts';
import { serve } from '../support/http/serve.ts';

const load = (url: string) => measureLoad({ url, connections: 4, amount: 100 });

describe('a load', () => {
  test('counts the answers and their times', async (t) => {
    const { url } = await serve(t, (_request, response) => response.end('ok'));
    const result = await load(url);
    assert.equal(result.completed, 100);
    assert.ok(result.seconds > 0 && result.busy > 0);
    assert.ok(new Latencies(result.latencies).percentile(1) > 0);
  });

  test('fails on a single answer that is not 2xx', async (t) => {
    let seen = 0;
    const { url } = await serve(t, (_request, response) => {
      response.statusCode = ++seen === 50 ? 429 : 200;
      response.end('ok');
    });
    await assert.rejects(load(url), /1 answers that were not 2xx.*429: 1/);
  });

  test('fails when a connection is closed without an answer', async (t) => {
    let seen = 0;
    const { url } = await serve(t, (request, response) => {
      if (++seen % 10 === 0) request.socket.end();
      else response.end('ok');
    });
    await assert.rejects(load(url), /the load failed: .*(without an answer|connection errors)/);
  });

  test('fails when nobody listens', async () => {
    const gone = createServer().listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const { port } = gone.address() as AddressInfo;
    gone.close();
    await once(gone, 'close');
    const load = measureLoad({ url: `http://127.0.0.1:${port}`, connections: 2, duration: 0.2 });
    await assert.rejects(load, /the load failed/);
  });
});
