import type { VersionPublisher } from '../flows/writeWorlds.ts';
import { connectRedis, whenReady } from '../queue/redisConnection.ts';
import { redisKeys } from '../queue/redisKeys.ts';
import { RedisPort } from '../queue/redisPort.ts';
import { RedisWorldVersions } from '../queue/worldVersions.ts';
import { selectInstanceId } from '../store/snapshot.ts';
import type { Sql } from '../store/sql.ts';

export interface VersionsConnection {
  readonly versions: VersionPublisher;
  close(): void;
}

/** A command is not to wait long for a Redis that does not answer: the change feed tells the pods as well. */
const CONNECT_LIMIT_MS = 1_000;

/** Publishes through the Redis of the running service; without one, nobody can be told this way. */
export async function connectVersions(
  sql: Sql,
  redisUrl: string | null,
  say: (line: string) => void,
): Promise<VersionsConnection> {
  if (redisUrl === null) return { versions: NOWHERE, close: () => undefined };
  const namespace = await sql.begin((tx) => selectInstanceId(tx));
  const redis = connectRedis(redisUrl, { info: () => undefined, warn: () => undefined });
  const port = new RedisPort(redis, { onEvent: () => undefined });
  await whenReady(redis, CONNECT_LIMIT_MS);
  if (!port.isUsable)
    say('Redis (REDIS_URL) does not answer; running services learn of this through the database');
  const versions = new RedisWorldVersions(port, redisKeys(namespace));
  return {
    versions,
    close: () => redis.disconnect(),
  };
}

const NOWHERE: VersionPublisher = {
  publish: () => Promise.resolve(false),
  confirm: () => Promise.resolve(false),
};
