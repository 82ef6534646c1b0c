import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { invariant } from '../../src/lib/errors.ts';
import { createCluster, runInFolder, urlOf } from '../../src/postgres/embedded/cluster.ts';
import { findDataFolder } from '../../src/postgres/embedded/dataFolder.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { isUnavailable } from '../../src/postgres/sqlErrors.ts';
import { findFreePort } from '../support/ports.ts';
import { makeDataDir, removeDataDir } from '../support/postgres/cluster.ts';
import { waitFor } from '../support/waitFor.ts';

/** Where Debian keeps the versions of Postgres, each with its own programs. */
const DEBIAN = '/usr/lib/postgresql';
const NEEDED = ['initdb', 'postgres', 'pg_dump', 'pg_restore', 'psql'];

/**
 * The folder of an installed Postgres with server and client programs of one version, or null. The embedded one comes
 * without pg_dump, and a pg_dump of an older version refuses a newer server.
 */
export function findSystemPostgres(): string | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter).filter(Boolean),
  ];
  return folders.find((folder) => NEEDED.every((name) => existsSync(join(folder, name)))) ?? null;
}

/** Starts a new, empty cluster of the installed Postgres; it goes away after the test. Returns its URL. */
export async function startSystemPostgres(t: TestContext): Promise<string> {
  const programs = findSystemPostgres();
  invariant(programs !== null, 'a Postgres is installed');
  const dataDir = await makeDataDir();
  const home = await findDataFolder(dataDir, () => undefined);
  const binaries = { initdb: join(programs, 'initdb'), postgres: join(programs, 'postgres') };
  await createCluster(home, binaries, false);
  const port = await findFreePort();
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'];
  const server = await runInFolder(home, binaries.postgres, [
    '-D',
    join(home.dir, 'cluster'),
    ...settings.flatMap((setting) => ['-c', setting]),
  ]);
  server.unref();
  t.after(async () => {
    await server.stop();
    await removeDataDir(dataDir);
  });
  const url = await urlOf(home.dir, port);
  await waitFor(() => takesQueries(url));
  return url;
}

async function takesQueries(url: string): Promise<boolean> {
  const sql = openSql(url, { maxConnections: 1, name: 'test start' });
  try {
    await sql`select 1`;
    return true;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return false;
  } finally {
    await sql.end();
  }
}
