import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { weekStartMs } from '../../src/lib/time.ts';
import { dropWeeksBefore, ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const WEEK_MS = 7 * 86_400_000;
const MONDAY_MS = Date.UTC(2026, 2, 9);
const weeks = (...numbers: number[]): number[] => numbers.map((n) => MONDAY_MS + n * WEEK_MS);

async function open(t: TestContext): Promise<Sql> {
  const { url, drop } = await createDatabase();
  const sql = openSql(url, { maxConnections: 6, name: 'test' });
  t.after(async () => {
    await sql.end();
    await drop();
  });
  return sql;
}

async function partitions(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = 'position'::regclass order by 1`;
  return rows.map(({ name }) => name);
}

const insert = (sql: Pick<Sql, 'unsafe'>, ms: number) =>
  sql.unsafe(`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
    values (1, '${new Date(ms).toISOString()}', 1, 1, 0, 0, 0, 0)`);

describe('a week', () => {
  for (const [iso, monday] of [
    ['2026-03-09T00:00:00.000Z', '2026-03-09'],
    ['2026-03-15T23:59:59.999Z', '2026-03-09'],
    ['2026-03-16T00:00:00.000Z', '2026-03-16'],
    ['2026-01-01T12:00:00.000Z', '2025-12-29'],
    ['2024-02-29T00:00:00.000Z', '2024-02-26'],
    ['1970-01-01T00:00:00.000Z', '1969-12-29'],
  ] as const) {
    test(`of ${iso} starts on Monday, ${monday}, at midnight UTC`, () => {
      assert.equal(new Date(weekStartMs(Date.parse(iso))).toISOString(), `${monday}T00:00:00.000Z`);
    });
  }
});

describe('partitions', () => {
  test('are made once, however often and by however many they are asked for', async (t) => {
    const sql = await open(t);
    await Promise.all(Array.from({ length: 6 }, (_, n) => ensureWeeks(sql, POSITIONS, weeks(n % 3, 1))));
    await ensureWeeks(sql, POSITIONS, weeks(2, 2, 0));
    assert.deepEqual(await partitions(sql), [
      'position_w20260309',
      'position_w20260316',
      'position_w20260323',
    ]);
  });

  test('take the first and the last millisecond of their week', async (t) => {
    const sql = await open(t);
    await ensureWeeks(sql, POSITIONS, weeks(0, 1));
    for (const ms of [MONDAY_MS, MONDAY_MS + WEEK_MS - 1, MONDAY_MS + WEEK_MS]) await insert(sql, ms);
    await assert.rejects(insert(sql, MONDAY_MS - 1));
    await assert.rejects(insert(sql, MONDAY_MS + 2 * WEEK_MS));
    const rows = await sql<{ week: string }[]>`
      select tableoid::regclass::text as week from position order by recorded_at`;
    assert.deepEqual(
      rows.map(({ week }) => week),
      ['position_w20260309', 'position_w20260309', 'position_w20260316'],
    );
  });

  test('are made without waiting for those who write into others', async (t) => {
    const sql = await open(t);
    await ensureWeeks(sql, POSITIONS, weeks(0));
    await sql.begin(async (tx) => {
      await insert(tx, MONDAY_MS);
      await ensureWeeks(sql, POSITIONS, weeks(1)); // would fail after the lock time-out
      await insert(tx, MONDAY_MS + 1);
    });
    assert.equal((await partitions(sql)).length, 2);
  });

  test('are dropped when their whole week is older than what any plan keeps, and made again when needed', async (t) => {
    const sql = await open(t);
    await ensureWeeks(sql, POSITIONS, weeks(0, 1, 2));
    for (const week of [0, 1, 2]) await insert(sql, MONDAY_MS + week * WEEK_MS);
    assert.deepEqual(await dropWeeksBefore(sql, POSITIONS, MONDAY_MS + WEEK_MS - 1), []);
    assert.deepEqual(await dropWeeksBefore(sql, POSITIONS, MONDAY_MS + 2 * WEEK_MS - 1), [
      'position_w20260309',
    ]);
    assert.deepEqual(await dropWeeksBefore(sql, POSITIONS, MONDAY_MS + 2 * WEEK_MS), ['position_w20260316']);
    assert.equal((await sql`select from position`).count, 1);
    await ensureWeeks(sql, POSITIONS, weeks(0));
    assert.deepEqual(await partitions(sql), ['position_w20260309', 'position_w20260323']);
  });
});
