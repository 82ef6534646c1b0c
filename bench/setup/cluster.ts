import { randomBytes } from 'node:crypto';
import type { Env } from '../../src/config.ts';
import { startEmbedded } from '../../src/postgres/embedded/embedded.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { databaseUrl, makeProjectDir, removeDataDir } from '../../test/support/postgres/cluster.ts';

export function openBenchSql(url: string, maxConnections = 1): Sql & AsyncDisposable {
  const sql = openSql(url, { maxConnections, name: 'bench' });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end() });
}

export async function execute(url: string, statement: string): Promise<void> {
  await using sql = openBenchSql(url);
  await sql.unsafe(statement);
}

/** A Postgres server that gives each case a database. */
export interface BenchCluster extends AsyncDisposable {
  readonly about: string;
  withDatabase<T>(work: (url: string) => Promise<T>): Promise<T>;
}

/**
 * The Postgres of FLEET_BENCH_DATABASE_URL or DATABASE_URL, where the bench touches only databases that it creates.
 * Without these, an embedded one as the service runs it, durable, in a folder that is removed afterwards.
 */
export async function openCluster(env: Env): Promise<BenchCluster> {
  const given = env['FLEET_BENCH_DATABASE_URL'] || env['DATABASE_URL'];
  if (given) {
    const withDatabase = databasesOn(given);
    return { about: 'given Postgres', withDatabase, [Symbol.asyncDispose]: async () => undefined };
  }
  const dataDir = await makeProjectDir();
  const embedded = await startEmbedded({ dataDir, log: () => undefined }).catch(async (error: unknown) => {
    await removeDataDir(dataDir);
    throw error;
  });
  return {
    about: 'embedded Postgres',
    withDatabase: databasesOn(embedded.url),
    [Symbol.asyncDispose]: async () => {
      await embedded.stop();
      await removeDataDir(dataDir);
    },
  };
}

function databasesOn(adminUrl: string): BenchCluster['withDatabase'] {
  return async (work) => {
    const name = `bench_${randomBytes(8).toString('hex')}`;
    await execute(adminUrl, `create database ${name}`);
    try {
      return await work(databaseUrl(adminUrl, name));
    } finally {
      await execute(adminUrl, `drop database if exists ${name} with (force)`);
    }
  };
}
