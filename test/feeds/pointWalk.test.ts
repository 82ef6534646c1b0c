import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';
import type { PointsSeen } from '../../src/feeds/cursors.ts';
import { PointWalk, type WalkedRow } from '../../src/feeds/pointWalk.ts';
import { runs } from '../support/torture.ts';

const MINUTE_MS = 60_000;
const [IN_TIME, LATE] = [0, 1];

/** A transaction: when it begins, gets its id, and ends; each before the next of these. */
interface Transaction {
  readonly beginMs: number;
  readonly idMs: number;
  readonly endMs: number;
}

/** Parts of the ten minutes that a transaction may last, and of the time from one of the device to the next. */
const PARTS = fc.record({
  gap: fc.integer({ min: 1, max: MINUTE_MS }),
  before: fc.integer({ min: 0, max: 8 * MINUTE_MS }),
  id: fc.double({ min: 0, max: 1, noNaN: true }),
  lasts: fc.integer({ min: 1, max: MINUTE_MS }),
  isLate: fc.boolean(),
});
const OTHERS = fc.array(
  fc.record({
    beginMs: fc.integer({ min: 0, max: 40 * MINUTE_MS }),
    lasts: fc.integer({ min: 1, max: 9 * MINUTE_MS }),
  }),
  { maxLength: 60 },
);

test('a walk finds the rows between two snapshots, also where these are cut short', () => {
  fc.assert(
    fc.property(
      fc.array(PARTS, { minLength: 1, maxLength: 25 }),
      OTHERS,
      fc.integer({ min: 0, max: 45 * MINUTE_MS }),
      fc.integer({ min: 0, max: 45 * MINUTE_MS }),
      fc.constantFrom(1_000, 14, 11, 8, 6),
      (parts, others, oneMs, otherMs, bytes) => {
        // Those of the device end one before the next has its lock, but get their ids in any order.
        let endedMs = 10 * MINUTE_MS;
        const own = parts.map(({ gap, before, id, lasts }): Transaction => {
          const lockMs = endedMs + gap;
          const beginMs = lockMs - before;
          endedMs = lockMs + lasts;
          return { beginMs, idMs: beginMs + Math.floor(id * before), endMs: endedMs };
        });
        const all = [
          ...own,
          ...others.map(({ beginMs, lasts }) => ({ beginMs, idMs: beginMs, endMs: beginMs + lasts })),
        ];
        const byId = all.toSorted((a, b) => a.idMs - b.idMs);
        const xidOf = (of: Transaction) => 1_000 + byId.indexOf(of);
        const snapshotAt = (ms: number): PointsSeen => {
          const begun = byId.filter(({ idMs }) => idMs <= ms);
          const xmax = 1_000 + begun.length;
          const running = begun.filter(({ endMs }) => endMs > ms).map(xidOf);
          const whole = new Snapshot(running[0] ?? xmax, xmax, running);
          const snapshot = whole.bytes > bytes && running.length > 0 ? cut(whole, bytes) : whole;
          return { snapshot, isWhole: snapshot.equals(whole), atMs: ms };
        };
        const [seen, upTo] = [snapshotAt(Math.min(oneMs, otherMs)), snapshotAt(Math.max(oneMs, otherMs))];
        const rows = own.map(
          (each, n): WalkedRow => ({
            xid: xidOf(each),
            receivedAtMs: each.beginMs,
            late: parts[n]?.isLate === true ? LATE : IN_TIME,
          }),
        );
        const walk = new PointWalk(seen, upTo, Number.NEGATIVE_INFINITY);
        const found: number[] = [];
        for (const row of rows.toReversed()) {
          const next = walk.next(row);
          if (next === 'end') break;
          if (next) found.push(row.xid);
        }
        const wanted = rows.filter(
          ({ xid, late }) => late === IN_TIME && !seen.snapshot.sees(xid) && upTo.snapshot.sees(xid),
        );
        assert.deepEqual(
          found.toReversed(),
          wanted.map(({ xid }) => xid),
        );
      },
    ),
    { numRuns: runs(3_000), endOnFailure: true },
  );
});

/** As Snapshot.within cuts one that has many transactions. */
function cut(whole: Snapshot, bytes: number): Snapshot {
  let short = whole;
  while (short.bytes > bytes && short.running.length > 0) {
    const running = short.running.slice(0, -1);
    const last = short.running.at(-1) as number;
    short = new Snapshot(running[0] ?? last, last, running);
  }
  return short;
}

test('a walk passes over rows that no device has sent, and ends at those that every cursor has seen', () => {
  const at = (xid: number): PointsSeen => ({ snapshot: new Snapshot(xid, xid, []), isWhole: true, atMs: 0 });
  const walk = new PointWalk(at(10), at(20), 5_000);
  const row = { xid: 15, receivedAtMs: 6_000, late: IN_TIME };
  assert.equal(walk.next({ ...row, receivedAtMs: Number.NaN, late: Number.NaN }), false);
  assert.equal(walk.next({ ...row, xid: 21 }), false);
  assert.equal(walk.next({ ...row, late: LATE }), false);
  assert.equal(walk.next(row), true);
  assert.equal(walk.next({ ...row, receivedAtMs: 4_999 }), 'end');
  assert.equal(walk.next({ ...row, xid: 9 }), 'end');
});
