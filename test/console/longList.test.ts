import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { InOrder } from '../../src/console/page/lists/inOrder.ts';
import { partsOf } from '../../src/console/page/lists/longList.ts';

describe('a long list', () => {
  test('has the rows in sight and the one that Tab leads to, and the height of all', () => {
    const rows = fc.nat(60);
    fc.assert(
      fc.property(rows, rows, rows, rows, (count, from, length, stopAt) => {
        const parts = partsOf(count, { from, to: from + length }, stopAt);
        const shown = parts.flatMap((part) => ('at' in part ? [part.at] : []));
        const wanted = Array.from({ length: count }, (_, at) => at).filter(
          (at) => (at >= from && at < from + length) || at === stopAt,
        );
        assert.deepEqual(shown, wanted);
        let next = 0;
        for (const part of parts) {
          if ('at' in part) assert.equal(part.at, next, 'a row is where it would be in the whole list');
          next += 'at' in part ? 1 : part.rows;
        }
        assert.equal(next, count);
        const gaps = parts.flatMap((part) => ('at' in part ? [] : [part.key]));
        assert.equal(new Set(gaps).size, gaps.length);
      }),
    );
  });

  test('is in its order, whatever comes, goes and moves, and looks at nothing twice', () => {
    const key = fc.record({ id: fc.nat(9), rank: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(fc.array(key)), (rounds) => {
        let compared = 0;
        const order = new InOrder<{ id: number; rank: number }>((a, b) => {
          compared++;
          return a.rank - b.rank || a.id - b.id;
        });
        const all = new Map<number, { id: number; rank: number }>();
        for (const round of rounds) {
          for (const { id, rank } of round) {
            const known = all.get(id);
            if (known === undefined) {
              all.set(id, { id, rank });
              order.add(all.get(id) as { id: number; rank: number });
            } else if (rank > 6) {
              all.delete(id);
              order.remove(known);
            } else {
              known.rank = rank;
              order.move(known);
            }
          }
          const sorted = order.sorted(all.values());
          assert.deepEqual(
            sorted,
            [...all.values()].sort((a, b) => a.rank - b.rank || a.id - b.id),
          );
          compared = 0;
          assert.equal(order.sorted(all.values()), sorted);
          assert.equal(compared, 0);
        }
      }),
    );
  });

  test('sorts anew what has changed more than it is long, and holds no more than that', () => {
    const order = new InOrder<number>((a, b) => a - b);
    assert.deepEqual(order.sorted([2, 1]), [1, 2]);
    for (let n = 0; n < 5_000; n++) order.remove(n);
    assert.deepEqual(order.sorted([3, 9]), [3, 9]);
  });
});
