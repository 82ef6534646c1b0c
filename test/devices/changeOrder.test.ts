import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ChangeOrder } from '../../src/devices/changeOrder.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { SlotColumns } from '../support/slotColumns.ts';

interface Entry {
  readonly id: number;
  readonly moved: number;
  readonly edited: number;
}

/** All entries in a list that is searched and sorted for every question. */
class NaiveOrder {
  readonly entries = new Map<number, Entry>();

  page(
    fromXid: number,
    after: { xid: number; id: number } | null,
    limit: number,
    unseen: ReadonlySet<number>,
  ) {
    return [...this.entries]
      .map(([slot, { id, moved, edited }]) => ({ slot, xid: Math.max(moved, edited), id, moved, edited }))
      .filter(({ moved, edited, xid }) => xid >= fromXid && (unseen.has(moved) || unseen.has(edited)))
      .filter(({ xid, id }) => after === null || xid > after.xid || (xid === after.xid && id > after.id))
      .sort((a, b) => a.xid - b.xid || a.id - b.id)
      .slice(0, limit + 1)
      .map(({ slot, xid, id, moved, edited }) => ({ slot, xid, id, movedXid: moved, editedXid: edited }));
  }
}

const SLOTS = 3_000;

describe('the order of changes', () => {
  const step = fc.record({
    kind: fc.constantFrom('move', 'move', 'move', 'edit', 'remove', 'sort', 'many'),
    slot: fc.nat(SLOTS - 1),
    xid: fc.nat(200),
  });

  test('gives the pages that a sorted list of everything would give', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 120 }),
        fc.array(
          fc.record({
            from: fc.nat(200),
            after: fc.option(fc.record({ xid: fc.nat(200), id: fc.nat(SLOTS) })),
            limit: fc.integer({ min: 1, max: 600 }),
            unseen: fc.array(fc.nat(200), { maxLength: 60 }),
          }),
          { maxLength: 5 },
        ),
        (steps, pages) => {
          const order = new ChangeOrder(new SlotColumns(SLOTS, { idOf: (slot) => SLOTS - slot }));
          const naive = new NaiveOrder();
          const put = (slot: number, moved: number, edited: number) => {
            order.put(slot, moved, edited);
            naive.entries.set(slot, { id: SLOTS - slot, moved, edited });
          };
          for (const { kind, slot, xid } of steps) {
            const present = naive.entries.get(slot);
            if (kind === 'move') put(slot, xid, present?.edited ?? 0);
            else if (kind === 'edit') put(slot, present?.moved ?? 0, xid);
            else if (kind === 'many')
              for (let n = 0; n < SLOTS; n += 1 + (slot % 3)) put(n, xid + (n % 7), 0);
            else if (kind === 'sort') inOneGo(order.fill([]));
            else {
              order.remove(slot);
              naive.entries.delete(slot);
            }
          }
          assert.equal(order.size, naive.entries.size);
          for (const { from, after, limit, unseen } of pages) {
            const wanted = new Set(unseen);
            const isWanted = (moved: number, edited: number) => wanted.has(moved) || wanted.has(edited);
            const query = { fromXid: from, after, limit, isWanted };
            assert.deepEqual(order.page(query), naive.page(from, after, limit, wanted));
          }
        },
      ),
      { numRuns: 60, seed: 15 },
    );
  });

  test('keeps few segments where slots come to rest one by one among many that go on', () => {
    const order = new ChangeOrder(new SlotColumns(20_000));
    let xid = 0;
    for (let slot = 0; slot < 20_000; slot++) order.put(slot, ++xid, 0);
    for (let resting = 0; resting < 2_000; resting++) {
      order.put(resting, ++xid, 0);
      for (let n = 0; n < 200; n++) {
        const slot = 2_000 + ((resting * 200 + n) % 18_000);
        order.put(slot, ++xid, 0);
      }
    }
    assert.equal(order.size, 20_000);
    assert.ok(order.segmentCount <= (2 * 20_000) / 128 + 2, `${order.segmentCount} segments`);
  });

  test('a page of what changed last does not look at what did not', () => {
    const order = new ChangeOrder(new SlotColumns(100_000));
    for (let slot = 0; slot < 100_000; slot++) order.put(slot, 1 + Math.floor(slot / 100), 0);
    let looked = 0;
    const isWanted = () => ++looked > 0;
    const page = order.page({ fromXid: 991, after: null, limit: 100, isWanted });
    assert.equal(page.length, 101);
    assert.ok(looked <= 2_000, `${looked} looked at`);
  });

  test('finds every change also where transactions are more than four billion apart', () => {
    const changes = fc.array(
      fc.record({ slot: fc.nat(40), xid: fc.integer({ min: 1, max: 2 ** 36 }), isEdit: fc.boolean() }),
      { minLength: 1, maxLength: 80 },
    );
    fc.assert(
      fc.property(changes, fc.nat(79), (steps, seenCount) => {
        const order = new ChangeOrder(new SlotColumns(41));
        const naive = new Map<number, { moved: number; edited: number }>();
        // A database hands out transactions in order; those of a load come in any.
        const loaded = steps.slice(0, seenCount);
        const later = steps.slice(seenCount).toSorted((a, b) => a.xid - b.xid);
        for (const { slot, xid, isEdit } of [...loaded, ...later]) {
          const { moved, edited } = naive.get(slot) ?? { moved: 0, edited: 0 };
          naive.set(slot, isEdit ? { moved, edited: xid } : { moved: xid, edited });
          if (isEdit) order.put(slot, moved, xid);
          else order.put(slot, xid, edited);
        }
        const newest = Math.max(...steps.map(({ xid }) => xid));
        for (const fromXid of [0, newest - 2 ** 33, newest - 2 ** 31, newest - 1_000, newest]) {
          const isWanted = (moved: number, edited: number) => moved >= fromXid || edited >= fromXid;
          const found = new Set(
            order.page({ fromXid, after: null, limit: 100, isWanted }).map(({ slot }) => slot),
          );
          for (const [slot, { moved, edited }] of naive) {
            if (Math.max(moved, edited) >= fromXid) assert.ok(found.has(slot), `${slot} since ${fromXid}`);
            else if (fromXid > newest - 2 ** 31)
              assert.ok(!found.has(slot), `${slot} is older than ${fromXid}`);
          }
        }
      }),
      { numRuns: 300, seed: 32 },
    );
  });
});
