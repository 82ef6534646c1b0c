import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { CallerShares, RecentSums } from '../../src/http/callerShares.ts';
import { Shedder } from '../../src/http/shedder.ts';

/** Of each caller, the share of the calls that is refused while all ask steadily, so many a second each of one cost. */
function refusedOf(perSecond: Readonly<Record<string, number>>, kept: number, seconds = 20) {
  const shares = new CallerShares<string>();
  const counts = new Map(Object.keys(perSecond).map((caller) => [caller, { calls: 0, refused: 0 }]));
  for (let ms = 0; ms < 1_000 * seconds; ms += 50) {
    shares.share(kept, ms);
    for (const [caller, count] of counts) {
      const due = Math.floor(((ms + 50) * (perSecond[caller] as number)) / 1_000);
      for (; count.calls < due; count.calls++) if (shares.isRefused(caller, 1)) count.refused++;
    }
  }
  return Object.fromEntries([...counts].map(([caller, { calls, refused }]) => [caller, refused / calls]));
}

describe('when not everybody can have what they ask for', () => {
  const cases: readonly (readonly [
    what: string,
    perSecond: Record<string, number>,
    kept: number,
    refused: Record<string, number>,
  ])[] = [
    ['everything can go on', { one: 100, other: 10 }, 1, { one: 0, other: 0 }],
    ['one caller alone is refused that share', { one: 300 }, 2 / 3, { one: 1 / 3 }],
    ['equal ones are refused alike', { one: 100, other: 100 }, 0.5, { one: 0.5, other: 0.5 }],
    ['who asks for little has it', { heavy: 500, victim: 10 }, 0.5, { heavy: 0.51, victim: 0 }],
    [
      'nearly nothing can go on, and who asks for least has it',
      { heavy: 990, victim: 10 },
      0.03,
      { heavy: 0.98, victim: 0 },
    ],
    ['nothing can go on', { heavy: 500, victim: 10 }, 0, { heavy: 1, victim: 1 }],
  ];
  for (const [what, perSecond, kept, expected] of cases) {
    test(what, () => {
      const refused = refusedOf(perSecond, kept);
      for (const [caller, share] of Object.entries(expected))
        assert.ok(Math.abs((refused[caller] as number) - share) < 0.02, `${caller}: ${refused[caller]}`);
    });
  }

  test('as much goes on as may, and nobody is refused more than one who asks for more', () => {
    const callers = fc.array(fc.integer({ min: 20, max: 400 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(callers, fc.double({ min: 0.1, max: 1, noNaN: true }), (rates, kept) => {
        const perSecond = Object.fromEntries(rates.map((rate, n) => [`caller ${n}`, rate]));
        const refused = Object.values(refusedOf(perSecond, kept, 10));
        const asked = rates.reduce((sum, rate) => sum + rate, 0);
        const wentOn = rates.reduce((sum, rate, n) => sum + rate * (1 - (refused[n] as number)), 0);
        assert.ok(Math.abs(wentOn / asked - kept) < 0.1, `${wentOn / asked} of ${kept} went on`);
        for (const [n, rate] of rates.entries())
          for (const [m, other] of rates.entries())
            if (rate > other) assert.ok((refused[n] as number) > (refused[m] as number) - 0.05);
      }),
      { numRuns: 30 },
    );
  });

  test('what was asked long ago does not count', () => {
    const shares = new CallerShares<string>();
    for (let n = 0; n < 1_000; n++) shares.isRefused('heavy', 1);
    for (let ms = 2_000; ms <= 6_000; ms += 2_000) shares.share(0.5, ms);
    for (let n = 0; n < 100; n++) shares.isRefused('other', 1);
    shares.share(0.5, 6_050);
    assert.equal([1, 2, 3].filter(() => shares.isRefused('heavy', 1)).length, 0);
  });
});

test('callers that come under ever new names do not make it grow', async () => {
  const shares = new CallerShares<object>();
  const callers: WeakRef<object>[] = [];
  for (let ms = 0; ms < 10_000; ms += 250) {
    shares.share(0.5, ms);
    for (let n = 0; n < 1_000; n++) {
      const caller = {};
      callers.push(new WeakRef(caller));
      shares.isRefused(caller, 1);
    }
  }
  await nextTurn(); // until then what a reference was made of is kept
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const kept = callers.filter((caller) => caller.deref() !== undefined).length;
  shares.share(0.5, 10_000);
  // Those that are told apart in this window and in the one before.
  assert.ok(kept > 0 && kept <= 2 * 4_096, `${kept} of ${callers.length} are kept`);
});

test('of more keys than are told apart the others count as one', () => {
  const sums = new RecentSums<string>(1_000, 3);
  for (const key of ['a', 'b', 'c']) assert.equal(sums.add(key, 1), key);
  for (const key of ['d', 'e', 'a']) sums.add(key, 1);
  assert.deepEqual([...sums.sums()], [2, 1, 1, 2]);
  assert.deepEqual([sums.add('f', 1), sums.of(null), sums.of('f')], [null, 3, 0]);
});

test('an overloaded pod refuses lists to those accounts that take most of its time', (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  t.mock.timers.enable({ apis: ['setInterval'] });
  const shedder = new Shedder({
    log: { warn: () => undefined, info: () => undefined },
    onRefused: () => undefined,
  });
  shedder.start();
  t.after(() => shedder.stop());
  const look = (lateMs: number): void => {
    nowMs += 50 + lateMs;
    t.mock.timers.tick(50);
  };
  while (!shedder.isActive) look(350);
  const counts = { heavy: { calls: 0, refused: 0 }, often: { calls: 0, refused: 0 } };
  const ask = (name: keyof typeof counts, account: number, workedMs: number): void => {
    counts[name].calls++;
    if (shedder.refuse('bulk', account) === null) shedder.noteWork(account, workedMs);
    else counts[name].refused++;
  };
  // Between the limits the share of what is refused stays as it is.
  for (let n = 0; n < 200; n++) {
    look(35);
    ask('heavy', 1, 100);
    for (let m = 0; m < 10; m++) ask('often', 2, 0.1);
  }
  assert.ok(
    counts.heavy.refused > 0.1 * counts.heavy.calls,
    `${counts.heavy.refused} of ${counts.heavy.calls}`,
  );
  assert.ok(
    counts.often.refused < 0.01 * counts.often.calls,
    `${counts.often.refused} of ${counts.often.calls}`,
  );
});
