import type { VersionPublisher } from '../changelog/writeWorlds.ts';
import type { Sql } from '../postgres/sql.ts';
import type { VersionPublisherConnection } from './redisVersionPublisher.ts';

/** Through Redis where there is one, which is loaded only then; without it the pods read the change feed. */
export async function connectVersionPublisher(
  sql: Sql,
  redisUrl: string | null,
  say: (line: string) => void,
): Promise<VersionPublisherConnection> {
  if (redisUrl === null) return { versions: NOWHERE, close: () => undefined };
  const { connectRedisVersionPublisher } = await import('./redisVersionPublisher.ts');
  return connectRedisVersionPublisher(sql, redisUrl, say);
}

const NOWHERE: VersionPublisher = {
  publish: () => Promise.resolve(false),
  confirm: () => Promise.resolve(false),
};
