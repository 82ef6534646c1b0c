import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scriptTimes } from '../../bench/console/scriptTimes.ts';

const event = (name: string, startMs: number, ms: number, other = {}) => ({
  name,
  ph: 'X',
  pid: 1,
  tid: 1,
  ts: startMs * 1_000,
  dur: ms * 2_000, // half of it without a processor
  tdur: ms * 1_000,
  ...other,
});

test('script counts once, for the frame in which it begins, in time of the processor', () => {
  const traceEvents = [
    event('FireAnimationFrame', 0, 2),
    event('FunctionCall', 1, 1), // within it
    event('TimerFire', 10, 1),
    event('Layout', 20, 5), // no script
    event('FunctionCall', 21, 9, { tid: 2 }), // of a worker
    event('FunctionCall', 34, 3),
    event('FireAnimationFrame', 90, 5),
  ];
  assert.deepEqual(scriptTimes(Buffer.from(JSON.stringify({ traceEvents }))), {
    frames: [3, 3, 5],
    drawn: 2,
    share: 0.11,
  });
});
