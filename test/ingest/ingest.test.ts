import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { deleteDeviceRows } from '../../src/devices/devices.sql.ts';
import { type DeviceState, NO_STATE, stepDevice, stepRepeat } from '../../src/ingest/deviceEvents.ts';
import type { Fix, FixOutcome } from '../../src/ingest/fix.ts';
import { IngestOverload } from '../../src/ingest/ingest.ts';
import { DeadlineExceeded, WEEK_MS, weekStartMs } from '../../src/lib/time.ts';
import { POSITIONS, partitionName } from '../../src/postgres/partitions.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { type IngestSide, ingestBench } from '../support/ingest/ingestBench.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { countLockWaiters, holdTransaction } from '../support/postgres/holdTransaction.ts';
import { waitFor } from '../support/waitFor.ts';

const NOW_MS = Date.now();
const count = (outcomes: readonly FixOutcome[], outcome: FixOutcome): number =>
  outcomes.filter((one) => one === outcome).length;

/** What Postgres holds of a device's points, oldest first, as "time latitude". */
const historyOf = async ({ sql }: IngestSide, imei: string): Promise<string[]> => {
  const rows = await sql<{ recorded_at: Date; latitude: number }[]>`
    select p.recorded_at, p.latitude from position p join device d on d.id = p.device_id
    where d.imei = ${imei} order by p.recorded_at`;
  return rows.map((row) => `${row.recorded_at.getTime()} ${row.latitude}`);
};
const feedRows = async ({ sql }: IngestSide): Promise<number> => {
  const [row] = await sql<{ rows: number }[]>`
    select count(*)::int as rows from change where kind = 'positions'`;
  return row?.rows ?? 0;
};
const eventsOf = async ({ sql }: IngestSide): Promise<string[]> => {
  const rows = await sql<{ type: string; occurred_at: Date }[]>`
    select type, occurred_at from fleet_event order by id`;
  return rows.map((row) => `${row.type} ${row.occurred_at.getTime()}`);
};

const lockDevice = ({ sql }: IngestSide, imei: string) =>
  holdTransaction(
    sql,
    (tx) =>
      tx`select from device_state where device_id = (select id from device where imei = ${imei}) for update`,
  );

describe('group commit', () => {
  test('200 requests at once are all stored, each with its own outcome, in at most ten transactions', async (t) => {
    const { imeis, sides } = await ingestBench(t, { devices: 200 });
    const [side] = sides as [IngestSide];
    const before = await feedRows(side);
    const replies = await Promise.all(imeis.map((imei, n) => side.ingest.store([fixOf(imei, NOW_MS + n)])));
    assert.deepEqual(
      replies,
      imeis.map(() => ['accepted']),
    );
    const transactions = (await feedRows(side)) - before;
    assert.ok(transactions <= 10, `${transactions} transactions`);
    for (const imei of imeis) assert.equal((await historyOf(side, imei)).length, 1);
    assert.equal(side.ingest.waitingPoints, 0);
    assert.equal(count(side.outcomes, 'accepted'), 200);
  });

  test('requests for one device never overtake each other, so none of their points is late', async (t) => {
    const { imeis, sides } = await ingestBench(t);
    const [side] = sides as [IngestSide];
    const [imei] = imeis as [string];
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, n) => side.ingest.store([fixOf(imei, NOW_MS + n, { lat: n / 10 })])),
    );
    assert.deepEqual(
      replies,
      replies.map(() => ['accepted']),
    );
    assert.equal(side.fleet.anyDevice(imei)?.position?.lat, 19.9);
  });

  test('of equal points in two requests the first is stored', async (t) => {
    const { imeis, sides } = await ingestBench(t);
    const [side] = sides as [IngestSide];
    const [imei] = imeis as [string];
    const same = Array.from({ length: 20 }, (_, n) => side.ingest.store([fixOf(imei, NOW_MS, { lat: n })]));
    const outcomes = (await Promise.all(same)).flat();
    assert.deepEqual(
      outcomes,
      outcomes.map((_, n) => (n === 0 ? 'accepted' : 'duplicate')),
    );
    assert.deepEqual(await historyOf(side, imei), [`${NOW_MS} 0`]);
  });

  test('a request that the database rejects does not fail the others of its transaction', async (t) => {
    const { imeis, sides } = await ingestBench(t, { devices: 60 });
    const [side] = sides as [IngestSide];
    const poisoned = new Set([10, 11, 40]);
    const replies = await Promise.allSettled(
      imeis.map((imei, n) =>
        // No parser lets a NUL through; Postgres takes none in text.
        side.ingest.store([fixOf(imei, NOW_MS, poisoned.has(n) ? { rfid: 'nul\u0000' } : { rfid: 'fine' })]),
      ),
    );
    replies.forEach((reply, n) => {
      if (poisoned.has(n)) assert.equal(reply.status, 'rejected', `request ${n}`);
      else assert.deepEqual(reply, { status: 'fulfilled', value: ['accepted'] }, `request ${n}`);
    });
    for (const [n, imei] of imeis.entries()) {
      assert.equal((await historyOf(side, imei)).length, poisoned.has(n) ? 0 : 1);
      assert.equal(side.fleet.anyDevice(imei)?.position === null, poisoned.has(n));
    }
    assert.equal((await eventsOf(side)).length, 57);
    const after = await side.ingest.store([fixOf(imeis[10] as string, NOW_MS)]);
    assert.deepEqual(after, ['accepted']);
  });

  test('when too many points of one world wait, more are rejected at once; other worlds have room, and all that waits is stored', async (t) => {
    const { imeis, sides, databaseUrl } = await ingestBench(t);
    const [side] = sides as [IngestSide];
    const [imei] = imeis as [string];
    const victim = '350000000009999';
    const admin = adminOf(databaseUrl);
    await admin.account('victim@example.com');
    await admin.device('victim@example.com', victim);
    for (const each of [imei, victim]) await side.ingest.store([fixOf(each, NOW_MS)]);
    const batch = Array.from({ length: 10_000 }, () => fixOf(imei, NOW_MS));
    const release = await lockDevice(side, imei);
    const waiting = Array.from({ length: 10 }, () => side.ingest.store(batch));
    assert.equal(side.ingest.waitingPoints, 90_000, 'one of them is in a transaction');
    await waitFor(() => side.ingest.waitingPoints === 100_000);
    await assert.rejects(side.ingest.store([fixOf(imei, NOW_MS)]), IngestOverload);
    assert.deepEqual(await side.ingest.store([fixOf(victim, NOW_MS + 1)]), ['accepted']);
    await release();
    const outcomes = (await Promise.all(waiting)).flat();
    assert.equal(count(outcomes, 'duplicate'), 100_000);
    assert.deepEqual(await side.ingest.store([fixOf(imei, NOW_MS + 1)]), ['accepted']);
    assert.equal(side.ingest.waitingPoints, 0);
  });
});

describe('the answer', () => {
  test('comes after the commit; before that neither memory nor another pod has the point', async (t) => {
    const { imeis, sides } = await ingestBench(t, { pods: 2 });
    const [side, other] = sides as [IngestSide, IngestSide];
    const [imei] = imeis as [string];
    const release = await holdTransaction(other.sql, (tx) => tx`lock table change in share mode`);
    let answered = false;
    const storing = side.ingest.store([fixOf(imei, NOW_MS)]).finally(() => {
      answered = true;
    });
    await waitFor(async () => (await countLockWaiters(other.sql)) === 1);
    assert.equal(answered, false);
    assert.equal(side.fleet.anyDevice(imei)?.position, null);
    assert.deepEqual(await historyOf(other, imei), []);
    await release();
    assert.deepEqual(await storing, ['accepted']);
    assert.deepEqual(await historyOf(other, imei), [`${NOW_MS} 41.9`]);
  });
});

describe('a device that is locked elsewhere', () => {
  test('delays no other device, not even of the same request; its own points are stored afterwards, in their order', async (t) => {
    const { imeis, sides } = await ingestBench(t, { devices: 50, pods: 2 });
    const [side, other] = sides as [IngestSide, IngestSide];
    const [locked = '', ...others] = imeis;
    const release = await lockDevice(other, locked);
    const answered: string[] = [];
    const store = async (name: string, fixes: readonly Fix[]) => {
      const outcomes = await side.ingest.store(fixes);
      answered.push(name);
      return outcomes;
    };
    const mixed = store('mixed', [...others.map((imei) => fixOf(imei, NOW_MS)), fixOf(locked, NOW_MS)]);
    const later = Array.from({ length: 5 }, (_, n) => store(`later ${n}`, [fixOf(locked, NOW_MS + 1 + n)]));
    // More than there are transactions, one after the other, and what the mixed request has stored already.
    for (let n = 1; n <= 8; n++) {
      const fixes = others.map((imei) => fixOf(imei, NOW_MS + n));
      assert.deepEqual(
        await store('others', fixes),
        fixes.map(() => 'accepted'),
      );
    }
    for (const imei of others) assert.equal((await historyOf(other, imei)).length, 9);
    assert.ok(answered.every((name) => name === 'others'));
    assert.deepEqual(await historyOf(other, locked), []);
    await release();
    assert.deepEqual(
      await mixed,
      imeis.map(() => 'accepted'),
    );
    for (const reply of later) assert.deepEqual(await reply, ['accepted']);
    assert.deepEqual(
      answered.filter((name) => name !== 'others'),
      ['mixed', 'later 0', 'later 1', 'later 2', 'later 3', 'later 4'],
    );
    assert.equal(side.ingest.waitingPoints, 0);
  });

  test('is given up after 15 seconds, and its points can be sent again', async (t) => {
    const { imeis, sides } = await ingestBench(t, { pods: 2 });
    const [side, other] = sides as [IngestSide, IngestSide];
    const [imei = ''] = imeis;
    const release = await lockDevice(other, imei);
    const startMs = performance.now();
    const later = t.mock.method(performance, 'now', () => startMs);
    const storing = assert.rejects(side.ingest.store([fixOf(imei, NOW_MS)]), DeadlineExceeded);
    later.mock.mockImplementation(() => startMs + 15_001);
    await storing;
    later.mock.restore();
    await release();
    assert.deepEqual(await side.ingest.store([fixOf(imei, NOW_MS)]), ['accepted']);
    assert.equal(side.ingest.waitingPoints, 0);
  });
});

describe('devices', () => {
  test('one that is deleted while its points wait for its lock is unknown then, whether memory knows of it or not', async (t) => {
    const { imeis, sides } = await ingestBench(t, { devices: 3, pods: 2 });
    const [side, other] = sides as [IngestSide, IngestSide];
    const [kept, known, forgotten] = imeis as [string, string, string];
    await side.ingest.store(imeis.map((imei) => fixOf(imei, NOW_MS)));
    const ids = [known, forgotten].map((imei) => side.fleet.idOf(imei) as number);
    const release = await holdTransaction(other.sql, async (tx) => {
      for (const id of ids) await deleteDeviceRows(tx, id);
    });
    const stored = side.ingest.store(imeis.map((imei) => fixOf(imei, NOW_MS + 1)));
    await waitFor(() => side.fleet.anyDevice(kept)?.position?.recordedAtMs === NOW_MS + 1);
    const { worldId } = side.fleet.anyDevice(forgotten)?.fields ?? assert.fail();
    await release();
    const removal = { deviceId: ids[1] as number, imei: forgotten, xid: 0, atMs: NOW_MS };
    side.fleet.putRemoval(worldId, removal, true);
    assert.deepEqual(await stored, ['accepted', 'unknown_device', 'unknown_device']);
    assert.equal(side.ingest.waitingPoints, 0);
  });

  test('one that was created a moment ago is found; one that does not exist is unknown, in the order of the points', async (t) => {
    const { imeis, sides } = await ingestBench(t, { devices: 2 });
    const [side] = sides as [IngestSide];
    const [a, b] = imeis as [string, string];
    assert.equal(side.fleet.anyDevice(a), undefined);
    const unknown = '350000000009999';
    const outcomes = await side.ingest.store([
      fixOf(unknown, NOW_MS),
      fixOf(a, NOW_MS),
      fixOf(unknown, NOW_MS + 1),
      fixOf(b, NOW_MS),
    ]);
    assert.deepEqual(outcomes, ['unknown_device', 'accepted', 'unknown_device', 'accepted']);
    assert.equal(side.fleet.anyDevice(a)?.position?.recordedAtMs, NOW_MS);
  });

  test('a pod without the latest state of a device in memory evaluates points against the state in Postgres', async (t) => {
    const { imeis, sides } = await ingestBench(t, { pods: 2 });
    const [one, other] = sides as [IngestSide, IngestSide];
    const [imei] = imeis as [string];
    await one.ingest.store([fixOf(imei, NOW_MS, { rfid: 'card', ignition: true })]);
    assert.deepEqual(await other.ingest.store([fixOf(imei, NOW_MS - 1, { rfid: 'late' })]), ['late']);
    assert.equal(other.fleet.anyDevice(imei)?.position?.recordedAtMs, NOW_MS);
    await other.ingest.store([fixOf(imei, NOW_MS + 1, { rfid: 'card', ignition: false })]);
    assert.deepEqual(await eventsOf(one), [`rfid ${NOW_MS}`, `ignition_off ${NOW_MS + 1}`]);
  });
});

describe('two pods', () => {
  test('store the same points sent to both at once, and their events, only once', async (t) => {
    const { imeis, sides } = await ingestBench(t, { devices: 5, pods: 2 });
    const [first] = sides as [IngestSide, IngestSide];
    const trace = Array.from({ length: 60 }, (_, n) =>
      imeis.map((imei) => fixOf(imei, NOW_MS + n * 1_000, { ignition: n % 2 === 0 })),
    );
    const outcomes: FixOutcome[] = [];
    for (let at = 0; at < trace.length; at += 6) {
      // Both get the same batches, each in its own order.
      const batches = trace.slice(at, at + 6);
      const sent = sides.map(({ ingest }, pod) => {
        const order = pod === 0 ? batches : batches.toReversed();
        return Promise.all(order.map((batch) => ingest.store(pod === 0 ? batch : batch.toReversed())));
      });
      outcomes.push(...(await Promise.all(sent)).flat(2));
    }
    const fresh = count(outcomes, 'accepted') + count(outcomes, 'late');
    assert.equal(fresh, 300);
    assert.equal(count(outcomes, 'duplicate'), 300);
    for (const imei of imeis) {
      assert.deepEqual(
        await historyOf(first, imei),
        trace.map((_, n) => `${NOW_MS + n * 1_000} 41.9`),
      );
      for (const { fleet } of sides) {
        assert.ok((fleet.anyDevice(imei)?.position?.recordedAtMs ?? 0) >= NOW_MS);
      }
    }
    // However the pods took turns, one of them evaluated the last point of each device, and nobody did so twice.
    const [events] = await first.sql<{ all: number; different: number }[]>`
      select count(*)::int as all, count(distinct (device_id, type, occurred_at))::int as different from fleet_event`;
    assert.equal(events?.all, events?.different);
  });
});

describe('any trace cut into any batches', () => {
  /** A trace of one device over a few seconds, sent in any order, with repeats, in batches of any size. */
  const batches = fc.array(
    fc.array(
      fc.record({
        second: fc.integer({ min: 0, max: 40 }),
        lat: fc.integer({ min: 1, max: 80 }),
        ignition: fc.constantFrom(null, true, false),
        rfid: fc.constantFrom(null, null, 'a', 'b'),
      }),
      { maxLength: 12, size: 'max' },
    ),
    { minLength: 1, maxLength: 8, size: 'max' },
  );

  /** Naive: a map of what is stored, the batches one after the other, each sorted by time. */
  function replay(fixes: readonly (readonly Fix[])[]) {
    const stored = new Map<number, number>();
    const events: string[] = [];
    const outcomes: FixOutcome[][] = [];
    let state: DeviceState = NO_STATE;
    for (const batch of fixes) {
      const ofBatch = new Map<Fix, FixOutcome>();
      for (const fix of batch.toSorted((a, b) => a.recordedAtMs - b.recordedAtMs)) {
        if (stored.has(fix.recordedAtMs)) {
          ofBatch.set(fix, 'duplicate');
          if (fix.recordedAtMs !== state.recordedAtMs) continue;
          const repeat = stepRepeat(state, fix);
          state = repeat.state;
          for (const { type } of repeat.events) events.push(`${type} ${fix.recordedAtMs}`);
          continue;
        }
        stored.set(fix.recordedAtMs, fix.lat);
        const isLate = state.recordedAtMs !== null && fix.recordedAtMs < state.recordedAtMs;
        ofBatch.set(fix, isLate ? 'late' : 'accepted');
        if (isLate) continue;
        const step = stepDevice(state, fix);
        state = step.state;
        for (const { type } of step.events) events.push(`${type} ${fix.recordedAtMs}`);
      }
      outcomes.push(batch.map((fix) => ofBatch.get(fix) as FixOutcome));
    }
    const history = [...stored].sort(([a], [b]) => a - b).map(([ms, lat]) => `${ms} ${lat}`);
    return { history, events, outcomes, state };
  }

  test('has the outcomes, history, events and latest position of a naive replay', async (t) => {
    const { imeis, sides } = await ingestBench(t, { devices: 30 });
    const [side] = sides as [IngestSide];
    let used = 0;
    await fc.assert(
      fc.asyncProperty(batches, async (drawn) => {
        const imei = imeis[used++] as string;
        const fixes = drawn.map((batch) =>
          batch.map(({ second, ...values }) => fixOf(imei, NOW_MS + second * 1_000, values)),
        );
        await side.sql`delete from fleet_event`;
        const outcomes: FixOutcome[][] = [];
        for (const batch of fixes) outcomes.push(await side.ingest.store(batch));
        const expected = replay(fixes);
        assert.deepEqual(outcomes, expected.outcomes);
        assert.deepEqual(await historyOf(side, imei), expected.history);
        assert.deepEqual(await eventsOf(side), expected.events);
        const position = side.fleet.anyDevice(imei)?.position ?? null;
        assert.equal(position?.recordedAtMs ?? null, expected.state.recordedAtMs);
        if (position !== null) assert.equal(position.lat, expected.state.lat);
      }),
      { seed: 2, numRuns: 30, endOnFailure: true },
    );
  });
});

test('a week that a restored server lacks gets its partition again', async (t) => {
  const { imeis, sides } = await ingestBench(t);
  const [{ ingest, sql, follower }] = sides as [IngestSide];
  const [imei] = imeis as [string];
  const oldMs = NOW_MS - 5 * WEEK_MS;
  assert.deepEqual(await ingest.store([fixOf(imei, oldMs)]), ['accepted']);
  await sql.unsafe(`drop table ${partitionName(POSITIONS, weekStartMs(oldMs))}`);
  const { seen, server } = follower.applied.writes;
  follower.applied.advance({ seen, server: { ...server, start: server.start + 1 } });
  assert.deepEqual(await ingest.store([fixOf(imei, oldMs + 1)]), ['accepted']);
});

describe('a large batch', () => {
  test('moves a few devices in each turn of the event loop, and is answered when all have moved', async (t) => {
    const { imeis, sides } = await ingestBench(t, { devices: 2_000 });
    const [{ fleet, ingest }] = sides as [IngestSide];
    await ingest.store([fixOf(imeis[0] as string, NOW_MS)]);
    const move = fleet.move.bind(fleet);
    let inTurn = 0;
    let most = 0;
    fleet.move = (deviceId, position) => {
      most = Math.max(most, ++inTurn);
      // As if a device took so long that a step is more than the work of a turn.
      const endMs = performance.now() + 0.02;
      while (performance.now() < endMs);
      return move(deviceId, position);
    };
    let isAnswered = false;
    const stored = ingest.store(imeis.map((imei) => fixOf(imei, NOW_MS + 1))).finally(() => {
      isAnswered = true;
    });
    while (!isAnswered) {
      await new Promise((resolve) => setImmediate(resolve));
      inTurn = 0;
    }
    assert.equal(count(await stored, 'accepted'), imeis.length);
    for (const imei of imeis) assert.equal(fleet.anyDevice(imei)?.position?.recordedAtMs, NOW_MS + 1);
    assert.ok(most <= 600, `${most} devices in a turn`);
  });
});
