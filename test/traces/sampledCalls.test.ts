import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type SpanOptions, type Tracer, trace } from '@opentelemetry/api';
import type { SamplingRule } from '../../src/traces/sampling.ts';
import { CONTINUED, Traces } from '../../src/traces/traces.ts';
import { keyOf, serveSide } from '../support/http/apiSide.ts';
import { bareRequest } from '../support/http/http.ts';
import { ingestListener, wire } from '../support/http/ingestListener.ts';

const HALF: SamplingRule = { ratio: 0.5, isParentBased: true };
const NEAREST = '/api/v3/devices/nearest?lat=41.9&lng=12.5';

/** Traces whose spans are counted and not recorded. `random` is what chance says. */
function countingTraces(random: number, rule = HALF) {
  const begun: string[] = [];
  let ignored = 0;
  const startSpan = (name: string, _options?: SpanOptions) => {
    begun.push(name);
    return trace.wrapSpanContext({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 });
  };
  const traces = new Traces({
    tracer: { startSpan } as Tracer,
    rule,
    random: () => random,
    tell: () => undefined,
    onIgnored: () => ignored++,
  });
  return { traces, begun, ignored: () => ignored };
}

/** A listener whose spans are counted. */
async function tracedSide(t: TestContext, random: number) {
  const { traces, begun, ignored } = countingTraces(random);
  const { url, server } = await serveSide(undefined, { traces });
  t.after(() => server.close());
  let calls = 0;
  /** Calls, as part of a trace with this flag or of none; true when the call was recorded. */
  const call = async (key: string, flag: '00' | '01' | null = null): Promise<boolean> => {
    begun.length = 0;
    const traceId = String(++calls).padStart(32, '0');
    const traceparent = flag === null ? {} : { traceparent: `00-${traceId}-${'1'.repeat(16)}-${flag}` };
    await bareRequest(url, NEAREST, { headers: { 'X-API-Key': key, ...traceparent } });
    return begun.includes('GET /api/v3/devices/nearest');
  };
  const calledOften = async (key: string, times: number): Promise<number> => {
    let sampled = 0;
    for (let n = 0; n < times; n++) if (await call(key, '01')) sampled++;
    return sampled;
  };
  return { begun, call, calledOften, ignored };
}

describe('a call', () => {
  test('that is not sampled makes no span', async (t) => {
    const { begun, call } = await tracedSide(t, 0.5);
    assert.equal(await call(keyOf('now')), false);
    assert.equal(await call(keyOf('later'), '00'), false);
    assert.deepEqual(begun, []);
  });

  test('without a trace is sampled by chance, one of a trace as its caller says', async (t) => {
    const { call } = await tracedSide(t, 0.49);
    assert.equal(await call(keyOf('now')), true);
    assert.equal(await call(keyOf('now'), '00'), false);
    const unlucky = await tracedSide(t, 0.5);
    assert.equal(await unlucky.call(keyOf('now'), '01'), true);
  });

  test('that is sampled has its parts: admission, search, answer', async (t) => {
    const { begun, call } = await tracedSide(t, 0);
    assert.equal(await call(keyOf('now')), true);
    assert.deepEqual(begun, ['GET /api/v3/devices/nearest', 'admission', 'search', 'answer']);
  });
});

describe('a caller who has every call continue a trace', () => {
  const TRIES = 3 * CONTINUED.burst;
  /** The bucket fills while the calls are made, however long this machine takes for them. */
  const allowed = (sinceMs: number) =>
    CONTINUED.burst + Math.ceil(((performance.now() - sinceMs) * CONTINUED.perSecond) / 1_000);

  test('has so many recorded as the bucket of their account allows; another account has all of its own', async (t) => {
    const { call, calledOften, ignored } = await tracedSide(t, 0.5);
    const sinceMs = performance.now();
    const sampled = await calledOften(keyOf('now'), TRIES);
    assert.ok(sampled >= CONTINUED.burst && sampled <= allowed(sinceMs), `${sampled} of ${TRIES}`);
    assert.equal(ignored(), TRIES - sampled);
    assert.equal(await call(keyOf('other'), '01'), true, 'the victim');
    const sameAccount = await calledOften(keyOf('later'), TRIES);
    assert.ok(
      sampled + sameAccount <= allowed(sinceMs),
      'a second key of the account has no bucket of its own',
    );
  });

  test('and shows another unknown key each time has no more than one', async (t) => {
    const { call, ignored } = await tracedSide(t, 0.5);
    const sinceMs = performance.now();
    let sampled = 0;
    for (let n = 0; n < TRIES; n++) if (await call(`fk_${String(n).padStart(43, 'z')}`, '01')) sampled++;
    assert.ok(sampled <= allowed(sinceMs), `${sampled} of ${TRIES}`);
    assert.equal(ignored(), TRIES - sampled);
    assert.equal(await call(keyOf('other'), '01'), true, 'the victim');
  });

  test('is treated beyond it as one without a trace: chance decides', async (t) => {
    const { calledOften, ignored } = await tracedSide(t, 0);
    assert.equal(await calledOften(keyOf('now'), TRIES), TRIES);
    assert.ok(ignored() > 0);
  });

  test('and sends points has as many recorded as the bucket of their network allows; another network has its own', async (t) => {
    const { traces, begun, ignored } = countingTraces(0.5);
    const { send } = await ingestListener(t, { traces });
    const sinceMs = performance.now();
    const sendFrom = async (from: string, times: number): Promise<number> => {
      begun.length = 0;
      for (let n = 0; n < times; n++) {
        const traceparent = `00-${String(n + 1).padStart(32, '0')}-${'1'.repeat(16)}-01`;
        assert.equal((await send(wire(), { from, headers: { traceparent } })).status, 200);
      }
      return begun.filter((name) => name === 'POST /positions').length;
    };
    const sampled = await sendFrom('192.0.2.1', TRIES);
    assert.ok(sampled >= CONTINUED.burst && sampled <= allowed(sinceMs), `${sampled} of ${TRIES}`);
    assert.equal(ignored(), TRIES - sampled);
    assert.equal(await sendFrom('198.51.100.1', 1), 1, 'the victim');
    assert.deepEqual(begun, ['POST /positions', 'parse', 'store', 'answer']);
  });
});
