import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { childEnv } from '../support/childEnv.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { guideBlock, PROJECT } from './guide.ts';
import { findProgram } from './programs.ts';
import { paste } from './shell.ts';

const AREAS = IS_TORTURE ? 3_000 : 250;
const KILLS = IS_TORTURE ? 12 : 1;
/** The first night begins with nothing, and the second is not disturbed. */
const LAST_NIGHT = 1 + KILLS;
const SEED = Number(process.env['FLEET_SEED'] ?? 1);
const EMAIL = 'you@example.com';
const CALM = 'calm@example.com';
const missing = ['bash', 'npm'].filter((name) => findProgram(name) === null);
const skip = missing.length > 0 && `there is no ${missing.join(', ')} on this machine`;

/** The features of a night: of every twenty areas one is new, one is gone, and some have changed. */
function nightFile(night: number): string {
  const features = [];
  for (let n = 0; n < AREAS; n++) {
    const isGone = n % 20 === night % 20;
    if (isGone) continue;
    const radius = n % 5 === night % 5 ? 100 + night : 100;
    const coordinates = [(n % 100) / 10, Math.floor(n / 100) / 10];
    const properties = { name: `Stop ${n}`, external_id: `stop:${n}`, radius };
    features.push({ type: 'Feature', geometry: { type: 'Point', coordinates }, properties });
  }
  return JSON.stringify({ type: 'FeatureCollection', features });
}

/** All that the service knows of the areas of an account, but for what it chose itself. */
const areasOf = (sql: Sql, email: string) => sql`
  select to_jsonb(a) - 'id' - 'account_id' - 'world_id' - 'created_at' - 'updated_at' - 'revision' as area
  from area a join account o on o.id = a.account_id where o.email = ${email} order by a.external_id, a.name`;

/** Runs the command in a process of its own and kills it as soon as `isDue`; false when it ended before. */
async function killedSync(
  t: TestContext,
  url: string,
  argv: readonly string[],
  isDue: () => Promise<boolean>,
): Promise<boolean> {
  const child = spawn(process.execPath, [join(PROJECT, 'src', 'cli', 'fleet.ts'), ...argv], {
    env: childEnv({ DATABASE_URL: url }),
    stdio: 'ignore',
  });
  t.after(() => child.kill('SIGKILL'));
  let hasEnded = false;
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      hasEnded = true;
      resolve();
    });
  });
  await waitFor(async () => hasEnded || (await isDue()));
  const isKilled = !hasEnded;
  child.kill('SIGKILL');
  await ended;
  return isKilled;
}

test(`the nightly sync of ${AREAS} areas, killed in the middle and repeated, ends like one that was not`, {
  skip,
}, async (t) => {
  const { url } = await createDatabase(t);
  const admin = adminOf(url);
  for (const email of [EMAIL, CALM]) await admin.account(email);
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());
  const folder = await mkdtemp(join(tmpdir(), 'fleet-sync-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'areas.geojson');
  const random = seededRandom(SEED);
  const script = guideBlock('nightly-sync', { 'areas.geojson': file });

  let killed = 0;
  for (let night = 0; night <= LAST_NIGHT; night++) {
    await writeFile(file, nightFile(night));
    if (night > 1) {
      // Somewhere between the first write of this night and its last: deletions come at the end.
      const [{ version: before = 0 } = {}] = await sql<{ version: number }[]>`
        select version from world w join account a on a.world_id = w.id where a.email = ${EMAIL}`;
      const writes = 1 + Math.floor(random() * Math.ceil(AREAS / 200));
      const argv = ['area:sync', '--email', EMAIL, '--prune', file];
      const isKilled = await killedSync(t, url, argv, async () => {
        const [{ version = 0 } = {}] = await sql<{ version: number }[]>`
          select version from world w join account a on a.world_id = w.id where a.email = ${EMAIL}`;
        return version >= before + writes;
      });
      if (isKilled) killed++;
    }
    if (night === 1 || IS_TORTURE) {
      const shell = paste(t, script, PROJECT, { DATABASE_URL: url });
      assert.equal(await shell.ended, 0, shell.lines.join('\n'));
      const [plan, done] = shell.lines.filter((line) => line.startsWith('{'));
      assert.equal(plan, done, 'the dry run printed what was done');
    } else await admin.run('area:sync', '--email', EMAIL, '--prune', file);
    await admin.run('area:sync', '--email', CALM, '--prune', file);
    assert.deepEqual(await areasOf(sql, EMAIL), await areasOf(sql, CALM));
  }
  const [{ count = 0 } = {}] = await sql<{ count: number }[]>`
    select count(*)::int as count from area a join account o on o.id = a.account_id where o.email = ${EMAIL}`;
  assert.equal(count, JSON.parse(nightFile(LAST_NIGHT)).features.length);
  t.diagnostic(`killed in the middle on ${killed} of ${KILLS} nights`);

  await t.test('a file that would delete too much stops the script before anything is deleted', async (t) => {
    const { type, features } = JSON.parse(nightFile(LAST_NIGHT));
    await writeFile(file, JSON.stringify({ type, features: features.slice(0, 50) }));
    const shell = paste(t, script, PROJECT, { DATABASE_URL: url });
    assert.notEqual(await shell.ended, 0);
    assert.match(shell.lines.join('\n'), /areas would be deleted/);
    assert.deepEqual(await areasOf(sql, EMAIL), await areasOf(sql, CALM));
  });
});
