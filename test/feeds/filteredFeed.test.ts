import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { type DeviceFilter, filterSeen, readFilter } from '../../src/devices/living/deviceFilter.ts';
import type { FeedAnswer } from '../../src/feeds/pages.ts';
import { fieldsOf, imeiOf, positionAt } from '../support/devices.ts';
import { ChangingFleet, SHARED_WORLD } from '../support/feeds/changingFleet.ts';
import { callerOf, MemoryFeed, pageOf, WORLD } from '../support/feeds/memoryFeed.ts';
import { type Asked, anyFilter, NOW_MS, oneOf, passes, type Random } from '../support/filteredFleet.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const MINUTE_MS = 60_000;
const WORLDS = [WORLD, SHARED_WORLD];
const CALLER = { id: 1, accountId: 1, worldIds: WORLDS };

interface Item {
  readonly imei: string;
  readonly left?: true;
  readonly removed?: true;
  readonly location: { readonly latitude: number } | null;
}

function filterOf(asked: Asked): DeviceFilter {
  const filter = readFilter(asked as Record<string, string>, []);
  assert.ok(filter.ok && filter.value !== null);
  return filter.value;
}

/** What an answer says, which its reader takes. */
function taken(answer: FeedAnswer) {
  assert.ok(typeof answer === 'object', String(answer));
  answer.handover?.done();
  const { data, meta } = pageOf(answer.bytes);
  return { items: data as unknown as Item[], meta };
}

/** Follows devices that pass a filter from page to page. */
class Follower {
  readonly asked: Asked;
  readonly shown = new Map<string, Item>();
  cursor: string | null = null;
  hasMore = true;

  constructor(asked: Asked) {
    this.asked = asked;
  }

  async page(memory: MemoryFeed, limit: number): Promise<Item[]> {
    const { feed } = memory;
    const query = { cursor: this.cursor, limit, waitMs: 0, gatherMs: 0, filter: filterOf(this.asked) };
    const answer = await feed.next(CALLER, query);
    if (answer === 'expired') {
      // After 36 hours.
      this.shown.clear();
      this.cursor = null;
      return this.page(memory, limit);
    }
    const { items, meta } = taken(answer);
    assert.ok(items.length <= limit);
    assert.equal(new Set(items.map(({ imei }) => imei)).size, items.length, 'a device is on a page once');
    for (const item of items) {
      if (item.left === true || item.removed === true) this.shown.delete(item.imei);
      else this.shown.set(item.imei, item);
    }
    this.cursor = meta.cursor;
    this.hasMore = meta.has_more;
    return items;
  }
}

async function proveFollowed(memory: MemoryFeed, follower: Follower, nowMs: number, random: Random) {
  do await follower.page(memory, oneOf(random, [1, 3, 500]));
  while (follower.hasMore);
  const expected = memory.fleet
    .page(WORLDS, 0, 1_000)
    .filter((device) => passes(device, follower.asked, nowMs))
    .map(({ imei, position }) => `${imei} ${position?.lat}`);
  const found = [...follower.shown.values()].map(({ imei, location }) => `${imei} ${location?.latitude}`);
  assert.deepEqual(found.sort(), expected.sort(), JSON.stringify(follower.asked));
}

function filledMemory(t: TestContext): MemoryFeed {
  t.mock.timers.reset();
  t.mock.timers.enable({ apis: ['setInterval'] });
  const memory = new MemoryFeed(0);
  memory.change((xid) => {
    for (const id of [1, 2]) {
      const groups = id === 1 ? ['north'] : [];
      memory.fleet.putDevice(fieldsOf({ id, worldId: WORLD, groups, editedAtMs: 1 }), xid);
    }
  });
  return memory;
}

function move(memory: MemoryFeed, id: number, recordedAtMs: number): void {
  memory.change((xid) => {
    const position = positionAt(id % 90, id % 90, recordedAtMs, { speedKmh: 50 });
    memory.fleet.move(id, position, { headingDeg: 0, ignition: null, revision: xid, xid });
  });
}

/** A call that waits, and what it was answered with so far. */
function waiting(memory: MemoryFeed, cursor: string | null, asked: Asked) {
  const query = { cursor, limit: 10, waitMs: 25_000, gatherMs: 0, filter: filterOf(asked) };
  const call = { answer: null as FeedAnswer | null };
  void Promise.resolve(memory.feed.next(CALLER, query)).then((answer) => {
    call.answer = answer;
  });
  return call;
}

describe('changes of what passes a filter', () => {
  test('leave their reader with exactly what passes, whatever moves, is edited, deleted, made again or ages', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 30 }), async (seed) => {
        const random = seededRandom(seed);
        const memory = new MemoryFeed(0);
        const fleet = new ChangingFleet(memory, random, 40);
        const followers = Array.from({ length: 6 }, () => new Follower(anyFilter(random)));
        for (let step = 0; step < 400; step++) {
          const follower = oneOf(random, followers);
          const steps = [
            () => fleet.change(fleet.anyImei),
            () => fleet.change(fleet.anyImei),
            () => fleet.delete(fleet.anyImei),
            () => fleet.pass(oneOf(random, [1, 1_000, 59_000, 10 * MINUTE_MS, 1_440 * MINUTE_MS])),
            () => follower.page(memory, oneOf(random, [1, 2, 10])),
            () => proveFollowed(memory, follower, fleet.nowMs, random),
          ];
          await oneOf(random, steps)();
        }
        memory.close();
      }),
      { seed: 6, numRuns: runs(8) },
    );
  });

  test('tell what an edit made leave, also where it has moved on since the page before', async () => {
    const memory = new MemoryFeed(0);
    const ids = [1, 2, 3, 4, 5];
    const put = (groups: readonly string[]) =>
      memory.change((xid) => {
        for (const id of ids)
          memory.fleet.putDevice(fieldsOf({ id, worldId: WORLD, groups, editedAtMs: xid }), xid);
      });
    put(['north']);
    const follower = new Follower({ group: 'north' });
    await follower.page(memory, 10);
    assert.equal(follower.shown.size, ids.length);
    put([]);
    // A point of each device comes after every page, so the round does not come to most of the edits.
    let pages = 0;
    do {
      await follower.page(memory, 1);
      for (const id of ids) move(memory, id, NOW_MS + pages);
      assert.ok(pages++ < 20, 'it ends');
    } while (follower.hasMore);
    assert.deepEqual([...follower.shown.keys()], []);
    assert.deepEqual(await follower.page(memory, 10), []);
    memory.close();
  });

  test('have a reader who is limited to groups begin anew where a device has left them and moved on', async () => {
    const memory = new MemoryFeed(0);
    const put = (id: number, groups: readonly string[]) =>
      memory.change((xid) =>
        memory.fleet.putDevice(fieldsOf({ id, worldId: WORLD, groups, editedAtMs: xid }), xid),
      );
    // More than a page looks at in one step.
    const ids = Array.from({ length: 520 }, (_, n) => n + 1);
    const last = ids.length;
    for (const id of ids) put(id, ['north']);
    const groups = { names: new Set(['north']), key: 'north' };
    const filter = filterSeen(Object.assign([WORLD], { groups }), null);
    assert.ok(filter !== null);
    const page = (cursor: string | null, limit: number) =>
      memory.feed.next(CALLER, { cursor, limit, waitMs: 0, gatherMs: 0, filter });
    const { meta } = taken(await page(null, 1_000));
    for (const id of ids.slice(0, -1)) move(memory, id, NOW_MS);
    put(last, []);
    const first = taken(await page(meta.cursor, 1));
    assert.equal(first.meta.has_more, true);
    move(memory, last, NOW_MS);
    const second = await page(first.meta.cursor, 1_000);
    assert.equal(typeof second === 'string' ? second : 'a page', 'expired');
    memory.close();
  });

  test('do not tell of devices that their groups alone keep out', async (t) => {
    const memory = filledMemory(t);
    const follower = new Follower({ group: 'north' });
    await follower.page(memory, 10);
    move(memory, 2, NOW_MS);
    assert.deepEqual(await follower.page(memory, 10), []);
    move(memory, 1, NOW_MS);
    assert.deepEqual(
      (await follower.page(memory, 10)).map(({ imei }) => imei),
      [imeiOf(1)],
    );
    memory.close();
  });

  test('refuse a cursor of another choice of filters, and of none', async (t) => {
    const memory = filledMemory(t);
    const [north, moving] = [new Follower({ group: 'north' }), new Follower({ status: 'moving' })];
    await north.page(memory, 10);
    await moving.page(memory, 10);
    const query = { limit: 10, waitMs: 0, gatherMs: 0 };
    const whole = taken(await memory.feed.next(CALLER, { ...query, cursor: null })).meta.cursor;
    for (const [cursor, asked] of [
      [north.cursor, { status: 'moving' }],
      [moving.cursor, { group: 'north' }],
      [whole, { group: 'north' }],
    ] as const)
      assert.equal(
        await memory.feed.next(CALLER, { ...query, cursor, filter: filterOf(asked) }),
        'other_filters',
      );
    assert.equal(await memory.feed.next(CALLER, { ...query, cursor: north.cursor }), 'other_filters');
    memory.close();
  });

  test('wait for what passes: not for what does not, and for what passes no longer because time has passed', async (t) => {
    const memory = filledMemory(t);
    const follower = new Follower({ status: 'moving', group: 'north' });
    move(memory, 1, NOW_MS - 10 * MINUTE_MS + 5_000);
    await follower.page(memory, 10);
    const call = waiting(memory, follower.cursor, follower.asked);
    const runFor = async (ms: number) => {
      for (let at = 0; at < ms; at += 250) {
        memory.pass(250);
        t.mock.timers.tick(250);
        await memory.settle();
      }
    };
    await memory.settle();
    const look = t.mock.method(memory.fleet, 'changed');
    for (let n = 0; n < 40; n++) {
      move(memory, 2, NOW_MS + n);
      await memory.settle();
    }
    assert.ok(look.mock.callCount() <= 6, `${look.mock.callCount()} looks at changes that do not pass`);
    await runFor(3_000);
    assert.equal(call.answer, null);
    assert.equal(memory.waiting, 1);
    await runFor(4_000);
    assert.deepEqual(taken(call.answer as unknown as FeedAnswer).items, [
      { id: imeiOf(1), imei: imeiOf(1), left: true },
    ]);
    memory.close();
  });

  test('a call that waits is answered as soon as something passes', async (t) => {
    const memory = filledMemory(t);
    const follower = new Follower({ group: 'north' });
    await follower.page(memory, 10);
    const call = waiting(memory, follower.cursor, follower.asked);
    await memory.settle();
    assert.equal(memory.waiting, 1);
    move(memory, 1, NOW_MS);
    await memory.settle();
    assert.deepEqual(
      taken(call.answer as FeedAnswer).items.map(({ imei }) => imei),
      [imeiOf(1)],
    );
    memory.close();
  });

  test('that many calls of one account wait for are told to all of them, and hold up a call of another for a few turns only', async (t) => {
    const memory = filledMemory(t);
    const filter = filterOf({ status: 'moving', group: 'north' });
    let answered = 0;
    const wait = async (accountId: number, keyId: number) => {
      const caller = callerOf(accountId, keyId);
      const query = { limit: 10, waitMs: 0, gatherMs: 0, filter };
      const { cursor } = taken(await memory.feed.next(caller, { ...query, cursor: null })).meta;
      const call = { isAnswered: false };
      void Promise.resolve(memory.feed.next(caller, { ...query, cursor, waitMs: 25_000 })).then((answer) => {
        answered++;
        call.isAnswered = taken(answer).items.length === 1;
      });
      return call;
    };
    const attackers = 400;
    for (let n = 0; n < attackers; n++) await wait(1, 1_000 + Math.floor(n / 20));
    const victim = await wait(2, 2_000);
    await memory.settle();
    assert.equal(memory.waiting, attackers + 1);
    const turnsUntil = async (isDone: () => boolean) => {
      for (let turns = 0; ; turns++) {
        if (isDone() || turns > 10 * attackers) return turns;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    move(memory, 1, NOW_MS);
    const ofWait = await turnsUntil(() => victim.isAnswered);
    await memory.settle();
    assert.equal(answered, attackers + 1);

    const query = { cursor: null, limit: 10, waitMs: 0, gatherMs: 0, filter };
    for (let n = 0; n < attackers; n++) void memory.feed.next(callerOf(1), query);
    const later = { isAnswered: false };
    void Promise.resolve(memory.feed.next(callerOf(2), query)).then(() => {
      later.isAnswered = true;
    });
    const ofPage = await turnsUntil(() => later.isAnswered);
    const left = await memory.settle();
    const found = `${ofWait} and ${ofPage} turns; ${left} more were needed for the others`;
    assert.ok(ofWait < 20 && ofPage < 10 && left > attackers / 2, found);
    memory.close();
  });
});
