import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import { LoginTurns } from '../../src/tenants/logIn.ts';

const OWNER = { email: 'owner@example.com', network: '192.0.2.1' };

/** Checks of passwords that end one by one, and which of them were made. */
function desk() {
  let nowMs = 0;
  const turns = new LoginTurns(() => nowMs);
  const made: string[] = [];
  const ends: (() => void)[] = [];
  let ended = 0;
  const check = (who: { email: string; network: string; isKnown: boolean }): Promise<string> =>
    turns
      .run(who, () => {
        made.push(who.network);
        return new Promise<string>((resolve) => ends.push(() => resolve('checked')));
      })
      .catch((error) => {
        assert.ok(error instanceof Overloaded);
        return 'denied';
      });
  return {
    made,
    check,
    /** Lets the check that has run the longest end; false when none runs. */
    endOne: async (): Promise<boolean> => {
      await turn();
      const end = ends[ended];
      if (end === undefined) return false;
      ended++;
      end();
      await turn();
      return true;
    },
    pass: (ms: number) => {
      nowMs += ms;
    },
    get running() {
      return ends.length - ended;
    },
  };
}

/** So many guesses, each network's after the other's; their outcomes. */
function guess({ check }: ReturnType<typeof desk>, networks: number, each: number): Promise<string>[] {
  return Array.from({ length: networks * each }, (_, n) =>
    check({ email: `guess${n}@example.com`, network: `198.51.100.${n % networks}`, isKnown: false }),
  );
}

async function turnOf(network: string, { made, endOne }: ReturnType<typeof desk>): Promise<number> {
  while (!made.includes(network) && (await endOne()));
  return made.indexOf(network);
}

describe('while forty networks guess, each with twenty attempts at once', () => {
  test('one password is checked at a time', async () => {
    const one = desk();
    guess(one, 40, 20);
    await turn();
    for (let n = 0; n < 10; n++) {
      assert.equal(one.running, 1);
      await one.endOne();
    }
  });

  test('an owner has a turn at once where the account has logged in before', async () => {
    const one = desk();
    guess(one, 40, 20);
    await one.endOne();
    one.check({ ...OWNER, isKnown: true });
    const before = one.made.length;
    await turn();
    assert.equal(one.made.indexOf(OWNER.network), before);
  });

  test('an owner elsewhere is neither refused nor waits for more than one check of each of them', async () => {
    const one = desk();
    guess(one, 40, 20);
    await one.endOne();
    const outcome = one.check({ ...OWNER, isKnown: false });
    const before = one.made.length;
    assert.ok((await turnOf(OWNER.network, one)) <= before + 41);
    while (await one.endOne());
    assert.equal(await outcome, 'checked');
  });

  test('no more wait than are checked in some seconds', async () => {
    const one = desk();
    const outcomes = guess(one, 40, 20);
    while (await one.endOne());
    const checked = (await Promise.all(outcomes)).filter((outcome) => outcome === 'checked');
    assert.equal(checked.length, 51, 'one that ran and fifty that waited');
  });
});

test('whoever fills the queue of known addresses waits behind nobody but itself', async () => {
  const one = desk();
  for (let n = 0; n < 40; n++)
    one.check({ email: 'large@example.com', network: '203.0.113.1', isKnown: true });
  await one.endOne();
  one.check({ ...OWNER, isKnown: true });
  const before = one.made.length;
  assert.ok((await turnOf(OWNER.network, one)) <= before + 2);
});

test('four hundred networks that guess do not hold up an owner at a known address', async () => {
  const one = desk();
  guess(one, 400, 5);
  one.check({ ...OWNER, isKnown: true });
  assert.ok((await turnOf(OWNER.network, one)) <= 3);
});

test('a turn that comes after ten seconds costs no check: its caller has given up, or is about to', async () => {
  const one = desk();
  const outcomes = guess(one, 20, 1);
  await one.endOne();
  const checked = one.made.length;
  one.pass(10_001);
  const late = one.check({ ...OWNER, isKnown: false });
  while (await one.endOne());
  assert.equal(await late, 'checked');
  assert.equal(one.made.length, checked + 1);
  assert.equal((await Promise.all(outcomes)).filter((outcome) => outcome === 'denied').length, 20 - checked);
});
