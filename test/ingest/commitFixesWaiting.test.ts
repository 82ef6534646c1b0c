import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { AppliedTransactions } from '../../src/changelog/appliedTransactions.memory.ts';
import { recordChange } from '../../src/changelog/changes.sql.ts';
import { selectLogEnd } from '../../src/changelog/database.sql.ts';
import type { FixOutcome } from '../../src/ingest/fix.ts';
import { Ingest } from '../../src/ingest/ingest.ts';
import { weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import { isUnavailable } from '../../src/postgres/sqlErrors.ts';
import { localNotifier } from '../../src/redis/wakeUps.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { type IngestSide, ingestBench } from '../support/ingest/ingestBench.ts';
import { commitPoints } from './commitPoints.ts';

const NOW_MS = Date.now();

type Kind = Parameters<typeof recordChange>[1]['kind'];

interface Setup {
  readonly side: IngestSide;
  readonly imeis: readonly [string, string];
  /** The world of the first device, of its organization, and of somebody else, who has the second device. */
  readonly own: number;
  readonly organization: number;
  readonly stranger: number;
  /** A write that this pod has not followed. */
  change(kind: Kind, worldId: number): Promise<unknown>;
  /** Stores one more point of the first device, or says that memory must follow first. */
  store(): Promise<FixOutcome | 'awaiting memory'>;
  /** Follows the feed. */
  follow(): Promise<void>;
  /** An ingesting side whose memory follows by this; `waits` counts how often it was asked to. */
  ingestWith(catchUp: () => Promise<void>): Ingest;
}

async function setUp(t: TestContext): Promise<Setup> {
  const { imeis, sides } = await ingestBench(t, { devices: 2 });
  const [side] = sides as [IngestSide];
  const { sql, memory } = side;
  await ensureWeeks(sql, POSITIONS, [weekStartMs(NOW_MS)]);
  const [device] = await sql<{ id: number; world_id: number }[]>`
    select id, world_id from device where imei = ${imeis[0] as string}`;
  assert.ok(device);
  const worlds = await sql<{ id: number }[]>`insert into world (version) values (1), (1) returning id`;
  const [organization, stranger] = worlds.map(({ id }) => id) as [number, number];
  await sql`update device set world_id = ${stranger} where imei = ${imeis[1] as string}`;
  memory.tenancy.putAccount(1, device.world_id, organization);
  let points = 0;
  const applied = new AppliedTransactions(Date.now);
  applied.advance(await sql.begin(selectLogEnd));
  const followerWith = (catchUp: () => Promise<void>) => ({ applied, catchUp });
  return {
    side,
    imeis: imeis as readonly string[] as [string, string],
    own: device.world_id,
    organization,
    stranger,
    change: (kind, worldId) => sql.begin((tx) => recordChange(tx, { kind, worldId, entityIds: [1] })),
    store: async () => {
      const point = { deviceId: device.id, fix: fixOf(imeis[0] as string, NOW_MS + points++) };
      const follower = followerWith(() => assert.fail('nobody waits with devices locked'));
      const { outcomes, awaitingMemory } = await commitPoints({ ...side, follower }, [point], NOW_MS);
      if (!awaitingMemory.has(device.id)) return outcomes[0] as FixOutcome;
      assert.equal(outcomes[0], null);
      return 'awaiting memory';
    },
    follow: async () => {
      applied.advance(await sql.begin(selectLogEnd));
    },
    ingestWith: (catchUp) =>
      new Ingest({
        ...side,
        follower: followerWith(catchUp),
        clock: Date.now,
        onQueued: () => undefined,
        onOutboxFilled: () => undefined,
        notifier: localNotifier,
        onOutcomes: () => undefined,
      }),
  };
}

describe('a point is evaluated', () => {
  test('without waiting for changes that do not concern it: devices, keys, and what strangers do', async (t) => {
    const { own, stranger, change, store } = await setUp(t);
    assert.equal(await store(), 'accepted');
    await change('device', own);
    await change('key', own);
    await change('device', stranger);
    await change('area', stranger);
    await change('webhook', stranger);
    assert.equal(await store(), 'accepted');
  });

  test('after memory has followed the changes of areas and endpoints in the worlds that watch it', async (t) => {
    const { own, organization, stranger, change, store, follow } = await setUp(t);
    const relevant: [Kind, number][] = [
      ['area', own],
      ['webhook', own],
      ['area', organization],
      ['webhook', organization],
      // Somebody may have joined the organization.
      ['account', stranger],
    ];
    for (const [kind, worldId] of relevant) {
      await change(kind, worldId);
      assert.equal(await store(), 'awaiting memory', `${kind} of ${worldId}`);
      await follow();
      assert.equal(await store(), 'accepted');
    }
  });

  test('after memory has followed the feed, when changes may have been pruned', async (t) => {
    const { side, store, follow } = await setUp(t);
    await side.sql`update change_horizon set xid = pg_current_xact_id()`;
    assert.equal(await store(), 'awaiting memory');
    await follow();
    assert.equal(await store(), 'accepted');
  });

  test('not at all when the server is another one now, where its id may belong to another device', async (t) => {
    const { side, imeis } = await setUp(t);
    const [device] = await side.sql<{ id: number }[]>`select id from device`;
    let reads = 0;
    const { writes } = side.follower.applied;
    const lost = new AppliedTransactions(Date.now);
    lost.advance({ ...writes, server: { ...writes.server, history: 'lost/1' } });
    const follower = {
      ...side.follower,
      // Memory was loaded anew while the point waited for its device.
      get applied() {
        return reads++ === 0 ? lost : side.follower.applied;
      },
    };
    const point = { deviceId: device?.id ?? 0, fix: fixOf(imeis[0], NOW_MS) };
    await assert.rejects(commitPoints({ ...side, follower }, [point], NOW_MS), isUnavailable);
    assert.deepEqual([...(await side.sql`select 1 from position`)], []);
  });
});

describe('points that wait for the feed', () => {
  test('delay no points of other devices, not even of their own transaction, and are stored in order once memory has followed', async (t) => {
    const { side, imeis, own, change, follow, ingestWith } = await setUp(t);
    const asked = Promise.withResolvers<void>();
    const followed = Promise.withResolvers<void>();
    const ingest = ingestWith(async () => {
      asked.resolve();
      await followed.promise;
      await follow();
    });
    await change('area', own);
    const [waiting, other] = imeis;
    let isStored = false;
    const first = ingest.store([fixOf(waiting, NOW_MS)]).finally(() => {
      isStored = true;
    });
    // More than there are transactions at once.
    const rest = Array.from({ length: 6 }, (_, n) => ingest.store([fixOf(waiting, NOW_MS + 1 + n)]));
    await asked.promise;
    for (let n = 0; n < 5; n++)
      assert.deepEqual(await ingest.store([fixOf(other, NOW_MS + n)]), ['accepted']);
    const free = await side.sql.begin((tx) => tx`select 1 from device_state for update skip locked`);
    assert.equal(free.length, 2);
    assert.equal(isStored, false);
    followed.resolve();
    assert.deepEqual(await first, ['accepted']);
    assert.deepEqual(
      (await Promise.all(rest)).flat(),
      Array(6).fill('accepted'),
      'in their order: none is late',
    );
  });

  test('are stored in the end, even if their areas change again while memory follows', async (t) => {
    const { imeis, own, change, follow, ingestWith } = await setUp(t);
    let rounds = 0;
    const ingest = ingestWith(async () => {
      await follow();
      if (++rounds < 4) await change('area', own);
    });
    await change('area', own);
    assert.deepEqual(await ingest.store([fixOf(imeis[0], NOW_MS)]), ['accepted']);
    assert.equal(rounds, 4);
  });

  test('are rejected when memory cannot follow, and can be sent again', async (t) => {
    const { imeis, own, change, ingestWith } = await setUp(t);
    const reason = new Error('lost');
    const ingest = ingestWith(() => Promise.reject(reason));
    await change('area', own);
    await assert.rejects(ingest.store([fixOf(imeis[0], NOW_MS)]), reason);
    assert.deepEqual(await ingest.store([fixOf(imeis[1], NOW_MS)]), ['accepted']);
    assert.equal(ingest.waitingPoints, 0);
  });
});
