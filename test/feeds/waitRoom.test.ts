import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { WAITS_PER_ACCOUNT, WAITS_PER_KEY, WaitGroup } from '../../src/feeds/waitRoom.ts';
import { settle, testRoom } from '../support/feeds/stepTurns.ts';

const [ATTACKER, VICTIM] = [1, 2];
/** Both see it, as members of one organization. */
const WORLD = 7;

class TestGroup extends WaitGroup {
  served = 0;
  onServe: () => void = () => undefined;

  constructor(accountId: number) {
    super({ accountId, worldIds: [WORLD] }, 'devices');
  }

  override serve(): void {
    this.served++;
    this.onServe();
  }
}

function opened() {
  const each = testRoom();
  const over: number[] = [];
  const sit = (group: TestGroup, keyId: number, forMs = 25_000) =>
    each.room.sit(group, { keyId, forMs, onOver: () => over.push(group.accountId) });
  return { ...each, over, sit };
}

test('of one key twenty calls wait; of one account two thousand, and others go on waiting', () => {
  const { room, sit } = opened();
  const group = new TestGroup(ATTACKER);
  for (let n = 0; n < WAITS_PER_ACCOUNT; n++) assert.equal(typeof sit(group, n % 200), 'object');
  for (let n = 0; n < 5; n++) assert.equal(typeof sit(new TestGroup(VICTIM), 900), 'object');
  assert.equal(sit(group, 500), 'full');
  for (let n = 5; n < WAITS_PER_KEY; n++) assert.equal(typeof sit(new TestGroup(VICTIM), 900), 'object');
  assert.equal(sit(new TestGroup(VICTIM), 900), 'none');
  room.close();
});

test('a seat that was left is free, and ends once', () => {
  const { room, over, sit } = opened();
  const group = new TestGroup(VICTIM);
  const seats = Array.from({ length: WAITS_PER_KEY }, () => sit(group, 1));
  assert.equal(sit(group, 1), 'none');
  const [first] = seats;
  assert.ok(typeof first === 'object');
  assert.equal(first.leave(), true);
  assert.equal(first.leave(), false);
  assert.equal(typeof sit(group, 1), 'object');
  room.close();
  assert.equal(over.length, WAITS_PER_KEY);
  assert.equal(room.size, 0);
});

test('news wake a group in a turn, once for all that came before it', async () => {
  const { room, turns, watch, announce, sit } = opened();
  const group = new TestGroup(VICTIM);
  sit(group, 1);
  for (let n = 0; n < 5; n++) {
    watch.touch('devices', WORLD);
    announce();
  }
  assert.equal(group.served, 0);
  await settle(turns);
  assert.deepEqual([group.served, group.news], [1, 5]);
  watch.touch('events', WORLD);
  announce();
  await settle(turns);
  assert.equal(group.served, 1);
  room.close();
});

test('with a thousand groups of one account in its world, another account is served in the second step', async () => {
  const { room, turns, watch, announce, sit } = opened();
  const order: number[] = [];
  const add = (accountId: number, keyId: number) => {
    const group = new TestGroup(accountId);
    group.onServe = () => order.push(accountId);
    sit(group, keyId);
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
  room.close();
});

test('answers of an account go out a few in a turn', async () => {
  const { room, turns } = opened();
  let answered = 0;
  const perTurn: number[] = [];
  const done = room.answer(
    ATTACKER,
    Array.from({ length: 100 }, () => () => void answered++),
  );
  for (let before = 0; answered < 100; before = answered) {
    await new Promise((resolve) => setImmediate(resolve));
    perTurn.push(answered - before);
  }
  await done;
  assert.ok(Math.max(...perTurn) <= 8, perTurn.join());
  assert.equal(turns.size, 0);
});

test('those whose time is over end in turns, and those of a dropped key are told nothing new before', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.after(() => mock.timers.reset());
  const { room, turns, state, over, sit, dropKey } = opened();
  const group = new TestGroup(ATTACKER);
  for (let n = 0; n < 100; n++) sit(group, n, 1_000);
  const victim = sit(new TestGroup(VICTIM), 900, 2_000);
  state.nowMs = 1_000;
  mock.timers.tick(250);
  assert.equal(over.length, 0);
  await settle(turns);
  assert.deepEqual([over.length, room.size], [100, 1]);
  dropKey(900);
  assert.ok(typeof victim === 'object' && !victim.leave(), 'it ends without an answer');
  await settle(turns);
  assert.deepEqual([over.length, room.size], [101, 0]);
  room.close();
});
