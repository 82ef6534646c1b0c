import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { PostgresHosts } from '../../src/postgres/hosts.ts';
import { sharesSessions } from '../../src/postgres/pooler.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { startPod } from '../support/pod.ts';
import { findFreePort } from '../support/ports.ts';
import { makeProjectDir, removeDataDir } from '../support/postgres/cluster.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const PGBOUNCER = ['pgbouncer', '/usr/sbin/pgbouncer'].find(
  (path) => spawnSync(path, ['--version'], { stdio: 'ignore' }).status === 0,
);
const skip = PGBOUNCER === undefined && 'there is no pgbouncer on this machine';

/** The address of a database behind a PgBouncer that is gone after the test. */
async function poolerOf(t: TestContext, url: string, mode: string): Promise<string> {
  const { hostname, port, username, pathname } = new URL(url);
  const dir = await makeProjectDir();
  t.after(() => removeDataDir(dir));
  const own = String(await findFreePort());
  const lines = [
    '[databases]',
    `* = host=${hostname} port=${port} user=${username}`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${own}\nunix_socket_dir =`,
    `auth_type = any\npool_mode = ${mode}\ndefault_pool_size = 40\nmax_client_conn = 200`,
  ];
  await writeFile(join(dir, 'pgbouncer.ini'), `${lines.join('\n')}\n`);
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []; // it does not run as root
  const child = spawn(PGBOUNCER as string, ['-q', ...user, join(dir, 'pgbouncer.ini')], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const behind = `postgres://${username}@127.0.0.1:${own}${pathname}`;
  await waitFor(async () => {
    const sql = openSql(behind, { maxConnections: 1, name: 'test' });
    try {
      return (await sql`select 1 as one`).length === 1;
    } catch {
      return false; // it does not listen yet
    } finally {
      await sql.end();
    }
  });
  return behind;
}

describe('a pooler', () => {
  test('is told from a server: connections to the server have a session each', async (t) => {
    const { url } = await createDatabase(t);
    assert.equal(await sharesSessions(new PostgresHosts(url)), false);
  });

  test('that keeps a session for each connection serves a pod, whose settings hold', { skip }, async (t) => {
    const url = await poolerOf(t, (await createDatabase(t)).url, 'session');
    assert.equal(await sharesSessions(new PostgresHosts(url)), false);
    const sql = openSql(url, {
      maxConnections: 1,
      name: 'test',
      statementLimitMs: 4_321,
      settings: { jit: 'off' },
    });
    const [held] = await sql`
      select current_setting('statement_timeout') as limit, current_setting('TimeZone') as zone, current_setting('jit') as jit`;
    assert.deepEqual(held, { limit: '4321ms', zone: 'UTC', jit: 'off' });
    await sql.end();
    const pod = await startPod(url, { t });
    await waitFor(async () => (await fetch(`${pod.ingest}/readyz`)).status === 200);
    await pod.stop();
  });

  for (const mode of ['transaction', 'statement'])
    test(`of ${mode}s ends the start of a pod, which says what to do`, { skip }, async (t) => {
      const url = await poolerOf(t, (await createDatabase(t)).url, mode);
      await assert.rejects(startPod(url, { t }), /pool_mode = session/);
    });
});
