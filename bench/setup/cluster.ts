import { randomBytes } from 'node:crypto';
import type { Env } from '../../src/config.ts';
import { startEmbedded } from '../../src/postgres/embedded/embedded.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { databaseUrl, makeProjectDir, removeDataDir } from '../../test/support/postgres/cluster.ts';

/** A Postgres server that gives each case a database. */
export interface BenchCluster {
  readonly about: string;
  /** Calls `work` with a new, empty database and drops it afterwards. */
  withDatabase<T>(work: (url: string) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/**
 * The Postgres of FLEET_BENCH_DATABASE_URL or DATABASE_URL, where the bench touches only databases that it creates.
 * Without these, an embedded one as the service runs it, durable, in a folder that `stop` removes.
 */
export async function openCluster(env: Env): Promise<BenchCluster> {
  const given = env['FLEET_BENCH_DATABASE_URL'] || env['DATABASE_URL'];
  if (given) return { ...databasesOn(given), about: 'given Postgres', stop: async () => undefined };
  const dataDir = await makeProjectDir();
  const embedded = await startEmbedded({ dataDir, log: () => undefined }).catch(async (error: unknown) => {
    await removeDataDir(dataDir);
    throw error;
  });
  const stop = async (): Promise<void> => {
    await embedded.stop();
    await removeDataDir(dataDir);
  };
  return { ...databasesOn(embedded.url), about: 'embedded Postgres', stop };
}

function databasesOn(adminUrl: string): Pick<BenchCluster, 'withDatabase'> {
  return {
    withDatabase: async (work) => {
      const name = `bench_${randomBytes(8).toString('hex')}`;
      await execute(adminUrl, `create database ${name}`);
      try {
        return await work(databaseUrl(adminUrl, name));
      } finally {
        await execute(adminUrl, `drop database if exists ${name} with (force)`);
      }
    },
  };
}

async function execute(adminUrl: string, statement: string): Promise<void> {
  const sql = openSql(adminUrl, { maxConnections: 1, name: 'bench admin' });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}

/** Calls `work` with an empty database of the server of FLEET_BENCH_POSTGIS_URL. Null without that variable. */
export async function withPostgis<T>(env: Env, work: (url: string) => Promise<T>): Promise<T | null> {
  const url = env['FLEET_BENCH_POSTGIS_URL'];
  return url ? databasesOn(url).withDatabase(work) : null;
}
