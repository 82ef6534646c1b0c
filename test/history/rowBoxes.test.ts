import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSql } from '../../src/postgres/sql.ts';
import { boxAllRows } from '../support/history/boxAllRows.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

test('boxes of points are kept for five days: by then the points are packed', async (t) => {
  const { url } = await createDatabase(t);
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  t.after(() => sql.end());
  await sql`
    insert into row_box (device_id, begins_at, south, west, north, east)
    select 1, now() - make_interval(days => days), 0, 0, 1, 1 from unnest(array[1, 4, 6, 30]) as days`;
  await boxAllRows(sql, Date.now() - 3_600_000);
  const left = await sql<{ days: number }[]>`
    select extract(day from now() - begins_at)::int as days from row_box order by 1`;
  assert.deepEqual(
    left.map(({ days }) => days),
    [1, 4],
  );
});
