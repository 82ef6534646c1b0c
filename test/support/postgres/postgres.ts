import { randomBytes } from 'node:crypto';
import { after, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { sqlState } from '../../../src/postgres/sqlErrors.ts';
import { databaseUrl, startTestCluster, type TestCluster } from './cluster.ts';

const COPY_ATTEMPTS = 100;
const COPY_PAUSE_MS = 50;
const OBJECT_IN_USE = '55006';

/** The cluster of this process alone, when its test file was not started by test/run.ts. */
let own: Promise<TestCluster> | null = null;
/** Creates and drops databases. Its connection stays open for all files: each costs 20 ms, and a run needs thousands. */
let admin: Pool | null = null;

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
  await copyDatabase(empty ? 'template0' : template, name);
  const drop = async (): Promise<void> => {
    // The cluster of this process goes as a whole.
    if (own === null) await asAdmin(`drop database if exists ${name} with (force)`);
  };
  t?.after(drop);
  return { url: databaseUrl(adminUrl, name), drop };
}

async function copyDatabase(template: string, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      // Copying files beats copying blocks through the log, as long as the checkpoints it asks for are cheap.
      await asAdmin(`create database ${name} template ${template} strategy file_copy`);
      return;
    } catch (error) {
      const isBusy = sqlState(error) === OBJECT_IN_USE;
      if (!isBusy || attempt === COPY_ATTEMPTS) throw error;
      await sleep(COPY_PAUSE_MS);
    }
  }
}

async function asAdmin(text: string): Promise<void> {
  const { adminUrl } = await findCluster();
  admin ??= openAdmin(adminUrl);
  await admin.query(text);
}

function openAdmin(connectionString: string): Pool {
  const pool = new Pool({ connectionString, max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true });
  return pool.on('error', () => undefined); // a pool has ended before its connections are closed, and then the cluster stops
}

async function findCluster(): Promise<{ adminUrl: string; template: string }> {
  const adminUrl = process.env['FLEET_TEST_POSTGRES'];
  const template = process.env['FLEET_TEST_TEMPLATE'];
  if (adminUrl && template) return { adminUrl, template };
  own ??= startTestCluster();
  return own;
}

// Hooks run in the order of their registration: this one comes after those of the test file, which is evaluated after this.
if (process.env['FLEET_TEST_POSTGRES'] === undefined)
  setImmediate(() =>
    after(async () => {
      await admin?.end();
      const cluster = await own;
      await cluster?.stop();
    }),
  );
