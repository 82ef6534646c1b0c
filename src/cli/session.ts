import { selectInstanceId } from '../changelog/database.sql.ts';
import { awaitPods, type VersionPublisher, type WritePorts } from '../changelog/writeWorlds.ts';
import type { AdminConfig } from '../config.ts';
import { fail, type Result } from '../lib/result.ts';
import { WorkTurns } from '../lib/workTurns.ts';
import { withEmbedded } from '../postgres/embedded/embedded.ts';
import { sessionName } from '../postgres/hosts.ts';
import { type Log, migrate } from '../postgres/migrate.ts';
import { openSql, type Sql } from '../postgres/sql.ts';

/** The database of a command, with its schema up to date. */
export interface Session extends WritePorts {
  /** The migrations that opening it applied. */
  readonly applied: readonly string[];
}

const CONNECTIONS = 2;
/** No requests wait while a command runs, so its turns may be long. */
const TURN_BUDGET_MS = 100;

/**
 * Runs `work` on the database that the service uses: DATABASE_URL, or the embedded Postgres, which is started for the
 * work unless a service already runs it. The error says why the database is unavailable. Exceptions of `work` pass.
 */
export async function withSession<T>(
  config: AdminConfig,
  say: (line: string) => void,
  work: (session: Session) => Promise<Result<T, string>>,
): Promise<Result<T, string>> {
  const log: Log = (message, fields) =>
    say(fields === undefined ? message : `${message} ${JSON.stringify(fields)}`);
  let opened = false;
  const onDatabase = async (url: string): Promise<Result<T, string>> => {
    const sql = openSql(url, { maxConnections: CONNECTIONS, name: sessionName('command') });
    try {
      const applied = await migrate(sql, log);
      const turns = new WorkTurns<number | string>(TURN_BUDGET_MS);
      const { versions, close } = await connectVersionPublisher(sql, config.redisUrl, say);
      opened = true;
      return await work({ sql, applied, versions, awaitEverywhere: awaitEveryPod(sql, say), turns }).finally(
        close,
      );
    } finally {
      await sql.end();
    }
  };
  try {
    if (config.databaseUrl !== null) return await onDatabase(config.databaseUrl);
    return await withEmbedded({ dataDir: config.dataDir, log }, onDatabase);
  } catch (error) {
    if (opened || !(error instanceof Error)) throw error;
    return fail(explain(error, config));
  }
}

/**
 * For many writes in a row: each returns only when the running pods have applied it, also where its version could be
 * published. So a pod is never more than one of them behind, and a caller who needs its newest state waits for no more.
 */
export function paced(session: Session): Session {
  return { ...session, awaitEverywhere: (write) => session.awaitEverywhere({ ...write, published: false }) };
}

/** Waits until every running pod has applied the write, when its versions could not be published. */
function awaitEveryPod(sql: Sql, say: (line: string) => void): WritePorts['awaitEverywhere'] {
  return async ({ xid, published }) => {
    if (published || (await awaitPods(sql, xid))) return;
    say('done, but a running service has not noticed it yet; it will');
  };
}

/** The driver's errors do not carry the URL, which may hold a password. */
function explain(error: Error, config: AdminConfig): string {
  const code = 'code' in error ? String(error.code) : '';
  const reason = error.message === '' ? code : error.message;
  return config.databaseUrl === null ? reason : `the database of DATABASE_URL cannot be used: ${reason}`;
}

/** Where a command publishes the versions of the worlds that it changes. */
interface VersionPublisherConnection {
  readonly versions: VersionPublisher;
  close(): void;
}

/** A command does not wait long for a Redis that does not answer: pods read the change log as well. */
const REDIS_LIMIT_MS = 1_000;

/** Through the Redis of the running service, which is loaded only then; without it the pods read the change log. */
export async function connectVersionPublisher(
  sql: Sql,
  redisUrl: string | null,
  say: (line: string) => void,
): Promise<VersionPublisherConnection> {
  if (redisUrl === null) {
    const unpublished = () => Promise.resolve(false);
    return { versions: { publish: unpublished, confirm: unpublished }, close: () => undefined };
  }
  const { connectRedis, redisKeys, RedisPort, whenReady } = await import('../redis/redisConnection.ts');
  const { RedisWorldVersions } = await import('../redis/redisRateLimiter.ts');
  const namespace = await sql.begin((tx) => selectInstanceId(tx));
  const redis = connectRedis(redisUrl, { info: () => undefined, warn: () => undefined }, namespace);
  const port = new RedisPort(redis, { onEvent: () => undefined });
  await whenReady(redis, REDIS_LIMIT_MS);
  if (!port.isUsable)
    say('Redis (REDIS_URL) does not answer; running services read this change from the database');
  const versions = new RedisWorldVersions(port, redisKeys(namespace, redisUrl));
  return { versions, close: () => redis.disconnect() };
}
