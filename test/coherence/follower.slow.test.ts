import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { pruneChanges } from '../../src/changelog/changes.sql.ts';
import { countPodsBehind } from '../../src/changelog/pods.sql.ts';
import { writeWorlds } from '../../src/changelog/writeWorlds.ts';
import { Follower } from '../../src/coherence/follower.ts';
import { insertDevices } from '../../src/devices/devices.sql.ts';
import { WorkTurns } from '../../src/lib/workTurns.ts';
import { openSql, type Sql, type Tx } from '../../src/postgres/sql.ts';
import { localWorldVersions } from '../../src/redis/rateLimiter.ts';
import { insertAccount } from '../../src/tenants/accounts.sql.ts';
import { countLockWaiters, holdTransaction } from '../support/postgres/holdTransaction.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';
import { newTurns } from '../support/workTurns.ts';
import { type MemoryPod, openMemoryPod } from './memoryPod.ts';

let url: string;
let sql: Sql;
let drop: () => Promise<void>;
let worldId: number;
let devices = 0;

before(async () => {
  ({ url, drop } = await createDatabase());
  sql = openSql(url, { maxConnections: 4, name: 'test' });
  ({ worldId } = await sql.begin((tx) =>
    insertAccount(tx, { email: 'a@x', name: 'A', organizationId: null, plan: 'pro', passwordHash: null }),
  ));
});
after(async () => {
  await sql.end();
  await drop();
});

async function startedPod(t: TestContext, clock?: () => number): Promise<MemoryPod> {
  const pod = openMemoryPod(url, clock);
  t.after(() => pod.close());
  await pod.follower.start();
  return pod;
}

/** Registers devices in one write; returns their IMEIs. */
async function addDevices(
  count = 1,
  beforeCommit: (tx: Tx) => Promise<unknown> = async () => {},
): Promise<string[]> {
  const drafts = Array.from({ length: count }, () => ({
    imei: String(350000000000000 + ++devices),
    worldId,
    name: null,
    plate: null,
    model: null,
    groups: [],
  }));
  const ports = {
    sql,
    versions: localWorldVersions,
    awaitEverywhere: async () => undefined,
    turns: newTurns(),
  };
  await writeWorlds(ports, async ({ tx, changed }) => {
    const created = await insertDevices(tx, drafts);
    changed({ kind: 'device', worldId, entityIds: created.map(({ id }) => id) });
    await beforeCommit(tx);
  });
  return drafts.map(({ imei }) => imei);
}

/** A transaction that has its number and waits; `end` lets it register a device and commit. */
async function openTransaction(): Promise<{ end: () => Promise<string[]> }> {
  const opened = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const done = sql.begin(async (tx) => {
    await tx`select pg_current_xact_id()`;
    opened.resolve();
    await released.promise;
    const [device] = await insertDevices(tx, [
      {
        imei: String(350000000000000 + ++devices),
        worldId,
        name: null,
        plate: null,
        model: null,
        groups: [],
      },
    ]);
    await tx`
      insert into change (kind, world_id, world_version, entity_id) values ('device', ${worldId}, 1, ${device?.id})`;
    return [device?.imei ?? ''];
  });
  await opened.promise;
  return {
    end: () => {
      released.resolve();
      return done;
    },
  };
}

const knows = (pod: MemoryPod, imeis: readonly string[]): boolean =>
  imeis.every((imei) => pod.fleet.device([worldId], imei) !== undefined);

describe('catching up', () => {
  test('brings everything that was committed before the call', async (t) => {
    const pod = await startedPod(t);
    for (let round = 0; round < 20; round++) {
      const imeis = await addDevices();
      await pod.follower.catchUp();
      assert.ok(knows(pod, imeis));
    }
  });

  test('does so for each of many concurrent callers, while writes go on', async (t) => {
    const pod = await startedPod(t);
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const imeis = await addDevices();
        await pod.follower.catchUp();
        assert.ok(knows(pod, imeis));
      }),
    );
  });

  test('does not miss a transaction that began before others and commits after them', async (t) => {
    const pod = await startedPod(t);
    const first = await openTransaction();
    const second = await openTransaction();
    const overtaking = await addDevices();
    await pod.follower.catchUp();
    assert.ok(knows(pod, overtaking), 'nobody waits for the open ones');
    const late = await first.end();
    await pod.follower.catchUp();
    assert.ok(knows(pod, late));
    const later = await second.end();
    await pod.follower.catchUp();
    assert.ok(knows(pod, later));
  });

  test('does not bring a transaction that was rolled back, and goes on after it', async (t) => {
    const pod = await startedPod(t);
    const before = pod.fleet.deviceCount;
    await assert.rejects(
      addDevices(1, () => Promise.reject(new Error('no'))),
      /no/,
    );
    await pod.follower.catchUp();
    assert.equal(pod.fleet.deviceCount, before);
    assert.ok((await addDevices()) && true);
    await pod.follower.catchUp();
    assert.equal(pod.fleet.deviceCount, before + 1);
  });

  test('raises the version of a world only when all its changes are applied', async (t) => {
    const pod = await startedPod(t);
    const { fleet } = pod;
    const before = fleet.deviceCount;
    const versionBefore = fleet.worldVersion(worldId);
    const partial: number[] = [];
    const raise = fleet.raiseVersion.bind(fleet);
    fleet.raiseVersion = (id, version) => {
      if (id === worldId && version > versionBefore) partial.push(fleet.deviceCount - before);
      raise(id, version);
    };
    await addDevices(950);
    await pod.follower.catchUp();
    assert.deepEqual(partial, [950]);
  });

  test('happens without a call', async (t) => {
    const pod = await startedPod(t);
    const imeis = await addDevices();
    await waitFor(() => knows(pod, imeis));
  });
});

describe('a pod', () => {
  test('is not loaded before it has reported to the list of pods and read once more', async (t) => {
    const pod = openMemoryPod(url);
    t.after(() => pod.close());
    assert.equal(pod.follower.applied.lagMs(), Number.POSITIVE_INFINITY);
    // Keeps it from reporting to the list of pods.
    const release = await holdTransaction(sql, (tx) => tx`lock table pod in share mode`);
    const started = pod.follower.start();
    await waitFor(async () => (await countLockWaiters(sql)) > 0);
    assert.equal(pod.follower.applied.isLoaded, false);
    // A writer that comes now finds no pod to wait for.
    const imeis = await addDevices();
    assert.equal(knows(pod, imeis), false);
    await release();
    await waitFor(() => pod.follower.applied.isLoaded);
    assert.ok(knows(pod, imeis));
    await started;
  });

  test('has followed a write even while another transaction stays open', async (t) => {
    const pod = await startedPod(t);
    const open = await openTransaction();
    let xid = '';
    await addDevices(1, async (tx) => {
      const [row] = await tx<{ xid: string }[]>`select pg_current_xact_id()::text as xid`;
      xid = row?.xid ?? '';
    });
    await pod.follower.catchUp();
    assert.equal(await countPodsBehind(sql, xid), 0);
    await open.end();
  });

  test('leaves the list of pods when it stops, and calls no read that waited a failure', async () => {
    const pod = openMemoryPod(url);
    await pod.follower.start();
    pod.follower.catchUpSoon();
    pod.follower.catchUpSoon();
    await pod.close();
    assert.ok(!pod.log.some((line) => line.includes('cannot be read')), pod.log.join('\n'));
    assert.deepEqual([...(await sql`select 1 from pod where id = ${pod.podId}`)], []);
  });

  test('keeps reporting, and its age right, when its clock is set back', async (t) => {
    let nowMs = 1_000_000_000;
    const pod = await startedPod(t, () => nowMs);
    const seenAt = async () => {
      const rows = await sql<{ seen_at: Date }[]>`select seen_at from pod where id = ${pod.podId}`;
      return rows[0]?.seen_at.getTime() ?? 0;
    };
    nowMs -= 3_600_000;
    const last = await seenAt();
    await waitFor(async () => (await seenAt()) > last);
    // It reports before it reads once more.
    await waitFor(() => pod.follower.applied.lagMs() === 0);
    assert.deepEqual(pod.follower.degradations(), []);
  });

  test('looks old, not fresh, when its clock was set back', async () => {
    const ports = openMemoryPod(url);
    let nowMs = 1_000_000_000;
    const follower = new Follower({
      ...ports,
      memory: ports,
      turns: new WorkTurns<string>(3),
      clock: () => nowMs,
      server: { seen: null },
      log: { info() {}, warn() {} },
    });
    await follower.start();
    await follower.stop(); // reads the feed no more
    nowMs -= 50_000;
    assert.equal(follower.applied.lagMs(), 50_000);
    assert.deepEqual(follower.degradations(), ['database_no_answer']);
    await ports.close();
  });
});

describe('when the feed was pruned', () => {
  /** Makes every change that is there old enough, and prunes it. */
  const prune = async (): Promise<void> => {
    await sql`update change set at = at - interval '1 hour'`;
    while ((await pruneChanges(sql)) > 0);
  };
  const reloads = (pod: MemoryPod): number => pod.log.filter((line) => line.includes('reloading')).length;

  test('a pod that had read it does not reload', async (t) => {
    const pod = await startedPod(t);
    await addDevices();
    await pod.follower.catchUp();
    await prune();
    const imeis = await addDevices();
    await pod.follower.catchUp();
    assert.ok(knows(pod, imeis));
    assert.equal(reloads(pod), 0);
  });

  test('a pod that had read it does not reload either while an older transaction stays open', async (t) => {
    const pod = await startedPod(t);
    const open = await openTransaction();
    await addDevices();
    await pod.follower.catchUp();
    await prune();
    await addDevices();
    await pod.follower.catchUp();
    await pod.follower.catchUp();
    assert.equal(reloads(pod), 0);
    await open.end();
  });

  test('a pod that had not read it reloads everything, once, and drops its keys', async (t) => {
    const pod = await startedPod(t);
    await pod.follower.stop(); // from here on it reads the feed on demand only
    const { epoch } = pod.keyring;
    const imeis = await addDevices();
    await prune();
    await pod.follower.catchUp();
    assert.ok(knows(pod, imeis));
    assert.equal(reloads(pod), 1);
    assert.ok(pod.keyring.epoch > epoch);
    const more = await addDevices();
    await pod.follower.catchUp();
    assert.ok(knows(pod, more));
    assert.equal(reloads(pod), 1);
  });
});

test('a pod that was away for as long as changes are kept reloads everything, even if the horizon allows to go on', async (t) => {
  let nowMs = Date.now();
  const pod = await startedPod(t, () => nowMs);
  await pod.follower.stop();
  const overtaken = await openTransaction();
  const later = await addDevices();
  await pod.follower.catchUp();
  assert.ok(knows(pod, later));
  const imeis = await overtaken.end();
  await sql`update change set at = at - interval '1 hour'`;
  while ((await pruneChanges(sql)) > 0);
  nowMs += 15 * 60_000;
  await pod.follower.catchUp();
  assert.ok(knows(pod, imeis));
});

describe('a database that was restored into another cluster', () => {
  test('is followed, though it has changes from the future', async (t) => {
    await sql`update change_horizon set xid = '999999999999'`;
    await sql`insert into change (xid, kind, entity_id) values ('999999999998', 'device', 1)`;
    const pod = await startedPod(t);
    for (let round = 0; round < 3; round++) {
      const imeis = await addDevices();
      await pod.follower.catchUp();
      assert.ok(knows(pod, imeis));
    }
    assert.deepEqual(
      pod.log.filter((line) => line.includes('reloading')),
      [],
    );
    assert.deepEqual([...(await sql`select 1 from change where xid > '999999999'`)], []);
  });
});
