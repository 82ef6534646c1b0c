import { setTimeout as sleep } from 'node:timers/promises';
import { RepeatedWork } from '../lib/repeatedWork.ts';
import {
  type IndexStep,
  MIGRATIONS_FOLDER,
  type Migration,
  readMigrations,
  type Step,
} from './migrationFiles.ts';
import type { Query, Sql, Tx } from './sql.ts';
import { isUnavailable, sqlState } from './sqlErrors.ts';

/** The id of the advisory lock of the one session that runs steps. It must be the same in every version of this service. */
const STEPS_LOCK = 7_215_081_948;
/**
 * A statement that waits for the lock of a table holds up everybody who asks for the table after it. So it waits for a
 * moment only, less than any caller does, and leaves the table to them before it tries again.
 */
export const LOCK_TRY = '1s';
export const LOCK_PAUSE_MS = 3_000;
/** How many attempts: some ten minutes in total. */
export const LOCK_TRIES = 150;
/** SQLSTATEs (appendix A of Postgres' manual): lock_not_available, deadlock_detected, undefined_table. */
export const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK = '40P01';
const UNDEFINED_TABLE = '42P01';

export interface StepsPorts {
  readonly sql: Sql;
  readonly log: (message: string, fields: object) => void;
  /** Between two batches of rows; a batch is followed by a rest of twice its time. */
  readonly rest: (ms: number) => Promise<unknown>;
  /** Told how many steps are not done. */
  readonly onWaiting: (steps: number) => void;
}

/**
 * Runs the steps of migrations beside the service, when it is started and when it is woken. After a step has failed by
 * itself, as a constraint does that rows violate, it tries none until the next start, and only looks whether another process
 * has done them.
 */
export function stepsWork(
  ports: StepsPorts,
  onFailure: (error: unknown) => void,
  folder: string = MIGRATIONS_FOLDER,
): RepeatedWork {
  let hasFailed = false;
  return new RepeatedWork(async (stopped) => {
    const migrations = await readMigrations(folder);
    if (hasFailed) return ports.onWaiting((await selectWaiting(ports.sql, migrations)).length);
    try {
      await runSteps(migrations, ports, stopped);
    } catch (error) {
      hasFailed = !isUnavailable(error);
      throw error;
    }
  }, onFailure);
}

/**
 * Runs the steps that are not done, in order, and returns how many are left: none, or those that another process runs now,
 * or all that come after `stopped`. One session runs them all under a lock. When its process is killed, Postgres ends the
 * statement it has begun before it lets the lock go, so no step runs twice at a time. The migrations must be applied.
 */
export async function runSteps(
  migrations: readonly Migration[],
  ports: StepsPorts,
  stopped: AbortSignal,
): Promise<number> {
  let left = (await selectWaiting(ports.sql, migrations)).length;
  ports.onWaiting(left);
  if (left === 0 || stopped.aborted) return left;
  await ports.sql.session(async (own) => {
    const stop = new Promise<void>((resolve) => stopped.addEventListener('abort', () => resolve()));
    const run = async (): Promise<void> => {
      const [lock] = await own<
        { taken: boolean }[]
      >`select pg_try_advisory_lock(${STEPS_LOCK}::bigint) as taken`;
      if (lock?.taken !== true) return;
      for (const step of await selectWaiting(own, migrations)) {
        await runStep(own, step, ports);
        ports.onWaiting(--left);
      }
    };
    // The session is closed when this settles: Postgres may go on with the statement, and nothing is lost.
    await Promise.race([run(), stop]);
  });
  left = (await selectWaiting(ports.sql, migrations)).length;
  ports.onWaiting(left);
  return left;
}

/** A step, and where it is recorded. */
type WaitingStep = Step & { readonly migration: string; readonly number: number };

/** The steps of applied migrations that are not done. */
export async function selectWaiting(sql: Query, migrations: readonly Migration[]): Promise<WaitingStep[]> {
  const rows = await sql<{ key: string }[]>`
    select name as key from schema_migration
    union all select migration || ' ' || step from migration_step where done_at is not null`;
  const keys = new Set(rows.map(({ key }) => key));
  return migrations
    .filter(({ name }) => keys.has(name))
    .flatMap(({ name: migration, steps }) => steps.map((step, n) => ({ ...step, migration, number: n + 1 })))
    .filter(({ migration, number }) => !keys.has(`${migration} ${number}`));
}

async function runStep(own: Tx, step: WaitingStep, { log, rest }: StepsPorts): Promise<void> {
  const { migration, number, line } = step;
  const startMs = performance.now();
  log('a step of a migration begins', { migration, line });
  try {
    // A step may wait for long transactions without a limit, since nobody waits for the step.
    await own`select set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)`;
    if (step.kind === 'index') await createIndex(own, step, rest);
    else if (step.kind === 'batches') await writeBatches(own, step, rest);
    else await own.unsafe(step.text);
  } catch (error) {
    if (isUnavailable(error)) throw error;
    const reason = error instanceof Error ? error.message : error;
    throw new Error(`The step in line ${line} of migration ${migration} failed: ${reason}`, { cause: error });
  }
  await own`
    insert into migration_step (migration, step, done_at) values (${migration}, ${number}, now())
    on conflict (migration, step) do update set done_at = excluded.done_at`;
  log('a step of a migration is done', { migration, line, tookMs: Math.round(performance.now() - startMs) });
}

/** Builds an index concurrently with writers. For a partitioned table it is built in each partition, then attached. */
async function createIndex(own: Tx, step: Step & IndexStep, rest: StepsPorts['rest']): Promise<void> {
  const { name, table, definition } = step;
  const unique = step.unique ? 'unique ' : '';
  const [found] = await own`
    select from pg_class where oid = to_regclass(${table}) and relkind = 'p'`;
  if (found === undefined) return buildIndex(own, name, step.text);
  await inMoments(own, rest, `create ${unique}index if not exists ${name} on only ${table} ${definition}`);
  for (;;) {
    const [partition] = await own<{ name: string }[]>`
      select c.relname as name from pg_inherits p join pg_class c on c.oid = p.inhrelid
      where p.inhparent = to_regclass(${table}) and not exists (
        select from pg_inherits i join pg_index x on x.indexrelid = i.inhrelid
        where i.inhparent = to_regclass(${name}) and x.indrelid = p.inhrelid)
      order by c.relname limit 1`;
    if (partition === undefined) return;
    const childName = `${partition.name}_${name}`;
    try {
      await buildIndex(
        own,
        childName,
        `create ${unique}index concurrently ${childName} on ${partition.name} ${definition}`,
      );
      await inMoments(own, rest, `alter index ${name} attach partition ${childName}`);
    } catch (error) {
      // Housekeeping has dropped the partition.
      if (sqlState(error) !== UNDEFINED_TABLE) throw error;
    }
  }
}

/** An invalid index is one whose build was interrupted. It is built again. */
async function buildIndex(own: Tx, name: string, text: string): Promise<void> {
  const [index] = await own<{ valid: boolean }[]>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass(${name})`;
  if (index?.valid === true) return;
  if (index !== undefined) await own.unsafe(`drop index concurrently if exists ${name}`);
  await own.unsafe(text);
}

/** For a change of the catalog during which the table can neither be read nor written. */
async function inMoments(own: Tx, rest: StepsPorts['rest'], text: string): Promise<void> {
  await own`select set_config('lock_timeout', ${LOCK_TRY}, false)`;
  for (let tries = 1; ; tries++) {
    try {
      await own.unsafe(text);
      break;
    } catch (error) {
      if (!isLocked(error) || tries === LOCK_TRIES) throw error;
      await rest(LOCK_PAUSE_MS);
    }
  }
  await own`select set_config('lock_timeout', '0', false)`;
}

/** True when somebody else has locked what a statement needs. */
export function isLocked(error: unknown): boolean {
  return [LOCK_NOT_AVAILABLE, DEADLOCK].includes(sqlState(error) ?? '');
}

const REST_SHARE = 2;

/**
 * Runs a statement again and again, each time with the position up to which it has come (text; null at first), which it
 * returns as `position` until it finds no more rows. Each position is stored together with the rows.
 */
async function writeBatches(
  own: Tx,
  { text, migration, number }: WaitingStep,
  rest: StepsPorts['rest'],
): Promise<void> {
  const [row] = await own<{ position: string | null }[]>`
    select position from migration_step where migration = ${migration} and step = ${number}`;
  const strings = text.split('$1');
  let position = row?.position ?? null;
  for (;;) {
    const startMs = performance.now();
    const values = strings.slice(1).map(() => position);
    await own`begin`;
    const [next] = await own<{ position: string | null }[]>`${{ strings, values }}`;
    position = next?.position ?? null;
    if (position !== null)
      await own`
        insert into migration_step (migration, step, position) values (${migration}, ${number}, ${position})
        on conflict (migration, step) do update set position = excluded.position`;
    await own`commit`;
    if (position === null) return;
    await rest((performance.now() - startMs) * REST_SHARE);
  }
}

/** Runs the steps of earlier migrations before a later one is applied, which may need what they do. */
export async function finishSteps(
  migrations: readonly Migration[],
  sql: Sql,
  log: StepsPorts['log'],
): Promise<void> {
  log('the steps of earlier migrations come first', {});
  const ports = { sql, log, rest: sleep, onWaiting: () => undefined };
  while ((await runSteps(migrations, ports, new AbortController().signal)) > 0) await sleep(LOCK_PAUSE_MS);
}
