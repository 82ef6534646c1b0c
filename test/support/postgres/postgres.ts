import { randomBytes } from 'node:crypto';
import { after, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { sqlState } from '../../../src/postgres/sqlErrors.ts';
import { identifier } from '../../../src/postgres/sqlText.ts';
import { databaseUrl, startTestCluster, type TestCluster } from './cluster.ts';

const COPY_ATTEMPTS = 100;
const COPY_PAUSE_MS = 50;
const OBJECT_IN_USE = '55006';

/** The cluster of this process alone, when its test file was not started by test/run.ts. */
let own: Promise<TestCluster> | null = null;

/**
 * A database of its own for a test, with all migrations applied unless it is to be empty. It goes away after the
 * test given, else with `drop` (or at the latest with the cluster, at the end of the run).
 */
export async function createDatabase(
  t?: TestContext,
  { empty = false } = {},
): Promise<{ url: string; drop: () => Promise<void> }> {
  const { adminUrl, template } = await findCluster();
  const name = `test_${randomBytes(8).toString('hex')}`;
  await asAdmin(adminUrl, (admin) => copyDatabase(admin, empty ? 'template0' : template, name));
  const drop = (): Promise<void> =>
    asAdmin(adminUrl, async (admin) => {
      await admin`drop database if exists ${identifier(name)} with (force)`;
    });
  t?.after(drop);
  return { url: databaseUrl(adminUrl, name), drop };
}

async function copyDatabase(admin: Sql, template: string, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      // Copying files beats copying blocks through the log, as long as the checkpoints it asks for are cheap.
      await admin`create database ${identifier(name)} template ${identifier(template)} strategy file_copy`;
      return;
    } catch (error) {
      const isBusy = sqlState(error) === OBJECT_IN_USE;
      if (!isBusy || attempt === COPY_ATTEMPTS) throw error;
      await sleep(COPY_PAUSE_MS);
    }
  }
}

async function asAdmin(adminUrl: string, work: (admin: Sql) => Promise<void>): Promise<void> {
  const admin = openSql(adminUrl, { maxConnections: 1, name: 'test admin' });
  try {
    await work(admin);
  } finally {
    await admin.end();
  }
}

async function findCluster(): Promise<{ adminUrl: string; template: string }> {
  const adminUrl = process.env['FLEET_TEST_POSTGRES'];
  const template = process.env['FLEET_TEST_TEMPLATE'];
  if (adminUrl && template) return { adminUrl, template };
  own ??= startTestCluster();
  return own;
}

after(async () => {
  const cluster = await own;
  await cluster?.stop();
});
