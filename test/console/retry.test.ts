import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRefusedForNow, limitEndsByMs, sessionEndText, wait } from '../../src/console/page/api.ts';
import { TOO_MANY_STREAMS } from '../../src/feeds/streams/stream.routes.ts';
import { limitMessage } from '../../src/http/authorize.ts';

const NOW_MS = 1_800_000_000_000;

test('the window of every limit of the service is known by its message, and that of no other refusal', () => {
  assert.equal(limitEndsByMs(limitMessage('ip_minute'), NOW_MS), NOW_MS + 60_000);
  assert.equal(limitEndsByMs(limitMessage('key_minute'), NOW_MS), NOW_MS + 60_000);
  assert.equal(limitEndsByMs(limitMessage('key_hour'), NOW_MS), NOW_MS + 3_600_000);
  assert.equal(limitEndsByMs(TOO_MANY_STREAMS, NOW_MS), null);
});

test('what is unreachable, over a limit or without its database is read again, and nothing else', () => {
  const again = [0, 400, 403, 404, 410, 422, 429, 500, 503].filter((status) =>
    isRefusedForNow({ ok: false, status }),
  );
  assert.deepEqual(again, [0, 429, 503]);
  assert.equal(isRefusedForNow({ ok: true }), false);
});

test('a session that ends before its time was ended by somebody', () => {
  const end = new Date(NOW_MS).toISOString();
  assert.match(sessionEndText(end, NOW_MS), /its time was over/);
  for (const expiresAt of [end, null]) assert.match(sessionEndText(expiresAt, NOW_MS - 1), /was ended: by/);
});

test('a wait that is given up ends at once', async () => {
  const giveUp = new AbortController();
  const waited = wait(1_000_000, giveUp.signal);
  giveUp.abort();
  await waited;
});
