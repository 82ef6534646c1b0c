import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { commitFixes, type FixOutcome } from '../../src/flows/commitFixes.ts';
import { recordChange } from '../../src/store/changes.ts';
import { ensureWeeks, POSITIONS, weekStartMs } from '../../src/store/partitions.ts';
import { selectFeedStand } from '../../src/store/snapshot.ts';
import { fixOf, type IngestSide, ingestBench } from '../support/ingestBench.ts';

const NOW_MS = Date.now();

type Kind = Parameters<typeof recordChange>[1]['kind'];

interface Scene {
  /** The world of the device, of its organization, and of somebody else. */
  readonly own: number;
  readonly organization: number;
  readonly stranger: number;
  /** A write that this pod has not followed. */
  change(kind: Kind, worldId: number): Promise<unknown>;
  /** Stores one more point; how often memory had to catch up for it, each time with the device free for others. */
  store(): Promise<{ outcome: FixOutcome | null | undefined; waits: number }>;
  /** A feed that brings something new as often as it is read. */
  neverEnds(): void;
  readonly side: IngestSide;
}

async function setUp(t: TestContext): Promise<Scene> {
  const { imeis, sides } = await ingestBench(t);
  const [side] = sides as [IngestSide];
  const { sql, memory } = side;
  const [imei] = imeis as [string];
  await ensureWeeks(sql, POSITIONS, [weekStartMs(NOW_MS)]);
  const [device] = await sql<{ id: number; world_id: number }[]>`select id, world_id from device`;
  assert.ok(device);
  const [organization, stranger] = (
    await sql<{ id: number }[]>`
      insert into world (version) values (1), (1) returning id`
  ).map(({ id }) => id) as [number, number];
  memory.tenancy.putAccount(1, device.world_id, organization);
  const change = (kind: Kind, worldId: number) =>
    sql.begin((tx) => recordChange(tx, { kind, worldId, entityIds: [1] }));
  let waits = 0;
  let points = 0;
  let isEndless = false;
  let stand = await sql.begin(selectFeedStand);
  const isFree = async () => {
    const rows = await sql.begin(
      (tx) => tx`select 1 from device_state where device_id = ${device.id} for update skip locked`,
    );
    return rows.length === 1;
  };
  const follower = {
    get stand() {
      return stand;
    },
    catchUp: async () => {
      waits++;
      assert.equal(await isFree(), !isEndless || waits <= 5);
      stand = await sql.begin(selectFeedStand);
      if (isEndless) await change('area', device.world_id);
    },
  };
  return {
    own: device.world_id,
    organization,
    stranger,
    change,
    neverEnds: () => {
      isEndless = true;
    },
    store: async () => {
      waits = 0;
      const entry = { deviceId: device.id, fix: fixOf(imei, NOW_MS + points++) };
      const { outcomes } = await commitFixes({ ...side, follower }, [entry], NOW_MS);
      return { outcome: outcomes[0], waits };
    },
    side,
  };
}

const ACCEPTED = { outcome: 'accepted', waits: 0 };

describe('a point is judged', () => {
  test('without waiting for what it is not judged by: devices, keys, and what others do', async (t) => {
    const { own, stranger, change, store } = await setUp(t);
    assert.deepEqual(await store(), ACCEPTED);
    await change('device', own);
    await change('key', own);
    await change('device', stranger);
    await change('area', stranger);
    await change('webhook', stranger);
    assert.deepEqual(await store(), ACCEPTED);
  });

  test('by what is new in the worlds that watch it: then it waits, and holds nobody up meanwhile', async (t) => {
    const { own, organization, stranger, change, store } = await setUp(t);
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
      assert.deepEqual(await store(), { outcome: 'accepted', waits: 1 }, `${kind} of ${worldId}`);
      assert.deepEqual(await store(), ACCEPTED);
    }
  });

  test('after a wait when changes may have been pruned', async (t) => {
    const { side, store } = await setUp(t);
    await side.sql`update change_horizon set xid = pg_current_xact_id()`;
    assert.deepEqual(await store(), { outcome: 'accepted', waits: 1 });
  });

  test('in the end, though its areas change as fast as they are read', async (t) => {
    const { own, change, neverEnds, store } = await setUp(t);
    await change('area', own);
    neverEnds();
    assert.deepEqual(await store(), { outcome: 'accepted', waits: 6 });
  });
});
