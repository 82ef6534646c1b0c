import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type VersionPublisher, type WritePorts, writeWorlds } from '../../src/changelog/writeWorlds.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { localWorldVersions } from '../../src/redis/rateLimiter.ts';
import { insertAccount } from '../../src/tenants/accounts.sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { newTurns } from '../support/workTurns.ts';

let sql: Sql;
let drop: () => Promise<void>;
let worlds: readonly [number, number];
before(async () => {
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 6, name: 'test' });
  const made = await sql.begin(async (tx) => {
    const draft = { name: 'A', organizationId: null, plan: 'pro', passwordHash: null };
    return [
      await insertAccount(tx, { ...draft, email: 'a@x' }),
      await insertAccount(tx, { ...draft, email: 'b@x' }),
    ];
  });
  worlds = [made[0]?.worldId ?? 0, made[1]?.worldId ?? 0];
});
after(async () => {
  await sql.end();
  await drop();
});

let calls: string[];
beforeEach(() => {
  calls = [];
});

/** Ports that record their calls in order. */
function ports(reach: Partial<Record<'publish' | 'confirm', boolean>> = {}): WritePorts {
  const versions: VersionPublisher = {
    publish: async (worldId, version) => {
      const isCommitted = (await versionOf(worldId)) >= version;
      calls.push(`publish ${worldId} ${version}${isCommitted ? ' (committed)' : ''}`);
      return reach.publish ?? true;
    },
    confirm: async (worldId, version) => {
      const isCommitted = (await versionOf(worldId)) >= version;
      calls.push(`confirm ${worldId} ${version}${isCommitted ? ' (committed)' : ''}`);
      return reach.confirm ?? true;
    },
  };
  return {
    sql,
    turns: newTurns(),
    versions,
    awaitEverywhere: async ({ published }) => {
      calls.push(`await ${published ? 'published' : 'by the feed'}`);
    },
  };
}

async function versionOf(worldId: number): Promise<number> {
  const [row] = await sql<{ version: number }[]>`select version from world where id = ${worldId}`;
  return row?.version ?? 0;
}

describe('a write', () => {
  test('is published before its commit, confirmed after it, and then awaited', async () => {
    const [a] = worlds;
    const version = (await versionOf(a)) + 1;
    const result = await writeWorlds(ports(), async ({ changed }) => {
      changed({ kind: 'key', worldId: a, entityIds: [1, 2] });
      return 'result';
    });
    assert.equal(result, 'result');
    assert.deepEqual(calls, [
      `publish ${a} ${version}`,
      `confirm ${a} ${version} (committed)`,
      'await published',
    ]);
    const rows = await sql<{ entity_id: number; world_version: number }[]>`
      select entity_id, world_version from change where world_id = ${a} and world_version = ${version} order by id`;
    assert.deepEqual(
      rows.map((row) => row.entity_id),
      [1, 2],
    );
  });

  for (const step of ['publish', 'confirm'] as const) {
    test(`whose ${step} did not reach the pods waits until they have followed the feed`, async () => {
      await writeWorlds(ports({ [step]: false }), async ({ changed }) => {
        changed({ kind: 'device', worldId: worlds[0], entityIds: [1] });
      });
      assert.equal(calls.at(-1), 'await by the feed');
    });
  }

  test('that fails publishes nothing and changes nothing', async () => {
    const [a] = worlds;
    const version = await versionOf(a);
    await assert.rejects(
      writeWorlds(ports(), async ({ changed }) => {
        changed({ kind: 'key', worldId: a, entityIds: [1] });
        throw new Error('no');
      }),
      /no/,
    );
    assert.equal(await versionOf(a), version);
    assert.deepEqual(calls, []);
  });

  test('that changes nothing waits for no pod', async () => {
    assert.equal(await writeWorlds(ports(), async () => 'nothing'), 'nothing');
    assert.deepEqual(calls, []);
  });

  test('never deadlocks with another, in whatever order both name their worlds', async () => {
    const [a, b] = worlds;
    const quiet = { ...ports(), versions: localWorldVersions };
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        writeWorlds(quiet, async ({ changed }) => {
          for (const worldId of n % 2 === 0 ? [a, b] : [b, a])
            changed({ kind: 'key', worldId, entityIds: [n] });
        }),
      ),
    );
  });
});
