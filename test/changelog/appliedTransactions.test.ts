import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppliedTransactions, OWN_MAX, Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';

const SERVER = { history: '1/1/1', lineage: 'a', start: 1, walBytes: 0, xmax: 0 };
const WORLDS = new Set([7]);

test('own transactions that are not followed are remembered up to a bound, and again once they are followed', () => {
  const applied = new AppliedTransactions(() => 0);
  applied.advance({ seen: new Snapshot(10, 10, []), server: SERVER });
  let announced = 0;
  applied.onApplied(() => announced++);
  for (let xid = 10; xid < 10 + OWN_MAX + 5; xid++) applied.addOwn(xid, WORLDS);
  assert.equal(applied.own.size, OWN_MAX);
  assert.equal(announced, OWN_MAX + 5, 'the log is to be read');
  const end = 10 + OWN_MAX + 5;
  applied.advance({ seen: new Snapshot(end, end, []), server: SERVER });
  assert.equal(applied.own.size, 0);
  applied.addOwn(end, WORLDS);
  assert.ok(applied.own.has(end));
});
