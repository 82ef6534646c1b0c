import { Redis } from 'ioredis';
import { openSql } from '../../../src/postgres/sql.ts';

/**
 * From now on no notification arrives: NOTIFY does nothing in new sessions of the database, and Redis allows no
 * subscriptions. Pods only find what they poll for.
 */
export async function dropNotifications(databaseUrl: string, redisUrl?: string): Promise<void> {
  const sql = openSql(databaseUrl, { maxConnections: 1, name: 'test notifications' });
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
