import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { SenderAuthorizer, WRONG_TOKENS } from '../../src/access/senderAuthorizer.ts';

const TOKEN = 'the-token-of-today';
const OTHER = 'the-token-of-tomorrow';
const HERE = '192.0.2.1';
const { perWindow, windowSeconds } = WRONG_TOKENS;

/** SenderAuthorizer under a clock that the test moves, the limiter's own included. */
function underClock(t: { after(end: () => void): void }) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_700_000_000_000 });
  t.after(() => mock.timers.reset());
  return new SenderAuthorizer([TOKEN, OTHER], Date.now);
}

const guess = async (authorizer: SenderAuthorizer, times: number, network = HERE): Promise<string[]> => {
  const answers: string[] = [];
  for (let n = 0; n < times; n++) answers.push(await authorizer.authorize(network, `guess number ${n}`));
  return answers;
};

describe('wrong tokens', () => {
  test('that come all at once are no more than one after the other', async (t) => {
    const authorizer = underClock(t);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => authorizer.authorize(HERE, `guess ${n}`)),
    );
    assert.equal(answers.filter((answer) => answer === 'denied').length, perWindow);
  });

  test('are forgotten when their window is over', async (t) => {
    const authorizer = underClock(t);
    await guess(authorizer, perWindow + 1);
    mock.timers.tick(windowSeconds * 1_000 - 1);
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'limited');
    mock.timers.tick(1);
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'granted');
  });

  test('do not count when there is none', async (t) => {
    const authorizer = underClock(t);
    for (let n = 0; n < 2 * perWindow; n++)
      assert.equal(await authorizer.authorize(HERE, undefined), 'denied');
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'granted');
  });

  test('of very many networks take no more memory than those of 50 000', async (t) => {
    const authorizer = underClock(t);
    await guess(authorizer, perWindow, 'the first');
    for (let n = 0; n < 50_000; n++) await authorizer.authorize(`network ${n}`, 'a guess');
    assert.equal(await authorizer.authorize('the first', TOKEN), 'granted', 'the oldest counter went');
    await guess(authorizer, perWindow - 1, 'network 49999');
    assert.equal(await authorizer.authorize('network 49999', TOKEN), 'limited', 'the newest is there');
  });
});

describe('a token that was accepted from the same network', () => {
  test('goes on being accepted whatever is guessed beside it, and another does not', async (t) => {
    const authorizer = underClock(t);
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'granted');
    await guess(authorizer, perWindow + 1);
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'granted');
    assert.equal(await authorizer.authorize(HERE, OTHER), 'limited');
    assert.deepEqual(await guess(authorizer, 1), ['limited']);
  });

  test('is known for a day after its last use', async (t) => {
    const authorizer = underClock(t);
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'granted');
    mock.timers.tick(23 * 3_600_000);
    await guess(authorizer, perWindow + 1);
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'granted');
    mock.timers.tick(23 * 3_600_000);
    await guess(authorizer, perWindow + 1);
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'granted', 'it was used a day ago');
    mock.timers.tick(25 * 3_600_000);
    await guess(authorizer, perWindow + 1);
    assert.equal(await authorizer.authorize(HERE, TOKEN), 'limited');
  });
});
