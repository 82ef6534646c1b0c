import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WRONG_TOKENS } from '../../src/access/senderAuthorizer.ts';
import {
  ingestListener,
  type ListenerAnswer,
  type Sending,
  TOKENS,
  wire,
} from '../support/http/ingestListener.ts';

const { perWindow } = WRONG_TOKENS;
const outcome = ({ status, body }: ListenerAnswer) => [status, body.error?.code ?? body.data.accepted];
const PHONE = '/osmand?id=350000000000001&lat=1&lon=1';

describe('ingest tokens', () => {
  test('are taken, any of several, in the header as in the URL', async (t) => {
    const { send } = await ingestListener(t);
    for (const token of TOKENS) {
      assert.deepEqual(outcome(await send(wire(), { token })), [200, 1]);
      assert.deepEqual(outcome(await send('', { path: `${PHONE}&token=${token}`, token: null })), [200, 1]);
    }
    assert.deepEqual(outcome(await send(wire(), { token: TOKENS.join(',') })), [403, 'FORBIDDEN']);
  });

  const routes: [route: string, sendingOf: (token: string) => Sending][] = [
    ['/positions', (token) => ({ path: '/positions', token })],
    ['/traccar', (token) => ({ path: '/traccar', token })],
    ['/osmand', (token) => ({ path: `${PHONE}&token=${token}`, token: null })],
  ];
  for (const [route, sendingOf] of routes) {
    test(`are refused with 429 after too many guesses at ${route}, also the right one, from that address on every route`, async (t) => {
      const { send } = await ingestListener(t);
      const from = '192.0.2.66';
      const guess = async (token: string) => outcome(await send('', { ...sendingOf(token), from }));
      for (let n = 0; n < perWindow; n++) assert.deepEqual(await guess(`guess-${n}`), [403, 'FORBIDDEN']);
      for (const token of ['guess', TOKENS[0]])
        assert.deepEqual(await guess(token), [429, 'TOO_MANY_REQUESTS']);
      assert.deepEqual(outcome(await send(wire(), { from })), [429, 'TOO_MANY_REQUESTS'], 'on every route');
      assert.deepEqual(outcome(await send(wire(), { from: '192.0.2.7' })), [200, 1], 'from elsewhere');
    });
  }

  test('are guessed by one IPv6 network together', async (t) => {
    const { send } = await ingestListener(t);
    for (let n = 0; n < perWindow; n++) {
      await send(wire(), { from: `2001:db8:1:2::${n}`, token: 'guess' });
    }
    assert.deepEqual(outcome(await send(wire(), { from: '2001:db8:1:2:ffff::1' })), [
      429,
      'TOO_MANY_REQUESTS',
    ]);
    assert.deepEqual(outcome(await send(wire(), { from: '2001:db8:1:3::1' })), [200, 1]);
  });
});
