import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { splitStatements } from '../../../src/postgres/migrationFiles.ts';
import type { Tx } from '../../../src/postgres/sql.ts';
import { sqlState } from '../../../src/postgres/sqlErrors.ts';

/** Which tables can be so large that to read one takes seconds, and which never are. Partitions are their tables. */
export const TABLE_SIZES: { readonly large: readonly string[]; readonly small: readonly string[] } =
  JSON.parse(readFileSync(join(import.meta.dirname, '../../../sql/table_sizes.json'), 'utf8'));

/** Modes in which nobody else can write: SHARE, SHARE ROW EXCLUSIVE, EXCLUSIVE and ACCESS EXCLUSIVE. */
const HOLDS_UP_WRITERS = ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'];
/** SQLSTATE of what cannot be in a transaction, such as `create index concurrently`. */
const ACTIVE_TRANSACTION = '25001';
const IN_STEPS = 'Put it into the steps of the migration, which run beside the service';
const INSTEAD = `${IN_STEPS}: create index concurrently, add a constraint not valid and validate it in a step, write rows in batches.`;

/** What one statement has done to the tables that can be large. */
interface Effects {
  readonly rewritten: readonly string[];
  readonly read: readonly string[];
  readonly written: readonly string[];
  /** Tables, large or small, and the mode in which the transaction now holds them. */
  readonly held: readonly string[];
}

/**
 * Runs a migration, as the service does, and says of each statement why it would hold up the service. An empty list: it
 * changes the catalog only, whatever the size of the tables. The database needs rows in every large table.
 */
export async function faultsOf(tx: Tx, file: string): Promise<string[]> {
  const faults: string[] = [];
  const known = await selectRelations(tx);
  for (const { text, line } of splitStatements(file)) {
    const before = await selectUse(tx, known);
    try {
      await tx.unsafe(text);
    } catch (error) {
      if (sqlState(error) !== ACTIVE_TRANSACTION) throw error;
      return [...faults, `line ${line} cannot be in a transaction. ${IN_STEPS}.`];
    }
    const fault = faultOf(await effectsSince(tx, known, before));
    if (fault !== null) faults.push(`line ${line} ${fault} ${INSTEAD}`);
  }
  return faults;
}

function faultOf({ rewritten, read, written, held }: Effects): string | null {
  if (rewritten.length > 0) return `writes ${rewritten} anew.`;
  if (written.length > 0) return `writes rows of ${written} in one transaction.`;
  if (read.length > 0 && held.length > 0) return `reads ${read} and holds ${held} meanwhile.`;
  return null;
}

/** Tables, indexes and TOAST of before the migration by their ids, each with the name of its table. */
type Relations = ReadonlyMap<number, string>;

async function selectRelations(tx: Tx): Promise<Relations> {
  const rows = await tx<{ oid: number; name: string }[]>`
    with tables as (
      select t.oid, t.reltoastrelid, root.relname
      from pg_class t join pg_class root on root.oid = coalesce(pg_partition_root(t.oid), t.oid)
      where t.relnamespace = 'public'::regnamespace and t.relkind in ('r', 'p')),
    heaps as (
      select oid, relname from tables
      union all select reltoastrelid, relname from tables where reltoastrelid <> 0)
    select oid::bigint as oid, relname as name from heaps
    union all
    select i.indexrelid::bigint, h.relname from heaps h join pg_index i on i.indrelid = h.oid`;
  return new Map(rows.map(({ oid, name }) => [oid, name]));
}

/** The file of a relation, and what this session has read and written of it. */
interface Use {
  readonly file: number | null;
  readonly read: number;
  readonly written: number;
}

async function selectUse(tx: Tx, known: Relations): Promise<Map<number, Use>> {
  const rows = await tx<(Use & { oid: number })[]>`
    select c.oid::bigint as oid, pg_relation_filenode(c.oid)::bigint as file,
      coalesce(s.seq_scan + s.seq_tup_read + s.idx_scan, s.seq_scan + s.seq_tup_read, 0) as read,
      coalesce(s.n_tup_ins + s.n_tup_upd + s.n_tup_del, 0) as written
    from pg_class c left join pg_stat_xact_all_tables s on s.relid = c.oid`;
  return new Map(rows.filter(({ oid }) => known.has(oid)).map(({ oid, ...use }) => [oid, use]));
}

async function effectsSince(tx: Tx, known: Relations, before: Map<number, Use>): Promise<Effects> {
  const after = await selectUse(tx, known);
  const changed = (differs: (then: Use, now: Use) => boolean): string[] =>
    namesOf(
      known,
      [...after].filter(([oid, now]) => differs(before.get(oid) as Use, now)).map(([oid]) => oid),
    ).filter((name) => TABLE_SIZES.large.includes(name));
  const locks = await tx<{ oid: number; mode: string }[]>`
    select relation::bigint as oid, mode from pg_locks
    where pid = pg_backend_pid() and granted and relation is not null`;
  return {
    rewritten: changed((then, now) => then.file !== now.file),
    read: changed((then, now) => then.read !== now.read),
    written: changed((then, now) => then.written !== now.written),
    held: namesOf(
      known,
      locks.filter(({ mode }) => HOLDS_UP_WRITERS.includes(mode)).map(({ oid }) => oid),
    ),
  };
}

function namesOf(known: Relations, oids: readonly number[]): string[] {
  return [...new Set(oids.flatMap((oid) => known.get(oid) ?? []))].sort();
}
