import assert from 'node:assert/strict';
import { type AreaDraft, parseDraft } from '../../src/areas/areaDraft.ts';
import { lockAreaWorlds, moveArea } from '../../src/areas/areas.sql.ts';
import type { AreaWriter } from '../../src/areas/saveArea.ts';
import type { WritePorts } from '../../src/changelog/writeWorlds.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { localWorldVersions } from '../../src/redis/rateLimiter.ts';
import { insertAccount, upsertOrganization } from '../../src/tenants/accounts.sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { newTurns } from '../support/workTurns.ts';

export function draftOf(body: object): AreaDraft {
  const parsed = parseDraft(body);
  assert.ok(parsed.ok);
  return parsed.value;
}

/** One database, and the connections of two pods to it. */
export interface AreaHouse {
  readonly sql: Sql;
  readonly pods: readonly [WritePorts, WritePorts];
  /** A new account, as the writer of areas. */
  writer(organization?: string): Promise<AreaWriter>;
  /** Its areas: how many, and those with a code by it. */
  areasOf(writer: AreaWriter): Promise<{ id: number; name: string; code: string | null; world: number }[]>;
  /** Makes an area its organization's. */
  share(areaId: number): Promise<void>;
  close(): Promise<void>;
}

export async function openAreaHouse(): Promise<AreaHouse> {
  const { url } = await createDatabase();
  const clients = [0, 1].map(() => openSql(url, { maxConnections: 12, name: 'test' })) as [Sql, Sql];
  const turns = newTurns();
  const ports = (sql: Sql): WritePorts => ({
    sql,
    versions: localWorldVersions,
    awaitEverywhere: async () => {},
    turns,
  });
  const [sql] = clients;
  let accounts = 0;
  return {
    sql,
    pods: [ports(clients[0]), ports(clients[1])],
    writer: (organization) =>
      sql.begin(async (tx) => {
        const home = organization === undefined ? null : await upsertOrganization(tx, organization);
        const { id, worldId } = await insertAccount(tx, {
          email: `writer${++accounts}@x`,
          name: 'A',
          organizationId: home?.id ?? null,
          plan: 'pro',
          passwordHash: null,
        });
        return { accountId: id, worldIds: home === null ? [worldId] : [worldId, home.worldId] };
      }),
    areasOf: async ({ accountId }) => [
      ...(await sql<{ id: number; name: string; code: string | null; world: number }[]>`
        select id, name, external_id as code, world_id as world from area where account_id = ${accountId} order by id`),
    ],
    share: (areaId) =>
      sql.begin(async (tx) => {
        const worlds = await lockAreaWorlds(tx, areaId);
        assert.ok(worlds?.organizationWorldId);
        await moveArea(tx, areaId, worlds.organizationWorldId);
      }),
    close: async () => {
      await Promise.all(clients.map((client) => client.end()));
    },
  };
}
