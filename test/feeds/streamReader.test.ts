import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { heaviest, StreamReader } from '../../src/feeds/streams/streamReader.ts';
import type { StreamSink } from '../../src/http/answer.ts';

const MB = 1024 * 1024;
const [ATTACKER, VICTIM] = [1, 2];

/** A stream of an account, with so much written that its reader has not taken. */
function readerWith(accountId: number, pendingBytes: number): StreamReader {
  const sink = { pendingBytes } as StreamSink;
  return new StreamReader(
    { id: accountId, accountId },
    { devices: null, events: null, agedToMs: 0 },
    sink,
    0,
  );
}

const pendingOf = (readers: readonly StreamReader[]): number =>
  readers.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);

describe('streams that nobody reads', () => {
  test('hold 64 MB of an account at most: those with the most are cut, and none of another account', () => {
    const idle = Array.from({ length: 100 }, () => readerWith(ATTACKER, 0));
    const slow = Array.from({ length: 1_000 }, (_, n) => readerWith(ATTACKER, 1_000 * (n + 1)));
    const victim = readerWith(VICTIM, MB);
    const cut = heaviest([...idle, victim, ...slow]);
    const left = slow.filter((reader) => !cut.includes(reader));
    assert.ok(cut.every(({ accountId, pendingBytes }) => accountId === ATTACKER && pendingBytes > 0));
    assert.ok(pendingOf(left) <= 64 * MB && pendingOf(left) > 63 * MB, `${pendingOf(left)} bytes are left`);
    const lightest = Math.min(...cut.map(({ pendingBytes }) => pendingBytes));
    assert.ok(left.every(({ pendingBytes }) => pendingBytes <= lightest));
  });

  test('are left alone below that', () => {
    assert.deepEqual(heaviest(Array.from({ length: 64 }, () => readerWith(ATTACKER, MB))), []);
  });
});
