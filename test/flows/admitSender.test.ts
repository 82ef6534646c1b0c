import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { IngestTokens } from '../../src/access/ingestTokens.ts';
import { SenderAdmittance, WRONG_TOKENS } from '../../src/flows/admitSender.ts';

const TOKEN = 'the-token-of-today';
const OTHER = 'the-token-of-tomorrow';
const HERE = '192.0.2.1';
const { perWindow, windowSeconds } = WRONG_TOKENS;

/** Admittance under a clock that the test moves, the limiter's own included. */
function underClock(t: { after(end: () => void): void }) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_700_000_000_000 });
  t.after(() => mock.timers.reset());
  return new SenderAdmittance(new IngestTokens([TOKEN, OTHER]), Date.now);
}

const guess = async (admittance: SenderAdmittance, times: number, network = HERE): Promise<string[]> => {
  const answers: string[] = [];
  for (let n = 0; n < times; n++) answers.push(await admittance.admit(network, `guess number ${n}`));
  return answers;
};

describe('wrong tokens', () => {
  test('are refused up to the limit, and beyond it not even the right one is told apart', async (t) => {
    const admittance = underClock(t);
    assert.deepEqual(await guess(admittance, perWindow), Array(perWindow).fill('refused'));
    assert.deepEqual(await guess(admittance, 3), Array(3).fill('limited'));
    for (const given of [TOKEN, OTHER, undefined])
      assert.equal(await admittance.admit(HERE, given), 'limited');
  });

  test('that come all at once are no more than one after the other', async (t) => {
    const admittance = underClock(t);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => admittance.admit(HERE, `guess ${n}`)),
    );
    assert.equal(answers.filter((answer) => answer === 'refused').length, perWindow);
  });

  test('keep out nobody who calls from elsewhere', async (t) => {
    const admittance = underClock(t);
    await guess(admittance, perWindow + 1);
    assert.equal(await admittance.admit('192.0.2.2', TOKEN), 'admitted');
    assert.equal(await admittance.admit('192.0.2.2', 'a guess'), 'refused');
  });

  test('are forgotten when their window is over', async (t) => {
    const admittance = underClock(t);
    await guess(admittance, perWindow + 1);
    mock.timers.tick(windowSeconds * 1_000 - 1);
    assert.equal(await admittance.admit(HERE, TOKEN), 'limited');
    mock.timers.tick(1);
    assert.equal(await admittance.admit(HERE, TOKEN), 'admitted');
  });

  test('do not count when there is none', async (t) => {
    const admittance = underClock(t);
    for (let n = 0; n < 2 * perWindow; n++) assert.equal(await admittance.admit(HERE, undefined), 'refused');
    assert.equal(await admittance.admit(HERE, TOKEN), 'admitted');
  });

  test('of very many networks take no more memory than those of 50 000', async (t) => {
    const admittance = underClock(t);
    await guess(admittance, perWindow, 'the first');
    for (let n = 0; n < 50_000; n++) await admittance.admit(`network ${n}`, 'a guess');
    assert.equal(await admittance.admit('the first', TOKEN), 'admitted', 'the oldest counter went');
    await guess(admittance, perWindow - 1, 'network 49999');
    assert.equal(await admittance.admit('network 49999', TOKEN), 'limited', 'the newest is there');
  });
});

describe('a token that was accepted from the same network', () => {
  test('goes on being accepted whatever is guessed beside it, and another does not', async (t) => {
    const admittance = underClock(t);
    assert.equal(await admittance.admit(HERE, TOKEN), 'admitted');
    await guess(admittance, perWindow + 1);
    assert.equal(await admittance.admit(HERE, TOKEN), 'admitted');
    assert.equal(await admittance.admit(HERE, OTHER), 'limited');
    assert.deepEqual(await guess(admittance, 1), ['limited']);
  });

  test('is known for a day after its last use', async (t) => {
    const admittance = underClock(t);
    assert.equal(await admittance.admit(HERE, TOKEN), 'admitted');
    mock.timers.tick(23 * 3_600_000);
    await guess(admittance, perWindow + 1);
    assert.equal(await admittance.admit(HERE, TOKEN), 'admitted');
    mock.timers.tick(23 * 3_600_000);
    await guess(admittance, perWindow + 1);
    assert.equal(await admittance.admit(HERE, TOKEN), 'admitted', 'it was used a day ago');
    mock.timers.tick(25 * 3_600_000);
    await guess(admittance, perWindow + 1);
    assert.equal(await admittance.admit(HERE, TOKEN), 'limited');
  });
});
