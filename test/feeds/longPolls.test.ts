import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import {
  LongPoll,
  OpenCounts,
  POLLS_PER_ACCOUNT,
  POLLS_PER_KEY,
  PollGroup,
} from '../../src/feeds/longPolls.ts';
import { STREAMS_PER_ACCOUNT, STREAMS_PER_KEY } from '../../src/feeds/streams/streams.ts';
import { settle, testPolls } from '../support/feeds/stepTurns.ts';

const [ATTACKER, VICTIM] = [1, 2];
/** Both see it, as members of one organization. */
const WORLD = 7;

class TestGroup extends PollGroup {
  served = 0;
  onServe: () => void = () => undefined;

  constructor(accountId: number) {
    super(new Map(), '', { accountId, worldIds: [WORLD] }, 'devices', null, () => {
      this.served++;
      this.onServe();
    });
  }
}

function opened() {
  const each = testPolls();
  const over: number[] = [];
  const joined: LongPoll[] = [];
  const join = (group: TestGroup, keyId: number, forMs = 25_000) => {
    const poll = new LongPoll(group, keyId, each.state.nowMs + forMs);
    const outcome = each.polls.join(poll);
    if (outcome === 'in') joined.push(poll);
    void poll.outcome.promise.then(() => over.push(group.accountId));
    return outcome;
  };
  return { ...each, over, join, joined };
}

test('of one key twenty calls wait; of one account two thousand, and others go on waiting', () => {
  const { polls, join } = opened();
  const group = new TestGroup(ATTACKER);
  for (let n = 0; n < POLLS_PER_ACCOUNT; n++) assert.equal(join(group, n % 200), 'in');
  for (let n = 0; n < 5; n++) assert.equal(join(new TestGroup(VICTIM), 900), 'in');
  assert.equal(join(group, 500), 'full');
  for (let n = 5; n < POLLS_PER_KEY; n++) assert.equal(join(new TestGroup(VICTIM), 900), 'in');
  assert.equal(join(new TestGroup(VICTIM), 900), 'none');
  polls.close();
});

test('a call that hangs up makes room for another, and ends once', async () => {
  const { polls, over, join, joined } = opened();
  const group = new TestGroup(VICTIM);
  for (let n = 0; n < POLLS_PER_KEY; n++) join(group, 1);
  assert.equal(join(group, 1), 'none');
  const [first] = joined as [LongPoll];
  polls.leave(first);
  polls.leave(first);
  assert.equal(polls.size, POLLS_PER_KEY - 1);
  assert.equal(join(group, 1), 'in');
  polls.close();
  await first.outcome.promise;
  await Promise.all(joined.map(({ outcome }) => outcome.promise));
  assert.equal(over.length, POLLS_PER_KEY + 1);
  assert.equal(polls.size, 0);
});

test('with a thousand groups of one account in its world, another account is served in the second step', async () => {
  const { polls, turns, watch, announce, join } = opened();
  const order: number[] = [];
  const add = (accountId: number, keyId: number) => {
    const group = new TestGroup(accountId);
    group.onServe = () => order.push(accountId);
    join(group, keyId);
  };
  for (let n = 0; n < 1_000; n++) add(ATTACKER, n % 50);
  add(VICTIM, 900);
  watch.touch('devices', WORLD);
  announce();
  assert.equal(order.length, 0);
  const count = await settle(turns);
  assert.ok(order.indexOf(VICTIM) <= 1, `the victim came at ${order.indexOf(VICTIM)}`);
  assert.equal(order.length, 1_001);
  assert.ok(count >= 1_000, 'each was served in a step of its own');
  polls.close();
});

test('answers of an account go out a few in a turn', async () => {
  const { polls, turns, join, joined } = opened();
  for (let n = 0; n < 100; n++) join(new TestGroup(ATTACKER), n);
  let answered = 0;
  const perTurn: number[] = [];
  const done = polls.answer(joined, () => void answered++);
  for (let before = 0; answered < 100; before = answered) {
    await new Promise((resolve) => setImmediate(resolve));
    perTurn.push(answered - before);
  }
  await done;
  assert.ok(Math.max(...perTurn) <= 8, perTurn.join());
  assert.equal(turns.size, 0);
  assert.equal(polls.size, 0);
});

test('those whose time is over end in turns, and those of a dropped key are told nothing new before', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.after(() => mock.timers.reset());
  const { polls, turns, state, over, join, joined, dropKey } = opened();
  const group = new TestGroup(ATTACKER);
  for (let n = 0; n < 100; n++) join(group, n, 1_000);
  join(new TestGroup(VICTIM), 900, 2_000);
  const victim = joined.at(-1) as LongPoll;
  state.nowMs = 1_000;
  mock.timers.tick(250);
  assert.equal(over.length, 0);
  await settle(turns);
  assert.deepEqual([over.length, polls.size], [100, 1]);
  dropKey(900);
  await polls.answer([victim], () => assert.fail('it ends without an answer'));
  await settle(turns);
  assert.deepEqual([over.length, polls.size], [101, 0]);
  polls.close();
});

test('ten streams of a key are open at a time, five thousand of an account, and others go on', () => {
  const counts = new OpenCounts(STREAMS_PER_KEY, STREAMS_PER_ACCOUNT);
  const keyOf = (n: number) => Math.floor(n / 10);
  for (let n = 0; n < 5_000; n++) {
    assert.equal(counts.full(keyOf(n), 1), null, `${n} are open`);
    counts.change(keyOf(n), 1, 1);
    if (n % 10 === 9 && n < 4_999) {
      assert.equal(counts.full(keyOf(n), 1), 'key');
      assert.equal(counts.full(keyOf(n + 1), 1), null);
    }
  }
  assert.equal(counts.full(9_999, 1), 'account');
  assert.equal(counts.full(10_000, 2), null);
  counts.change(0, 1, -1);
  assert.equal(counts.full(0, 1), null);
});
