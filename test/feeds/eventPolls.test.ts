import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';
import type { ServerState } from '../../src/changelog/serverStarts.ts';
import type { RecordedEvent } from '../../src/feeds/eventFeed.sql.ts';
import { type EventPoll, EventPolls, LargePages } from '../../src/feeds/eventFeed.ts';
import type { FeedPorts, PollOutcome } from '../../src/feeds/longPolls.ts';
import { UnreadAnswers } from '../../src/feeds/pages.ts';
import type { EventsCursor, EventsPage } from '../../src/feeds/readEvents.ts';
import { callerOf, WORLD } from '../support/feeds/memoryFeed.ts';
import { settle, stepTurns, testPolls } from '../support/feeds/stepTurns.ts';
import { runs } from '../support/torture.ts';

const ACCOUNT = 1;
const server: ServerState = { lineage: 'a', start: 1, walBytes: 0, xmax: 0 };
const cursorAt = (seen: Snapshot): EventsCursor => ({ read: { seen, open: null, fromMs: null }, server });
const upTo = (xid: number): Snapshot => new Snapshot(xid + 1, xid + 1, []);
const eventOf = (xid: number): RecordedEvent => ({ id: xid * 10, xid }) as unknown as RecordedEvent;

/** Events of transactions in their order, and callers that wait for them. */
class Feed {
  readonly #each: ReturnType<typeof testPolls>;
  readonly unread: UnreadAnswers;
  readonly #polls: EventPolls;
  readonly largePages = new LargePages();
  xids: number[] = [];
  present = upTo(0);
  /** How often Postgres was asked. */
  asked = 0;
  /** Happens while it is asked. */
  meanwhile: () => void = () => undefined;
  answer: 'events' | 'other server' | Error = 'events';

  constructor(maxBytes?: number) {
    const turns = stepTurns();
    this.unread = new UnreadAnswers(turns, maxBytes);
    this.#each = testPolls(turns, undefined, undefined, this.unread);
    this.#polls = new EventPolls(
      {
        polls: this.#each.polls,
        unread: this.unread,
        cursors: {
          seal: (_caller: unknown, _devices: unknown, events: unknown) =>
            Buffer.from(JSON.stringify(events)).toString('base64url'),
          isKept: () => true,
        },
        texts: { event: ({ id }: RecordedEvent) => String(id) },
        turns,
        clock: () => this.#each.state.nowMs,
        reader: {
          next: async (_reader: unknown, cursor: EventsCursor, _filters: unknown, limit: number) => {
            this.asked++;
            const { present } = this;
            this.meanwhile();
            if (this.answer instanceof Error) throw this.answer;
            return this.answer === 'events' ? this.read(cursor, limit, present) : this.answer;
          },
        },
      } as unknown as FeedPorts,
      this.largePages,
    );
  }

  /** As Postgres answers it. */
  read({ read: { seen } }: EventsCursor, limit: number, present = this.present): EventsPage {
    const found = this.xids.filter((xid) => !seen.sees(xid) && present.sees(xid));
    const events = found.slice(0, limit).map(eventOf);
    const last = events.at(-1);
    if (found.length <= limit || last === undefined)
      return { events, read: { seen: present, open: null, fromMs: null }, server, hasMore: false };
    const read = { seen, open: { upTo: present, after: { xid: last.xid, id: last.id } }, fromMs: null };
    return { events, read, server, hasMore: true };
  }

  join(limit: number, keyId = 1): EventPoll {
    const wanted = { fromMs: null, type: null, direction: null, imei: null, limit };
    const poll = this.#polls.join(callerOf(ACCOUNT, keyId), wanted, 25_000);
    assert.ok(typeof poll === 'object');
    return poll;
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
    this.#each.polls.close();
  }
}

function bytesOf(outcome: PollOutcome): Buffer {
  assert.ok(typeof outcome === 'object', String(outcome));
  outcome.handover?.done();
  return outcome.bytes;
}

const idsOf = (outcome: PollOutcome): number[] => JSON.parse(bytesOf(outcome).toString()).data;

describe('calls that wait for the same events', () => {
  test('ask Postgres once, and share the bytes of a page', async () => {
    const feed = new Feed();
    const waits = Array.from({ length: 300 }, (_, n) => feed.join(100, n).wait(cursorAt(upTo(n % 7))));
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
    const poll = feed.join(100);
    feed.commit(5);
    // It looked before that.
    const wait = poll.wait(cursorAt(upTo(4)));
    await feed.settle();
    assert.deepEqual(idsOf(await wait), [50]);

    const late = feed.join(100).wait(cursorAt(upTo(5)));
    feed.meanwhile = () => {
      feed.meanwhile = () => undefined;
      feed.commit(6);
    };
    feed.tell();
    await feed.settle();
    assert.deepEqual(idsOf(await late), [60]);
    assert.equal(feed.asked, 3);
    feed.close();
  });

  test('look by themselves where the one that has seen least has seen something else', async () => {
    const feed = new Feed();
    const [a, b] = [new Snapshot(6, 10, [6]), new Snapshot(7, 11, [7, 10])];
    const outcomes = [a, b].map((seen) => feed.join(100).wait(cursorAt(seen)));
    feed.commit(6, 7, 10, 11);
    await feed.settle();
    const [first, second] = await Promise.all(outcomes);
    assert.deepEqual(idsOf(first as PollOutcome), [60, 100, 110]);
    assert.equal(second, 'again');
    feed.close();
  });

  test('look by themselves when another server has answered, and fail as Postgres does', async () => {
    const feed = new Feed();
    for (const answer of ['other server', new Error('away')] as const) {
      feed.answer = answer;
      const waits = [feed.join(100).wait(cursorAt(upTo(1))), feed.join(100).wait(cursorAt(upTo(2)))];
      const settled = Promise.allSettled(waits);
      feed.tell();
      await feed.settle();
      for (const each of await settled) {
        if (answer === 'other server') assert.deepEqual(each, { status: 'fulfilled', value: 'again' });
        else assert.deepEqual(each, { status: 'rejected', reason: answer });
      }
    }
    feed.close();
  });

  test('wait for a large page of their account that is being made, and small ones do not', async () => {
    const feed = new Feed();
    const { promise, resolve } = Promise.withResolvers<void>();
    const made = feed.largePages.run(ACCOUNT, 10_000, () => promise);
    const small = feed.join(1_000).wait(cursorAt(upTo(1)));
    feed.commit(2);
    await feed.settle();
    assert.deepEqual(idsOf(await small), [20]);
    const large = feed.join(10_000).wait(cursorAt(upTo(2)));
    feed.commit(3);
    await feed.settle();
    assert.equal(feed.asked, 1);
    resolve();
    await made;
    await feed.settle();
    assert.deepEqual(idsOf(await large), [30]);
    feed.close();
  });

  test('wait for room when answers of the account are not read', async () => {
    const feed = new Feed(1);
    const held = feed.unread.share(ACCOUNT, Buffer.alloc(10));
    const wait = feed.join(100).wait(cursorAt(upTo(1)));
    const over = feed.join(50).wait(cursorAt(upTo(1)));
    feed.commit(2);
    await feed.settle();
    assert.equal(feed.asked, 0);
    held.release();
    await feed.settle();
    assert.deepEqual(idsOf(await wait), [20]);
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
          const poll = feed.join(limit, n);
          const cursor = cursorAt(upTo(Math.min(seenTo, Math.max(...xids))));
          return { limit, cursor, poll, outcome: poll.wait(cursor) };
        });
        feed.commit(...sorted);
        await feed.settle();
        feed.close();
        for (const { limit, cursor, poll, outcome } of waits) {
          const own = feed.read(cursor, limit);
          const got = await outcome;
          if (got === 'over') {
            assert.deepEqual([own.events, own.hasMore], [[], false]);
            assert.deepEqual(poll.cursor?.read, own.read, 'it was moved behind what was looked at');
            continue;
          }
          if (got === 'again') {
            assert.ok(xids.length > limit, 'the others got a full page');
            continue;
          }
          const { data: ids, meta } = JSON.parse(bytesOf(got).toString());
          // A page of several may be fuller for the one that has seen least.
          assert.deepEqual(ids, own.events.map(({ id }) => id).slice(0, ids.length));
          const { seen, open } = JSON.parse(Buffer.from(meta.cursor, 'base64url').toString());
          assert.equal(meta.has_more, open !== null);
          const left = feed.xids.filter((xid) => {
            const isSent = open === null || xid <= open.after.xid;
            return !cursor.read.seen.sees(xid) && !isSent;
          });
          assert.equal(ids.length + left.length, feed.read(cursor, 1_000).events.length);
          const before = open === null ? feed.present : cursor.read.seen;
          assert.deepEqual({ ...before }, { ...seen });
        }
      },
    ),
    { numRuns: runs(60) },
  );
});
