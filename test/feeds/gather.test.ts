import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';
import type { RecordedEvent } from '../../src/feeds/eventFeed.sql.ts';
import { EventFeed } from '../../src/feeds/eventFeed.ts';
import { type FeedPorts, POLLS_PER_ACCOUNT, POLLS_PER_KEY } from '../../src/feeds/longPolls.ts';
import type { FeedAnswer } from '../../src/feeds/pages.ts';
import type { EventsCursor, EventsPage } from '../../src/feeds/readEvents.ts';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import { callerOf, MemoryFeed, pageOf } from '../support/feeds/memoryFeed.ts';
import { settle, testPolls } from '../support/feeds/stepTurns.ts';

const [ATTACKER, VICTIM] = [1, 2];
const TICK_MS = 250;

/** A call whose answer a test looks at without waiting for it. */
class Asked {
  answer: FeedAnswer | null = null;
  readonly #hangUps: (() => void)[] = [];

  constructor(ask: (whenLeft: (listener: () => void) => void) => FeedAnswer | Promise<FeedAnswer>) {
    void Promise.resolve(ask((listener) => void this.#hangUps.push(listener))).then((answer) => {
      this.answer = answer;
    });
  }

  hangUp(): void {
    for (const listener of this.#hangUps) listener();
  }

  get page() {
    assert.ok(this.answer !== null && typeof this.answer === 'object', String(this.answer));
    this.answer.handover?.done();
    return pageOf(this.answer.bytes);
  }

  get names(): string[] {
    return this.page.data.map(({ name }) => name);
  }
}

class Devices {
  readonly #t: TestContext;
  readonly memory = new MemoryFeed(3);

  constructor(t: TestContext) {
    t.mock.timers.enable({ apis: ['setInterval'] });
    this.#t = t;
    t.after(() => this.memory.close());
  }

  ask(cursor: string | null, waitSeconds: number, gatherSeconds: number, accountId = VICTIM, keyId?: number) {
    const query = { cursor, limit: 10, waitMs: waitSeconds * 1000, gatherMs: gatherSeconds * 1000 };
    return new Asked((whenLeft) => this.memory.feed.next(callerOf(accountId, keyId), { ...query, whenLeft }));
  }

  async pass(ms: number): Promise<void> {
    this.memory.pass(ms);
    this.#t.mock.timers.tick(TICK_MS);
    await this.memory.settle();
  }
}

describe('a call for devices that gathers', () => {
  test('is answered at its time and not before, with what was there and what came meanwhile', async (t) => {
    const devices = new Devices(t);
    const { memory } = devices;
    const cursor = await memory.cursor(VICTIM);
    memory.edit([1]);
    const asked = devices.ask(cursor, 25, 5);
    await devices.pass(2_000);
    memory.edit([2]);
    await devices.pass(2_999);
    assert.equal(asked.answer, null);
    await devices.pass(1);
    assert.deepEqual(asked.names, ['Van 1, 10', 'Van 2, 11']);
    const again = await memory.page(VICTIM, { cursor: asked.page.meta.cursor, limit: 10 });
    assert.deepEqual(again.data, []);
  });

  test('goes on waiting when it has gathered nothing, for what is left of its wait', async (t) => {
    const devices = new Devices(t);
    const cursor = await devices.memory.cursor(VICTIM);
    const [none, one, short] = [
      devices.ask(cursor, 25, 5),
      devices.ask(cursor, 20, 5),
      devices.ask(cursor, 0, 5),
    ];
    await devices.pass(5_000);
    assert.deepEqual(short.names, [], 'without a wait it is over');
    assert.deepEqual([none.answer, one.answer], [null, null]);
    await devices.pass(15_000);
    assert.deepEqual(one.names, []);
    assert.equal(none.answer, null);
    devices.memory.edit([3]);
    await devices.memory.settle();
    assert.deepEqual(none.names, ['Van 3, 10']);
  });

  test('begins with every device where it has no cursor, as of the time of its answer', async (t) => {
    const devices = new Devices(t);
    const asked = devices.ask(null, 0, 5);
    devices.memory.edit([1]);
    await devices.pass(5_000);
    assert.deepEqual(asked.names, ['Van 1, 10', 'Van 2', 'Van 3']);
  });

  test('is refused at once when its cursor is bad', async (t) => {
    const devices = new Devices(t);
    const cursor = await devices.memory.cursor(ATTACKER);
    const asked = [devices.ask('x', 25, 5), devices.ask(cursor, 25, 5)];
    await devices.memory.settle();
    for (const { answer } of asked) assert.equal(answer, 'malformed');
  });

  test('counts as one that waits: by key, by account, and for nobody else', async (t) => {
    const devices = new Devices(t);
    const { memory } = devices;
    const cursor = await memory.cursor(ATTACKER);
    const own = await memory.cursor(VICTIM);
    const first = devices.ask(cursor, 0, 25, ATTACKER, 1);
    for (let n = 1; n < POLLS_PER_KEY; n++) devices.ask(cursor, 0, 25, ATTACKER, 1);
    const atOnce = devices.ask(cursor, 25, 25, ATTACKER, 1);
    await memory.settle();
    assert.deepEqual(atOnce.names, [], 'the key has its twenty');
    for (let n = POLLS_PER_KEY; n < POLLS_PER_ACCOUNT; n++) devices.ask(cursor, 0, 25, ATTACKER, 10 + n);
    const crowded = devices.ask(cursor, 0, 25, ATTACKER, 9);
    const victim = devices.ask(own, 0, 25);
    await memory.settle();
    assert.equal(crowded.answer, 'crowded');
    assert.equal(victim.answer, null);
    first.hangUp();
    assert.equal(memory.waiting, POLLS_PER_ACCOUNT);
    const late = devices.ask(cursor, 0, 25, ATTACKER, 9);
    await memory.settle();
    assert.equal(late.answer, null, 'the place of the one that has hung up');
    await devices.pass(25_000);
    assert.deepEqual([victim.names, late.names], [[], []]);
    assert.equal(memory.waiting, 0);
  });

  test('is answered at once with what is there when the pod stops, and told nothing when its key changes', async (t) => {
    const devices = new Devices(t);
    const { memory } = devices;
    const cursor = await memory.cursor(VICTIM);
    memory.edit([1]);
    const [dropped, anew, stopped] = [
      devices.ask(cursor, 25, 25, VICTIM, 7),
      devices.ask(null, 25, 25, VICTIM, 7),
      devices.ask(cursor, 25, 25),
    ];
    memory.dropKey(7);
    await memory.settle();
    assert.deepEqual(dropped.page, { data: [], meta: { cursor, has_more: true } });
    assert.deepEqual([anew.names, anew.page.meta.has_more], [[], true]);
    const { data } = await memory.page(VICTIM, { cursor: anew.page.meta.cursor, limit: 10 });
    assert.equal(data.length, 3, 'nothing was left out');
    assert.equal(stopped.answer, null);
    memory.close();
    await memory.settle();
    assert.deepEqual(stopped.names, ['Van 1, 10']);
  });
});

const server = { lineage: 'a', start: 1, walBytes: 0, xmax: 0 };
const cursorAt = (xid: number): EventsCursor => ({
  read: { seen: new Snapshot(xid + 1, xid + 1, []), open: null, fromMs: null },
  server,
});

/** The feed of events without Postgres: one event of each transaction. */
class Events {
  readonly #t: TestContext;
  readonly #each = testPolls();
  readonly feed: EventFeed;
  present = 0;
  /** Questions to Postgres at this moment, of large pages and of others. */
  readonly asking = { large: 0, small: 0 };
  readonly mostAsking = { large: 0, small: 0 };
  /** Ends when Postgres answers. */
  answering: Promise<void> = Promise.resolve();

  constructor(t: TestContext) {
    t.mock.timers.enable({ apis: ['setInterval'] });
    this.#t = t;
    t.after(() => this.#each.polls.close());
    const { polls, unread, turns, state } = this.#each;
    const seal = (_caller: unknown, _devices: unknown, { seen }: EventsCursor['read']) =>
      String(seen.xmax - 1);
    const openMet = async (text: string) =>
      text === 'x' ? 'malformed' : { events: cursorAt(Number(text)).read, server };
    this.feed = new EventFeed({
      polls,
      unread,
      turns,
      clock: () => state.nowMs,
      cursors: { seal, openMet, isKept: () => true },
      follower: { applied: { noteReader: () => undefined } },
      texts: { event: ({ id }: RecordedEvent) => JSON.stringify({ name: String(id) }) },
      reader: {
        begin: async () => cursorAt(this.present),
        next: (_reader: unknown, cursor: EventsCursor, _filters: unknown, limit: number) =>
          this.#read(cursor, limit),
      },
    } as unknown as FeedPorts);
  }

  async #read({ read: { seen } }: EventsCursor, limit: number): Promise<EventsPage> {
    const size = limit > 1_000 ? 'large' : 'small';
    this.asking[size]++;
    this.mostAsking[size] = Math.max(this.mostAsking[size], this.asking[size]);
    const { present } = this;
    await this.answering;
    this.asking[size]--;
    const events: RecordedEvent[] = [];
    for (let xid = seen.xmax; xid <= present; xid++)
      events.push({ id: xid, xid } as unknown as RecordedEvent);
    return { ...cursorAt(present), events, hasMore: false };
  }

  ask(cursor: string | null, waitSeconds: number, gatherSeconds: number, limit = 100, accountId = VICTIM) {
    const filters = { fromMs: null, type: null, direction: null, imei: null };
    const times = { waitMs: waitSeconds * 1000, gatherMs: gatherSeconds * 1000 };
    return this.feed.next(callerOf(accountId), { cursor, limit, ...filters, ...times });
  }

  commit(): void {
    this.present++;
    this.#each.watch.touch('events', 7);
    this.#each.announce();
  }

  async pass(ms: number): Promise<void> {
    this.#each.state.nowMs += ms;
    this.#t.mock.timers.tick(TICK_MS);
    await this.settle();
  }

  settle(): Promise<number> {
    return settle(this.#each.turns);
  }

  stop(): void {
    this.#each.polls.close();
  }

  dropKeys(): void {
    this.#each.dropKey(callerOf(VICTIM).id);
  }
}

describe('a call for events that gathers', () => {
  test('is answered at its time and not before, with what came since it began', async (t) => {
    const events = new Events(t);
    events.commit();
    const begun = new Asked(() => events.ask(null, 25, 5));
    const behind = new Asked(() => events.ask('0', 0, 5));
    const idle = new Asked(() => events.ask('3', 25, 5));
    await events.settle();
    events.commit();
    events.commit();
    await events.pass(4_999);
    assert.deepEqual([begun.answer, behind.answer], [null, null]);
    await events.pass(1);
    assert.deepEqual(begun.names, ['2', '3']);
    assert.deepEqual(behind.names, ['1', '2', '3']);
    assert.equal(idle.answer, null, 'nothing is there for it yet');
    events.commit();
    await events.settle();
    assert.deepEqual(idle.names, ['4']);
  });

  test('is refused at once with a bad cursor, answered at once when the pod stops, and told nothing when its key changes', async (t) => {
    const events = new Events(t);
    events.commit();
    const malformed = new Asked(() => events.ask('x', 25, 5));
    const dropped = new Asked(() => events.ask('0', 25, 5));
    await events.settle();
    assert.equal(malformed.answer, 'malformed');
    events.dropKeys();
    await events.settle();
    assert.deepEqual(dropped.page, { data: [], meta: { cursor: '0', has_more: true } });
    const stopped = new Asked(() => events.ask('0', 25, 5));
    await events.settle();
    events.stop();
    await events.settle();
    assert.deepEqual(stopped.names, ['1']);
  });
});

test('large pages of events are made one after the other for an account, beside those of others and small ones', async (t) => {
  const events = new Events(t);
  events.commit();
  const { promise, resolve } = Promise.withResolvers<void>();
  events.answering = promise;
  const large = Array.from({ length: 51 }, () => events.ask('0', 0, 0, 10_000, ATTACKER));
  const small = Array.from({ length: 3 }, () => events.ask('0', 0, 0, 1_000, ATTACKER));
  const victim = events.ask('0', 0, 0, 10_000, VICTIM);
  await assert.rejects(events.ask('0', 0, 0, 10_000, ATTACKER), Overloaded);
  assert.deepEqual(events.asking, { large: 2, small: 3 });
  resolve();
  await Promise.all([...large, ...small, victim]);
  assert.deepEqual(events.mostAsking, { large: 2, small: 3 });
});
