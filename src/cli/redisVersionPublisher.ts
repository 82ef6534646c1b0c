import { selectInstanceId } from '../changelog/database.sql.ts';
import type { VersionPublisher } from '../changelog/writeWorlds.ts';
import type { Sql } from '../postgres/sql.ts';
import { connectRedis, RedisPort, redisKeys, whenReady } from '../redis/redisConnection.ts';
import { RedisWorldVersions } from '../redis/worldVersions.ts';

/** Where a command publishes the versions of the worlds that it changes. */
export interface VersionPublisherConnection {
  readonly versions: VersionPublisher;
  close(): void;
}

/** A command does not wait long for a Redis that does not answer: pods read the change log as well. */
const CONNECT_LIMIT_MS = 1_000;

/** Publishes the versions of worlds through the Redis of the running service. */
export async function connectRedisVersionPublisher(
  sql: Sql,
  redisUrl: string,
  say: (line: string) => void,
): Promise<VersionPublisherConnection> {
  const namespace = await sql.begin((tx) => selectInstanceId(tx));
  const redis = connectRedis(redisUrl, { info: () => undefined, warn: () => undefined });
  const port = new RedisPort(redis, { onEvent: () => undefined });
  await whenReady(redis, CONNECT_LIMIT_MS);
  if (!port.isUsable)
    say('Redis (REDIS_URL) does not answer; running services read this change from the database');
  return {
    versions: new RedisWorldVersions(port, redisKeys(namespace)),
    close: () => redis.disconnect(),
  };
}
