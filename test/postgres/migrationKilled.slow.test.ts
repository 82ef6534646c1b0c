import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { after, before, describe, type TestContext, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { putFewRows } from '../support/postgres/fewRows.ts';
import {
  makeLaterMigrations,
  migrateAside,
  proveUnlocked,
  stateOf,
} from '../support/postgres/killedMigration.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const KILLS = 2;
const POINTS = IS_TORTURE ? 1_000_000 : 10_000;
const KILL_WITHIN_MS = 3_000;

let folder: string;
before(async () => {
  folder = await makeLaterMigrations(2);
});
after(() => rm(folder, { recursive: true }));

/** A database of this version with a few rows. */
async function open(t: TestContext): Promise<{ url: string; sql: Sql }> {
  const { url, drop } = await createDatabase();
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(async () => {
    await sql.end();
    await drop();
  });
  await putFewRows(sql);
  return { url, sql };
}

describe('a process that migrates is killed', () => {
  test(`at ${IS_TORTURE ? 'every statement' : `${KILLS} statements`}, and the next one goes on (seed ${SEED})`, async (t) => {
    const calm = await open(t);
    const statements = Number(await migrateAside({ url: calm.url, folder }));
    const expected = await stateOf(calm.sql);
    assert.ok(statements > 50, `${statements} statements`);
    const all = Array.from({ length: statements }, (_, n) => n + 1).flatMap((at) => [
      { at, death: 'under way' as const },
      { at, death: 'answered' as const },
    ]);
    const random = seededRandom(SEED);
    const some = Array.from(
      { length: KILLS },
      () => all[Math.floor(random() * all.length)] as (typeof all)[0],
    );
    for (const { at, death } of IS_TORTURE ? all : some) {
      const { url, sql } = await open(t);
      const where = `statement ${at} of ${statements}, ${death}`;
      assert.equal(await migrateAside({ url, folder }, { at, death }), null, where);
      assert.notEqual(await migrateAside({ url, folder }), null, where);
      assert.deepEqual(await stateOf(sql), expected, where);
      await proveUnlocked(sql);
    }
  });

  test(`again and again at any moment with ${POINTS} points, and it ends (seed ${SEED})`, async (t) => {
    const calm = await open(t);
    await migrateAside({ url: calm.url, folder });
    const expected = await stateOf(calm.sql);
    const { url, sql } = await open(t);
    await sql.unsafe(`
      set statement_timeout = 0;
      insert into position select 1000 + n / 10000, timestamptz '2026-03-09' + n % 10000 * interval '1 minute', 1, 1, 0, 0, 0, 0
      from generate_series(1, ${POINTS}) n`);
    const random = seededRandom(SEED);
    let kills = 0;
    // Each has longer than the one before, so that one of them comes to the end.
    for (let limitMs = KILL_WITHIN_MS; ; limitMs *= 1.2) {
      if ((await migrateAside({ url, folder }, undefined, limitMs * random())) !== null) break;
      kills++;
    }
    t.diagnostic(`${kills} kills`);
    assert.deepEqual(await stateOf(sql), expected);
    await proveUnlocked(sql);
  });
});
