import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { createDatabase } from './postgres.ts';

/** Names of files and what they hold. */
export type Files = Readonly<Record<string, string>>;

/** A folder with these files; it goes away after the test. */
export async function makeFolder(t: TestContext, files: Files): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-sql-'));
  t.after(() => rm(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

/** An empty database, and clients of it that are closed before it is dropped. */
export async function openEmpty(t: TestContext, clients = 1): Promise<Sql[]> {
  const { url, drop } = await createDatabase(undefined, { empty: true });
  const sqls = Array.from({ length: clients }, () => openSql(url, { maxConnections: 2, name: 'test' }));
  t.after(async () => {
    await Promise.all(sqls.map((sql) => sql.end()));
    await drop();
  });
  return sqls;
}
