import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';
import type { ServerState } from '../../src/changelog/serverStarts.ts';
import type { EventsRead } from '../../src/feeds/cursors.ts';
import type { FeedPorts } from '../../src/feeds/longPolls.ts';
import { StreamGroup } from '../../src/feeds/streams/streamGroup.ts';
import { busyOfLate, restMs } from '../../src/feeds/streams/streams.ts';

const ALL = { devices: true, events: true, aged: true };
const [HERE, LATER] = [new Snapshot(10, 12, [10, 11]), new Snapshot(10, 12, [10])];

for (const { what, read, upTo, queries } of [
  { what: 'where it already is', read: at(HERE), upTo: HERE, queries: 0 },
  { what: 'behind a transaction that has ended since', read: at(HERE), upTo: LATER, queries: 1 },
  {
    what: 'in the middle of a page',
    read: { ...at(HERE), open: { upTo: HERE, after: { xid: 9, id: 4 } } },
    upTo: HERE,
    queries: 1,
  },
]) {
  test(`bringing a reader ${what} asks Postgres ${queries} times`, async () => {
    const { group, asked } = groupOf(upTo);
    for await (const piece of group.pieces({ devices: null, events: read, agedToMs: 0 }, upTo, ALL))
      assert.fail(`${piece}`);
    assert.equal(asked.length, queries);
  });
}

test('a group that does not come first reads its devices in its turn', async () => {
  const { group, turned } = groupOf(LATER);
  const read = { seen: HERE, listedTo: null, open: null, also: [] };
  for (const [atOnce, turns] of [
    [true, 0],
    [false, 1],
  ] as const) {
    turned.length = 0;
    for await (const piece of group.pieces({ devices: read, events: null, agedToMs: 0 }, LATER, ALL, {
      atOnce,
    }))
      assert.fail(`${piece}`);
    assert.equal(turned.length, turns);
  }
});

test('a group rests for a quarter of the time that it was served, eleven times as long where the pod is busy, 0.6 s at most', () => {
  for (const busy of [0, 0.1, 0.2]) assert.equal(restMs(40, busy), 10);
  assert.ok(Math.abs(restMs(40, 0.45) - 225) < 1e-9);
  for (const busy of [0.7, 1]) assert.equal(restMs(40, busy), 440);
  assert.equal(restMs(600, 1), 600);
});

test('a busy moment does not make a pod a busy one, and half a second does', () => {
  assert.equal(busyOfLate(0, { active: 0, idle: 0 }), 0);
  assert.ok(busyOfLate(0.1, { active: 15, idle: 0 }) < 0.15);
  assert.ok(busyOfLate(0.1, { active: 450, idle: 50 }) > 0.6);
  assert.ok(busyOfLate(0.9, { active: 50, idle: 450 }) < 0.35);
});

function at(seen: Snapshot): EventsRead {
  return { seen, open: null, fromMs: null };
}

/** A group of events whose account has none. */
function groupOf(upTo: Snapshot): { group: StreamGroup; asked: unknown[]; turned: unknown[] } {
  const server = { history: { systemId: '1', timelines: [] }, walBytes: 0 } as unknown as ServerState;
  const asked: unknown[] = [];
  const turned: unknown[] = [];
  const ports = {
    follower: { applied: { server, followed: upTo } },
    clock: () => 0,
    turns: {
      run: async () => '',
      once: async (accountId: number, work: () => unknown) => {
        turned.push(accountId);
        return work();
      },
    },
    fleet: { changed: () => [], removalHorizonXid: () => 0 },
    cursors: { seal: () => '' },
    reader: {
      next: async (_caller: unknown, cursor: unknown) => {
        asked.push(cursor);
        return { events: [], read: at(upTo), hasMore: false, server };
      },
    },
  } as unknown as FeedPorts;
  const group = new StreamGroup(
    ports,
    '',
    { accountId: 1, worldIds: [1] },
    { devices: null, events: at(upTo), agedToMs: 0 },
  );
  return { group, asked, turned };
}
