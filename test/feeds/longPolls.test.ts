import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import {
  LongPoll,
  OpenCounts,
  POLLS_PER_ACCOUNT,
  POLLS_PER_KEY,
  PollGroup,
} from '../../src/feeds/longPolls.ts';
import { STREAMS_PER_ACCOUNT, STREAMS_PER_KEY } from '../../src/feeds/streams.ts';
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
