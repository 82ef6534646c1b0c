import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CURSOR_MAX_CHARS, CursorBox } from '../../src/feeds/cursorBox.ts';
import {
  ALSO_MAX,
  decodeCursor,
  encodeCursor,
  type ReaderCursor,
  SNAPSHOT_MAX_BYTES,
} from '../../src/feeds/readerCursor.ts';
import { holdsAll, serverMark } from '../../src/feeds/serverMark.ts';
import { Snapshot } from '../../src/feeds/snapshot.ts';

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

const place = fc.record({ xid: fc.maxSafeNat(), id: fc.maxSafeNat() }, { noNullPrototype: true });
const open = fc.option(fc.record({ upTo: cut, place }, { noNullPrototype: true }));
const cursor: fc.Arbitrary<ReaderCursor> = fc.record(
  {
    issuedAtMs: fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1000),
    accountId: fc.maxSafeNat(),
    worldIds: fc.array(fc.nat(), { minLength: 1, maxLength: 2 }),
    server: fc.constant({ lineage: 'abcdefghij', timeline: 3, walBytes: 123_456_789_012 }),
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
const KEY = createSecretKey(Buffer.alloc(32, 7));

describe('a cursor', () => {
  test('says after the journey what it said before, in at most 500 characters', () => {
    fc.assert(
      fc.property(cursor, (cursor) => {
        assert.deepEqual(decodeCursor(encodeCursor(cursor)), cursor);
        const distinct = new Set(
          [cursor.devices, cursor.events].flatMap((read) =>
            read === null ? [] : [`${read.seen}`, `${read.open?.upTo ?? read.seen}`],
          ),
        );
        const text = new CursorBox(KEY).seal(cursor);
        if (distinct.size <= 3) assert.ok(text.length <= CURSOR_MAX_CHARS, `${text.length} characters`);
        assert.deepEqual(new CursorBox(KEY).open(text), cursor);
      }),
      { seed: 5, numRuns: 300 },
    );
  });

  test('that was changed, cut off or sealed by another service is none', () => {
    fc.assert(
      fc.property(cursor, fc.nat(), fc.integer({ min: 1, max: 63 }), (cursor, at, by) => {
        const text = new CursorBox(KEY).seal(cursor);
        const box = new CursorBox(KEY);
        const bytes = Buffer.from(text, 'base64url');
        const place = at % bytes.length;
        bytes[place] = (bytes[place] as number) ^ by;
        assert.equal(box.open(bytes.toString('base64url')), null);
        assert.equal(box.open(text.slice(0, at % text.length)), null);
        assert.equal(new CursorBox(createSecretKey(Buffer.alloc(32, 8))).open(text), null);
      }),
      { seed: 6, numRuns: 100 },
    );
  });
});

describe('another server', () => {
  const mark = (history: string, walBytes = 0) => serverMark({ history, walBytes });
  const cases: readonly [string, boolean, string, number, string, [number, number][]][] = [
    ['is the same server', true, '1/1/5.7', 900, '1/1/5.7', []],
    ['is another cluster', false, '1/1/5.7', 0, '2/1/5.7', []],
    ['is another database of the cluster, such as a restored one', false, '1/1/5.7', 0, '1/1/6.7', []],
    ['was promoted after it had followed all that was seen', true, '1/1/5.7', 900, '1/2/5.7', [[2, 900]]],
    ['was promoted before', false, '1/1/5.7', 901, '1/2/5.7', [[2, 900]]],
    ['was promoted when nobody looked', false, '1/1/5.7', 1, '1/2/5.7', []],
    [
      'was promoted twice, first behind the cursor',
      false,
      '1/1/5.7',
      901,
      '1/3/5.7',
      [
        [2, 900],
        [3, 2000],
      ],
    ],
    ['is older than the cursor', false, '1/2/5.7', 1, '1/1/5.7', [[2, 900]]],
  ];
  for (const [name, isHeld, cursorOf, walBytes, now, promotions] of cases) {
    test(name, () => {
      assert.equal(holdsAll(mark(now), mark(cursorOf, walBytes), new Map(promotions)), isHeld);
    });
  }
});
