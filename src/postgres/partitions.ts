import { WEEK_MS, weekStartMs } from '../lib/time.ts';
import type { Sql } from './sql.ts';
import { isUnavailable } from './sqlErrors.ts';
import { identifier } from './sqlText.ts';

/** The id of the advisory lock under which pods create and drop partitions. */
export const PARTITION_LOCK = 7_301_002;

/** A table with a partition for each week, and the column that it is partitioned by. */
interface WeeklyTable {
  readonly name: string;
  readonly column: string;
}

export const POSITIONS: WeeklyTable = { name: 'position', column: 'recorded_at' };
/** The packed points of the same weeks. */
export const PACKED_POINTS: WeeklyTable = { name: 'packed_points', column: 'first_at' };
export const DELIVERIES: WeeklyTable = { name: 'webhook_delivery', column: 'created_at' };

/** The partition of the week that starts at `mondayMs`. */
export const partitionName = (table: WeeklyTable, mondayMs: number): string =>
  `${table.name}_w${new Date(mondayMs).toISOString().slice(0, 10).replaceAll('-', '')}`;

/**
 * Makes sure that the weeks starting at `mondaysMs` have partitions. The new table gets its constraints first and is
 * attached afterwards, because attaching does not block writers of other weeks. `create table … partition of` would.
 */
export async function ensureWeeks(sql: Sql, table: WeeklyTable, mondaysMs: readonly number[]): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${PARTITION_LOCK})`;
    for (const mondayMs of mondaysMs) {
      const name = partitionName(table, mondayMs);
      const [present] = await tx`select 1 from pg_class where relname = ${name} and relispartition`;
      if (present !== undefined) continue;
      const from = new Date(mondayMs).toISOString();
      const to = new Date(mondayMs + WEEK_MS).toISOString();
      await tx`create table ${identifier(name)} (like ${identifier(table.name)} including all)`;
      await tx.unsafe(
        `alter table "${name}" add constraint week check (${table.column} >= '${from}' and ${table.column} < '${to}')`,
      );
      await tx.unsafe(
        `alter table ${table.name} attach partition "${name}" for values from ('${from}') to ('${to}')`,
      );
      await tx.unsafe(`alter table "${name}" drop constraint week`);
    }
  });
}

/** Drops the weeks that ended before `oldestMs`; returns their names. */
export async function dropWeeksBefore(sql: Sql, table: WeeklyTable, oldestMs: number): Promise<string[]> {
  const partitions = await sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table.name}::regclass order by c.relname`;
  const keepFrom = partitionName(table, weekStartMs(oldestMs));
  const dropped: string[] = [];
  for (const { name } of partitions) {
    if (name >= keepFrom) continue;
    await sql.begin(async (tx) => {
      // Dropping waits for every reader and writer of the table, and others wait behind it. So it gives up quickly.
      await tx`set local lock_timeout = '2s'`;
      await tx`select pg_advisory_xact_lock(${PARTITION_LOCK})`;
      await tx`drop table if exists ${identifier(name)}`;
    });
    dropped.push(name);
  }
  return dropped;
}

/**
 * Finds weeks that ended before `endedMs` and have no rows but still hold space: deleted rows leave their pages and the
 * index behind. Returns the Mondays.
 */
export async function selectEmptiedWeeks(sql: Sql, table: WeeklyTable, endedMs: number): Promise<number[]> {
  const partitions = await sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table.name}::regclass and pg_relation_size(c.oid) > 0 order by c.relname`;
  const emptied: number[] = [];
  for (let at = 0; at < partitions.length; at++) {
    const { name } = partitions[at] as { name: string };
    const mondayMs = mondayOf(name);
    if (mondayMs + WEEK_MS > endedMs) continue;
    const [row] = await sql`select from ${identifier(name)} limit 1`;
    if (row === undefined) emptied.push(mondayMs);
  }
  return emptied;
}

/**
 * Gives back the space of a week that has no row. The rows must have been deleted for longer than any transaction lasts:
 * one that began before would not find them any more. False: it has rows again, or somebody reads the table just now.
 */
export async function truncateWeek(sql: Sql, table: WeeklyTable, mondayMs: number): Promise<boolean> {
  const name = identifier(partitionName(table, mondayMs));
  try {
    return await sql.begin(async (tx) => {
      // Readers of the whole table wait for this one, and this one for them.
      await tx`set local lock_timeout = '200ms'`;
      await tx`lock table ${name} in access exclusive mode`;
      const [row] = await tx`select from ${name} limit 1`;
      if (row !== undefined) return false;
      await tx`truncate ${name}`;
      return true;
    });
  } catch (error) {
    if (isUnavailable(error)) return false;
    throw error;
  }
}

/** The week of a partition, from its name. */
function mondayOf(name: string): number {
  const [, year, month, day] = /_w(\d{4})(\d{2})(\d{2})$/.exec(name) ?? [];
  return Date.UTC(Number(year), Number(month) - 1, Number(day));
}
