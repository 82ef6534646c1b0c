import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openSql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { guideSection } from './guide.ts';

const SECTION = guideSection('What can grow');
const QUOTED = new Set([...SECTION.matchAll(/`([^`]+)`/g)].map((match) => match[1]));

describe('what can grow', () => {
  test('has every table of Postgres, and every quota of a plan', async (t) => {
    const { url } = await createDatabase(t);
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    t.after(() => sql.end());
    const tables = await sql<{ name: string }[]>`
      select relname as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`;
    const quotas = await sql<{ name: string }[]>`
      select column_name as name from information_schema.columns
      where table_name = 'plan' and column_name like 'max%'`;
    const missing = [...tables, ...quotas].filter(({ name }) => !QUOTED.has(name));
    assert.deepEqual(missing, []);
  });

  test('says of everything how many bytes one takes, its bound, and which tests hold it', () => {
    const rows = SECTION.split('\n').filter((line) => /^\| (?!what |-)/.test(line));
    assert.ok(rows.length > 0);
    for (const row of rows) {
      const [, what, bytes, bound, tests] = row.split('|').map((cell) => cell.trim());
      assert.ok(what && bytes && bound, row);
      assert.match(tests ?? '', /^`test\/\S+\.test\.ts`(, `test\/\S+\.test\.ts`)*$/, row);
    }
  });
});
