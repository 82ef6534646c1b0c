import type { Sql } from '../../src/postgres/sql.ts';

export interface FeedRow {
  readonly kind: string;
  readonly worldId: number;
  readonly entityId: number;
}

/** What `work` added to the change log, in order, and the worlds whose version it raised. */
export async function watchFeed<T>(
  sql: Sql,
  work: () => Promise<T>,
): Promise<{ result: T; rows: FeedRow[]; raised: number[] }> {
  const before = new Map((await versions(sql)).map(({ id, version }) => [id, version]));
  const [newest] = await sql<{ id: number }[]>`select coalesce(max(id), 0) as id from change`;
  const result = await work();
  const rows = await sql<{ kind: string; world_id: number; entity_id: number }[]>`
    select kind, world_id, entity_id from change where id > ${newest?.id ?? 0} order by id`;
  const raised = (await versions(sql)).filter(({ id, version }) => version > (before.get(id) ?? 1));
  return {
    result,
    rows: rows.map((row) => ({ kind: row.kind, worldId: row.world_id, entityId: row.entity_id })),
    raised: raised.map(({ id }) => id),
  };
}

function versions(sql: Sql): Promise<{ id: number; version: number }[]> {
  return sql<{ id: number; version: number }[]>`select id, version from world order by id`;
}
