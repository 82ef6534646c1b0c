import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  AppliedTransactions,
  SNAPSHOT_MAX_BYTES,
  Snapshot,
} from '../../src/changelog/appliedTransactions.memory.ts';
import { isSameServer, ServerStarts, serverOf } from '../../src/changelog/serverStarts.ts';
import {
  ALSO_MAX,
  CURSOR_MAX_CHARS,
  Cursors,
  decodeCursor,
  encodeCursor,
  type FeedCursor,
} from '../../src/feeds/cursors.ts';

const BASE = 5_000_000_000;

const snapshot: fc.Arbitrary<Snapshot> = fc
  .record({
    xmin: fc.integer({ min: 3, max: 60 }),
    gaps: fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 80 }),
  })
  .map(({ xmin, gaps }) => {
    const running: number[] = [];
    let xid = BASE + xmin;
    for (const gap of gaps) {
      running.push(xid);
      xid += gap;
    }
    return new Snapshot(running[0] ?? xid, xid, running);
  });
const cut = snapshot.map((snapshot) => snapshot.within(SNAPSHOT_MAX_BYTES));
const XIDS = Array.from({ length: 900 }, (_, n) => BASE + n);

describe('a snapshot', () => {
  test('sees what Postgres says that it sees, and is written as Postgres writes it', () => {
    const seen = Snapshot.parse('10:20:12,15');
    assert.deepEqual(
      [9, 10, 11, 12, 14, 15, 19, 20, 21].filter((xid) => seen.sees(xid)),
      [9, 10, 11, 14, 19],
    );
    assert.equal(seen.toString(), '10:20:12,15');
    assert.equal(Snapshot.parse('7:7:').toString(), '7:7:');
  });

  test('contains another when it sees all that the other sees', () => {
    fc.assert(
      fc.property(snapshot, snapshot, (a, b) => {
        const naive = XIDS.every((xid) => a.sees(xid) || !b.sees(xid));
        assert.equal(a.contains(b), naive);
      }),
      { seed: 3 },
    );
  });

  test('that is cut to fit a cursor sees nothing more, and later ones see all that it saw', () => {
    fc.assert(
      fc.property(snapshot, fc.array(fc.nat(80)), fc.nat(40), (earlier, ended, further) => {
        const small = earlier.within(SNAPSHOT_MAX_BYTES);
        assert.ok(small.bytes <= SNAPSHOT_MAX_BYTES);
        assert.ok(earlier.contains(small));
        const gone = new Set(ended.map((n) => earlier.running[n]));
        const running = earlier.running.filter((xid) => !gone.has(xid));
        const xmax = earlier.xmax + further;
        for (let xid = earlier.xmax; xid < xmax; xid += 2) running.push(xid);
        const later = new Snapshot(running[0] ?? xmax, xmax, running);
        assert.ok(later.within(SNAPSHOT_MAX_BYTES).contains(small));
      }),
      { seed: 4, numRuns: 500 },
    );
  });
});

const after = fc.record({ xid: fc.maxSafeNat(), id: fc.maxSafeNat() }, { noNullPrototype: true });
const open = fc.option(fc.record({ upTo: cut, after }, { noNullPrototype: true }));
const cursor: fc.Arbitrary<FeedCursor> = fc.record(
  {
    issuedAtMs: fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1000),
    accountId: fc.maxSafeNat(),
    worldIds: fc.array(fc.nat(), { minLength: 1, maxLength: 2 }),
    server: fc.constant({
      lineage: 'abcdefghij',
      start: 2 ** 48,
      walBytes: 123_456_789_012,
      xmax: 4_000_000_000,
    }),
    devices: fc.option(
      fc
        .record(
          {
            seen: cut,
            open,
            listedTo: fc.constantFrom(null, '0', '35000000000000001'),
            also: fc.array(fc.integer({ min: 1, max: 2 ** 32 }), { maxLength: ALSO_MAX }),
          },
          { noNullPrototype: true },
        )
        .map((read) => ({ ...read, also: read.also.map((n) => read.seen.xmin + n) })),
    ),
    events: fc.option(
      fc.record(
        { seen: cut, open, fromMs: fc.option(fc.nat({ max: 4_000_000_000_000 })) },
        { noNullPrototype: true },
      ),
    ),
  },
  { noNullPrototype: true },
);
const pointsSeen = fc.record(
  {
    snapshot: cut,
    isWhole: fc.boolean(),
    atMs: fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1000),
  },
  { noNullPrototype: true },
);
const place = fc.record(
  {
    imei: fc.constantFrom('0', '35000000000000001'),
    beforeMs: fc.option(fc.nat({ max: 4_000_000_000_000 })),
    late: fc.option(
      fc.record(
        {
          xid: fc
            .maxSafeNat()
            .map((n) => n + 1)
            .filter(Number.isSafeInteger),
          recordedAtMs: fc.nat({ max: 4_000_000_000_000 }),
        },
        { noNullPrototype: true },
      ),
    ),
  },
  { noNullPrototype: true },
);
const pointsCursor: fc.Arbitrary<FeedCursor> = fc
  .tuple(
    cursor,
    fc.record(
      {
        seen: pointsSeen,
        open: fc.option(fc.record({ upTo: pointsSeen, place }, { noNullPrototype: true })),
      },
      { noNullPrototype: true },
    ),
  )
  .map(([each, points]) => ({ ...each, devices: null, events: null, points }));
const cursorsOf = (key = createSecretKey(Buffer.alloc(32, 7))) =>
  new Cursors(key, new AppliedTransactions(Date.now), Date.now);

describe('a cursor', () => {
  test('of points says after the journey what it said before, in at most 500 characters', () => {
    fc.assert(
      fc.property(pointsCursor, (cursor) => {
        assert.deepEqual(decodeCursor(encodeCursor(cursor)), cursor);
        assert.ok(cursorsOf().sealed(cursor).length <= 500);
      }),
    );
  });

  test('says after the journey what it said before, in at most 500 characters', () => {
    fc.assert(
      fc.property(cursor, (cursor) => {
        assert.deepEqual(decodeCursor(encodeCursor(cursor)), cursor);
        const distinct = new Set(
          [cursor.devices, cursor.events].flatMap((read) =>
            read === null ? [] : [`${read.seen}`, `${read.open?.upTo ?? read.seen}`],
          ),
        );
        const text = cursorsOf().sealed(cursor);
        if (distinct.size <= 3) assert.ok(text.length <= CURSOR_MAX_CHARS, `${text.length} characters`);
        assert.deepEqual(cursorsOf().opened(text), cursor);
      }),
      { seed: 5, numRuns: 300 },
    );
  });

  test('that was changed, cut off or sealed by another service is none', () => {
    fc.assert(
      fc.property(cursor, fc.nat(), fc.integer({ min: 1, max: 63 }), (cursor, at, by) => {
        const text = cursorsOf().sealed(cursor);
        const cursors = cursorsOf();
        const bytes = Buffer.from(text, 'base64url');
        const place = at % bytes.length;
        bytes[place] = (bytes[place] as number) ^ by;
        assert.equal(cursors.opened(bytes.toString('base64url')), null);
        assert.equal(cursors.opened(text.slice(0, at % text.length)), null);
        assert.equal(cursorsOf(createSecretKey(Buffer.alloc(32, 8))).opened(text), null);
      }),
      { seed: 6, numRuns: 100 },
    );
  });
});

test('of very many cursors ten thousand are kept, and the others are read from their text', () => {
  const cursors = cursorsOf();
  const cursorOf = (accountId: number): FeedCursor => ({
    issuedAtMs: 0,
    accountId,
    worldIds: [accountId],
    server: { lineage: '7', start: 1, walBytes: 1, xmax: 9 },
    devices: null,
    events: { seen: new Snapshot(5, 9, [5]), open: null, fromMs: null },
  });
  const [oldest, newest] = [cursorOf(0), cursorOf(10_000)];
  const texts = [oldest, ...Array.from({ length: 9_999 }, (_, n) => cursorOf(n + 1)), newest].map((each) =>
    cursors.sealed(each),
  );
  assert.equal(cursors.opened(texts.at(-1) as string), newest, 'the very cursor');
  const read = cursors.opened(texts[0] as string);
  assert.notEqual(read, oldest, 'it was not kept');
  assert.deepEqual(read, oldest);
});

describe('a server that was started again', () => {
  const [FIRST, SECOND, THIRD, UNKNOWN] = [11, 22, 33, 44];
  const HISTORY = '1/1/5.7';
  const starts = new ServerStarts([
    { start: FIRST, walBytes: 100, nextXid: 10 },
    { start: SECOND, walBytes: 500, nextXid: 50 },
    { start: THIRD, walBytes: 300, nextXid: 40 },
  ]);
  const mark = (history: string, start: number, walBytes = 0, xmax = 0) =>
    serverOf({ history, start, walBytes, xmax });
  const cases: readonly [string, boolean, string, number, number, number][] = [
    ['since the cursor was made by it has all', true, HISTORY, THIRD, 900, 90],
    ['has what was on disk before each later start', true, HISTORY, FIRST, 300, 40],
    ['on another timeline has that too', true, '1/2/5.7', FIRST, 300, 40],
    ['lacks what was on disk after it was copied', false, HISTORY, FIRST, 301, 40],
    ['lacks it whatever came between', false, HISTORY, SECOND, 301, 40],
    ['gives a transaction id again', false, HISTORY, SECOND, 300, 41],
    ['does not remember a start', false, HISTORY, UNKNOWN, 1, 1],
    ['is another cluster', false, '2/1/5.7', THIRD, 0, 0],
    ['is another database of the cluster, such as a restored one', false, '1/1/6.7', THIRD, 0, 0],
  ];
  for (const [name, isHeld, history, start, walBytes, xmax] of cases) {
    test(name, () => {
      const now = mark(HISTORY, THIRD, 1_000, 100);
      assert.equal(starts.holdAll(now, mark(history, start, walBytes, xmax)), isHeld);
    });
  }

  test('says how much it lacks', () => {
    const now = mark(HISTORY, THIRD, 1_000, 100);
    const lacking = (start: number, walBytes: number, xmax: number) =>
      starts.lacking(now, mark(HISTORY, start, walBytes, xmax));
    assert.deepEqual(lacking(FIRST, 310, 47), { walBytes: 10, transactions: 7 });
    assert.deepEqual(lacking(SECOND, 300, 40), { walBytes: 0, transactions: 0 });
    assert.equal(lacking(UNKNOWN, 1, 1), null);
    assert.equal(starts.lacking(now, mark('1/1/6.7', FIRST, 310, 47)), null, 'another database');
  });

  test('is not trusted before it is among those that were read', () => {
    assert.equal(starts.holdAll(mark(HISTORY, UNKNOWN, 1_000, 100), mark(HISTORY, FIRST, 1, 1)), false);
  });

  test('is the same under the same history, whichever start that was', () => {
    assert.equal(isSameServer(mark(HISTORY, FIRST), mark(HISTORY, SECOND)), true);
    assert.equal(isSameServer(mark(HISTORY, FIRST), mark(`${HISTORY}/22`, FIRST)), false);
  });
});
