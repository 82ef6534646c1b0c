import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ServerState } from '../../src/changelog/servers.ts';
import { Snapshot } from '../../src/changelog/snapshot.ts';
import type { RecordedEvent } from '../../src/feeds/eventFeed.sql.ts';
import type { EventsPlace, EventsStep } from '../../src/feeds/eventsPlace.ts';
import { type EventWaiter, EventWaits, type WaitedEvents } from '../../src/feeds/eventWaits.ts';
import { UnreadAnswers } from '../../src/feeds/unreadAnswers.ts';
import { callerOf, WORLD } from '../support/feeds/memoryFeed.ts';
import { settle, testRoom } from '../support/feeds/stepTurns.ts';
import { runs } from '../support/torture.ts';

const ACCOUNT = 1;
const server: ServerState = { lineage: 'a', start: 1, walBytes: 0, xmax: 0 };
const placeAt = (seen: Snapshot): EventsPlace => ({ read: { seen, open: null, fromMs: null }, server });
const upTo = (xid: number): Snapshot => new Snapshot(xid + 1, xid + 1, []);
const eventOf = (xid: number): RecordedEvent => ({ id: xid * 10, xid }) as unknown as RecordedEvent;

/** Events of transactions in their order, and callers that wait for them. */
class Feed {
  readonly #each = testRoom();
  readonly unread: UnreadAnswers;
  readonly waits: EventWaits;
  xids: number[] = [];
  present = upTo(0);
  /** How often Postgres was asked. */
  asked = 0;
  /** Happens while it is asked. */
  meanwhile: () => void = () => undefined;
  answer: 'events' | 'other' | Error = 'events';

  constructor(maxBytes?: number) {
    this.unread = new UnreadAnswers(this.#each.turns, maxBytes);
    this.waits = new EventWaits({
      room: this.#each.room,
      unread: this.unread,
      cursors: { seal: (_caller, _devices, events) => JSON.stringify(events), isKept: () => true },
      format: {
        *events(events, { cursor, hasMore }) {
          return Buffer.from(JSON.stringify({ ids: events.map(({ id }) => id), cursor, hasMore }));
        },
      },
      turns: this.#each.turns,
      ask: async (group, place) => {
        this.asked++;
        const { present } = this;
        this.meanwhile();
        if (this.answer instanceof Error) throw this.answer;
        return this.answer === 'other' ? 'other' : this.step(place, group.limit, present);
      },
    });
  }

  /** As Postgres answers it. */
  step({ read: { seen } }: EventsPlace, limit: number, present = this.present): EventsStep {
    const found = this.xids.filter((xid) => !seen.sees(xid) && present.sees(xid));
    const events = found.slice(0, limit).map(eventOf);
    const last = events.at(-1);
    if (found.length <= limit || last === undefined)
      return { events, read: { seen: present, open: null, fromMs: null }, server, hasMore: false };
    const read = { seen, open: { upTo: present, after: { xid: last.xid, id: last.id } }, fromMs: null };
    return { events, read, server, hasMore: true };
  }

  join(limit: number, keyId = 1): EventWaiter {
    const request = {
      cursor: null,
      fromMs: null,
      type: null,
      direction: null,
      imei: null,
      limit,
      waitMs: 25_000,
    };
    const waiter = this.waits.join(callerOf(ACCOUNT, keyId), request, 25_000);
    assert.ok(typeof waiter === 'object');
    return waiter;
  }

  commit(...xids: readonly number[]): void {
    this.xids.push(...xids);
    this.present = upTo(Math.max(0, ...this.xids));
    this.tell();
  }

  tell(): void {
    this.#each.watch.touch('events', WORLD);
    this.#each.announce();
  }

  settle(): Promise<number> {
    return settle(this.#each.turns);
  }

  close(): void {
    this.#each.room.close();
  }
}

function bytesOf(outcome: WaitedEvents): Buffer {
  assert.ok(typeof outcome === 'object', String(outcome));
  outcome.handover?.done();
  return outcome.bytes;
}

describe('calls that wait for the same events', () => {
  test('ask Postgres once, and share the bytes of a page', async () => {
    const feed = new Feed();
    const waits = Array.from({ length: 300 }, (_, n) => feed.join(100, n).wait(placeAt(upTo(n % 7))));
    feed.commit(10, 11);
    await feed.settle();
    assert.equal(feed.asked, 1);
    const outcomes = await Promise.all(waits);
    const [first] = outcomes;
    assert.ok(typeof first === 'object');
    for (const outcome of outcomes) assert.equal(typeof outcome === 'object' && outcome.bytes, first.bytes);
    assert.equal(feed.unread.bytesOf(ACCOUNT), first.bytes.length);
    for (const outcome of outcomes) bytesOf(outcome);
    assert.equal(feed.unread.bytesOf(ACCOUNT), 0);
    feed.close();
  });

  test('are told what came while they looked by themselves, and while Postgres was asked', async () => {
    const feed = new Feed();
    const waiter = feed.join(100);
    feed.commit(5);
    // It had looked before that.
    const wait = waiter.wait(placeAt(upTo(4)));
    await feed.settle();
    assert.deepEqual(JSON.parse(bytesOf(await wait).toString()).ids, [50]);

    const late = feed.join(100).wait(placeAt(upTo(5)));
    feed.meanwhile = () => {
      feed.meanwhile = () => undefined;
      feed.commit(6);
    };
    feed.tell();
    await feed.settle();
    assert.deepEqual(JSON.parse(bytesOf(await late).toString()).ids, [60]);
    assert.equal(feed.asked, 3);
    feed.close();
  });

  test('look by themselves where the one that has seen least has seen something else', async () => {
    const feed = new Feed();
    const [a, b] = [new Snapshot(6, 10, [6]), new Snapshot(7, 11, [7, 10])];
    const outcomes = [a, b].map((seen) => feed.join(100).wait(placeAt(seen)));
    feed.commit(6, 7, 10, 11);
    await feed.settle();
    const [first, second] = await Promise.all(outcomes);
    assert.deepEqual(JSON.parse(bytesOf(first as WaitedEvents).toString()).ids, [60, 100, 110]);
    assert.equal(second, 'again');
    feed.close();
  });

  test('look by themselves when another server has answered, and fail as Postgres does', async () => {
    const feed = new Feed();
    for (const answer of ['other', new Error('away')] as const) {
      feed.answer = answer;
      const waits = [feed.join(100).wait(placeAt(upTo(1))), feed.join(100).wait(placeAt(upTo(2)))];
      const settled = Promise.allSettled(waits);
      feed.tell();
      await feed.settle();
      for (const each of await settled) {
        if (answer === 'other') assert.deepEqual(each, { status: 'fulfilled', value: 'again' });
        else assert.deepEqual(each, { status: 'rejected', reason: answer });
      }
    }
    feed.close();
  });

  test('wait for room when answers of the account are not read', async () => {
    const feed = new Feed(1);
    const held = feed.unread.hold(ACCOUNT, 10);
    const wait = feed.join(100).wait(placeAt(upTo(1)));
    const over = feed.join(50).wait(placeAt(upTo(1)));
    feed.commit(2);
    await feed.settle();
    assert.equal(feed.asked, 0);
    held.release();
    await feed.settle();
    assert.deepEqual(JSON.parse(bytesOf(await wait).toString()).ids, [20]);
    await feed.settle();
    bytesOf(await over);
    feed.close();
  });
});

test('each of them gets what a query of its own would have brought', async () => {
  const xid = fc.integer({ min: 1, max: 30 });
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(xid, { minLength: 1, maxLength: 20 }),
      fc.array(fc.record({ seenTo: fc.nat(30), limit: fc.constantFrom(2, 3, 100) }), {
        minLength: 1,
        maxLength: 12,
      }),
      async (xids, readers) => {
        const feed = new Feed();
        const sorted = xids.toSorted((a, b) => a - b);
        const waits = readers.map(({ seenTo, limit }, n) => {
          const waiter = feed.join(limit, n);
          const place = placeAt(upTo(Math.min(seenTo, Math.max(...xids))));
          return { limit, place, waiter, outcome: waiter.wait(place) };
        });
        feed.commit(...sorted);
        await feed.settle();
        feed.close();
        for (const { limit, place, waiter, outcome } of waits) {
          const own = feed.step(place, limit);
          const got = await outcome;
          if (got === 'over') {
            assert.deepEqual([own.events, own.hasMore], [[], false]);
            assert.deepEqual(waiter.place?.read, own.read, 'it was moved behind what was looked at');
            continue;
          }
          if (got === 'again') {
            assert.ok(xids.length > limit, 'the others got a full page');
            continue;
          }
          const page = JSON.parse(bytesOf(got).toString());
          // A page of several may be fuller for the one that has seen least.
          assert.deepEqual(page.ids, own.events.map(({ id }) => id).slice(0, page.ids.length));
          const { seen, open } = JSON.parse(page.cursor);
          assert.equal(page.hasMore, open !== null);
          const left = feed.xids.filter((xid) => {
            const isSent = open === null || xid <= open.after.xid;
            return !place.read.seen.sees(xid) && !isSent;
          });
          assert.equal(page.ids.length + left.length, feed.step(place, 1_000).events.length);
          const before = open === null ? feed.present : place.read.seen;
          assert.deepEqual({ ...before }, { ...seen });
        }
      },
    ),
    { numRuns: runs(60) },
  );
});
