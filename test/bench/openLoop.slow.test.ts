import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Latencies } from '../../bench/measure/latencies.ts';
import { startOpenLoop } from '../../bench/measure/openLoop.ts';
import { serve } from '../support/http/serve.ts';

const answer: RequestListener = (_request, response) => response.setHeader('Content-Length', 2).end('ok');
const load = { headers: { 'X-API-Key': 'own' }, paths: ['/a', '/b'], perSecond: 500 };

describe('a load at a given rate', () => {
  test('counts a pause of the server for every call that was due in it, also for those that it sends later', async (t) => {
    const pauseMs = 400;
    const held: (() => void)[] = [];
    const release = () => {
      for (const go of held.splice(0)) go();
    };
    let seen = 0;
    // Every answer waits until the pause is over: no connection is free for the calls that are due meanwhile.
    const { url } = await serve(t, (request, response) => {
      if (++seen === 1) setTimeout(release, pauseMs);
      if (seen <= 64) held.push(() => answer(request, response));
      else answer(request, response);
    });
    const stop = await startOpenLoop({ ...load, urls: [url] });
    while (held.length > 0 || seen === 0) await sleep(10);
    const { completed, latencies } = await stop();
    assert.equal(seen, completed);
    assert.ok(completed > 64, 'more calls were due than there are connections');
    // More have waited than were sent when it began.
    const waitedMs = new Latencies(latencies).percentile(1 - 65 / completed);
    assert.ok(waitedMs > pauseMs / 4, `${waitedMs} ms`);
  });

  test('makes the calls in turn, with the keys in turn, and at the end waits for what is under way', async (t) => {
    const seen: string[] = [];
    const { url } = await serve(t, async (request, response) => {
      seen.push(`${request.url} ${request.headers['x-api-key']}`);
      await sleep(30);
      answer(request, response);
    });
    const stop = await startOpenLoop({ ...load, keys: ['first', 'second'], urls: [url] });
    while (seen.length < 4) await sleep(5);
    const { completed } = await stop();
    assert.equal(completed, seen.length);
    assert.deepEqual(seen.slice(0, 4), ['/a first', '/b second', '/a first', '/b second']);
  });

  test('reads an answer that comes in pieces', async (t) => {
    const { url } = await serve(t, async (_request, response) => {
      response.setHeader('Content-Length', 200_000).write('x'.repeat(100_000));
      await sleep(5);
      response.end('y'.repeat(100_000));
    });
    const stop = await startOpenLoop({ ...load, urls: [url] });
    await sleep(50);
    assert.ok(!Number.isNaN(new Latencies((await stop()).latencies).percentile(0.5)));
  });

  test('fails on a single answer that is not 200', async (t) => {
    let seen = 0;
    const { url } = await serve(t, (request, response) => {
      if (++seen === 5) response.statusCode = 429;
      answer(request, response);
    });
    const stop = await startOpenLoop({ ...load, urls: [url] });
    while (seen < 5) await sleep(5);
    await assert.rejects(stop(), /an answer began with HTTP\/1.1 429/);
  });

  test('counts 503 apart where the server gets too much, opens more connections, and ends without what has no answer', async (t) => {
    let seen = 0;
    const held: (() => void)[] = [];
    const { url } = await serve(t, (request, response) => {
      if (++seen % 2 === 0) response.statusCode = 503;
      held.push(() => answer(request, response));
    });
    const many = { ...load, perSecond: 4_000, connectionsMax: 100, overloads: true, urls: [url] } as const;
    const stops = [await startOpenLoop(many)];
    while (held.length < 100) await sleep(5);
    await sleep(30);
    assert.equal(held.length, 100, 'one call for each connection');
    for (const go of held.splice(0)) go();
    while (held.length < 100) await sleep(5); // each is sent when the answer before has come
    stops.push(await startOpenLoop({ ...many, settleMs: 60_000 }));
    while (held.length < 200) await sleep(5);
    for (const go of held.splice(100)) go();
    while (held.length < 200) await sleep(5);
    const [counted, settling] = await Promise.all(stops.map((stop) => stop()));
    assert.deepEqual([counted?.completed, counted?.refused], [50, 50]);
    assert.deepEqual([settling?.completed, settling?.refused], [0, 0]);
  });

  test('fails when a connection is closed without an answer', async (t) => {
    let seen = 0;
    const { url } = await serve(t, (request) => {
      seen++;
      request.socket.end();
    });
    const stop = await startOpenLoop({ ...load, urls: [url] });
    while (seen === 0) await sleep(5);
    await assert.rejects(stop(), /closed a connection/);
  });
});
