import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parentOf, parseTraceparent } from '../../src/traces/traceparent.ts';
import { runs } from '../support/torture.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const parent = { traceId: TRACE, spanId: SPAN };

describe('a traceparent', () => {
  test('names a trace and a span, and says whether they are recorded', () => {
    assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-01`), { ...parent, isSampled: true });
    assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-00`), { ...parent, isSampled: false });
    assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-03`), { ...parent, isSampled: true });
  });

  test('of a later version may say more', () => {
    assert.deepEqual(parseTraceparent(`01-${TRACE}-${SPAN}-01-more`), { ...parent, isSampled: true });
    assert.equal(parseTraceparent(`01-${TRACE}-${SPAN}-01more`), null);
  });

  for (const text of [
    '',
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01 `,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-1`,
  ]) {
    test(`is not ${JSON.stringify(text)}`, () => assert.equal(parseTraceparent(text), null));
  }

  test('of any other text is none', () => {
    fc.assert(
      fc.property(fc.string(), (text) => assert.equal(parseTraceparent(text), null)),
      { seed: 1, numRuns: runs(200) },
    );
  });

  test('is found among the headers in any case, and only where there is one', () => {
    const text = `00-${TRACE}-${SPAN}-01`;
    const found = { ...parent, isSampled: true };
    assert.deepEqual(parentOf(['Host', 'x', 'Traceparent', text, 'Accept', '*/*']), found);
    assert.deepEqual(parentOf(['x-client-id', text, 'TRACEPARENT', text]), found);
    assert.equal(parentOf(['Host', 'x', 'x-client-id', text]), null);
    assert.equal(parentOf(['traceparent', text, 'traceparent', text]), null);
    assert.equal(parentOf([]), null);
  });
});
