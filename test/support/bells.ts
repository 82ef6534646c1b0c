import { Redis } from 'ioredis';
import { openSql } from '../../src/store/sql.ts';

/**
 * From now on nobody hears a doorbell: NOTIFY is swallowed in new sessions of the database, and Redis refuses
 * subscriptions. Pods only notice what they look for themselves.
 */
export async function dropBells(databaseUrl: string, redisUrl?: string): Promise<void> {
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'test bells' });
  const database = new URL(databaseUrl).pathname.slice(1);
  await sql.unsafe(`
    create or replace function public.pg_notify(text, text) returns void language sql as $$ select null::void $$;
    alter database "${database}" set search_path = public, pg_catalog;`);
  await sql.end();
  if (redisUrl === undefined) return;
  const redis = new Redis(redisUrl);
  await redis.call('ACL', 'SETUSER', 'default', '-subscribe');
  await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  redis.disconnect();
}
