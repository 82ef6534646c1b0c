import { DatabaseError, Pool, type PoolClient, type QueryConfig, type QueryResult, types } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { DeadlineExceeded } from '../base/deadline.ts';
import { invariant } from '../base/invariant.ts';
import { compileSql, type SqlText } from './sqlText.ts';

/** How long one statement may run, wait for a lock, or hold a transaction open without saying a word. A pod that
 * was stopped in the middle of a transaction must not keep a device locked for ever. */
const STATEMENT_TIMEOUT_MS = 30_000;
const LOCK_TIMEOUT_MS = 10_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A new connection takes a process of Postgres and some milliseconds: who calls now and then finds one. */
const IDLE_TIMEOUT_MS = 60_000;
/** A statement is given up, and its connection with it, when Postgres itself should have ended it long ago: its
 * machine has vanished without a word, and the system would go on sending to it for a quarter of an hour. */
const SILENCE_LIMIT_MS = STATEMENT_TIMEOUT_MS + 10_000;

/** The rows of a statement, and how many it touched. */
export type Rows<T> = T & { readonly count: number };

/**
 * A statement as a tagged template: sql`select … where id = ${id}`. Values become parameters; a statement inside a
 * statement is laid into it. Nothing is sent before it is awaited.
 */
export type Query = <T extends readonly object[] = readonly Readonly<Record<string, unknown>>[]>(
  strings: TemplateStringsArray,
  ...values: readonly unknown[]
) => Statement<T>;

/** The client inside a transaction. */
export interface Tx extends Query {
  /**
   * Text that was put together by this program, without parameters; several statements may be in it. It may take as
   * long as `statement_timeout` says; all others are given up after 40 s.
   */
  unsafe<T extends readonly object[] = readonly object[]>(text: string): Promise<Rows<T>>;
  /**
   * Hands all that a query without parameters selects to `use`, in the binary format of COPY, cut anywhere; the next
   * piece is not read before `use` has settled. When `use` fails the rest is passed over, and the failure told then.
   */
  copy(query: SqlText, use: UseBytes): Promise<void>;
}

type UseBytes = (bytes: Buffer) => void | Promise<void>;

/** The client that every store file takes. bigint columns are numbers, timestamps are Dates. */
export interface Sql extends Tx {
  /** Runs `work` in a transaction, with options such as an isolation level; rolls back when it rejects. */
  begin<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  begin<T>(options: string, work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Waits for what runs, then closes every connection. */
  end(): Promise<void>;
}

export interface SqlOptions {
  readonly maxConnections: number;
  readonly name: string;
  /** How long one statement may run, where it is less than usual. */
  readonly statementLimitMs?: number;
  /** Further settings of each session, as Postgres' command line takes them. */
  readonly settings?: string;
}

/** Postgres could not be reached, or went away; what it was asked for may have happened. */
export class PostgresUnreachable extends Error {
  override name = 'PostgresUnreachable';
  /** Of the system, such as ECONNREFUSED, where there is one. */
  readonly code: string;

  constructor(cause: unknown) {
    const { code } = cause as { code?: unknown };
    const reason = typeof code === 'string' ? code : 'CONNECTION_LOST';
    super(`Postgres cannot be reached (${reason})`, { cause });
    this.code = reason;
  }
}

/** Opens a lazy pool on `url`. Nothing is sent before the first query. */
export function openSql(url: string, options: SqlOptions): Sql {
  return sqlOn(openPool(url, options), (work) => work());
}

/** The connections of `openSql`, without a way to ask over them. */
export function openPool(url: string, options: SqlOptions): Pool {
  const pool = new Pool({
    connectionString: url,
    max: options.maxConnections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    application_name: options.name,
    statement_timeout: options.statementLimitMs ?? STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    options: `-c TimeZone=UTC ${options.settings ?? ''}`,
    keepAlive: true,
    types: { getTypeParser },
  });
  // An idle connection was lost: the pool has dropped it, and whoever asks next gets another.
  pool.on('error', () => undefined);
  // One may also be lost in the moment in which it is lent, when neither the pool nor the borrower listens; an error
  // that nobody hears would end the process. Whoever asks it anything is told.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** Begins work that takes one connection of a pool, at once or when its turn has come. */
type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

/** Asks over the connections of `pool`; each statement and each transaction waits for its turn first. */
export function sqlOn(pool: Pool, inTurn: InTurn): Sql {
  const lend = <T>(work: (client: PoolClient) => Promise<T>) => inTurn(() => withClient(pool, work));
  const run: Run = (text, values, name) => lend((client) => ask(client, text, values, name));
  return Object.assign(queryOn(run), {
    unsafe: (text: string) => lend((client) => askPatiently(client, text)),
    copy: (query: SqlText, use: UseBytes) => lend((client) => copyOut(client, query, use)),
    begin: (first: unknown, second?: unknown) =>
      lend((client) =>
        typeof first === 'string'
          ? transaction(client, ` ${first}`, second as Work)
          : transaction(client, '', first as Work),
      ),
    end: () => pool.end(),
  }) as Sql;
}

type Run = (text: string, values?: readonly unknown[], name?: string) => Promise<Rows<readonly object[]>>;
type Work = (tx: Tx) => Promise<unknown>;

/** A statement that was written and not yet sent; it is sent once, when it is first waited for. */
export class Statement<T> implements Promise<Rows<T>>, SqlText {
  readonly [Symbol.toStringTag] = 'Statement';
  readonly strings: readonly string[];
  readonly values: readonly unknown[];
  readonly #run: Run;
  #name: string | undefined;
  #answer: Promise<Rows<T>> | null = null;

  constructor(run: Run, { strings, values }: SqlText) {
    this.#run = run;
    this.strings = strings;
    this.values = values;
  }

  /**
   * Lets every session keep its plan under a name, for a statement that is asked often and costs more to plan than to
   * run. The text must be the same every time, and its columns must be listed: a plan with `*` in its answer fails when
   * a later version of the schema has another column.
   */
  named(name: string): this {
    this.#name = name;
    return this;
  }

  // biome-ignore lint/suspicious/noThenProperty: a statement is awaited like a promise, but only sent then
  then<A = Rows<T>, B = never>(
    onAnswer?: ((rows: Rows<T>) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#send().then(onAnswer, onError);
  }

  catch<B = never>(onError?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<Rows<T> | B> {
    return this.#send().catch(onError);
  }

  finally(onSettled?: (() => void) | null): Promise<Rows<T>> {
    return this.#send().finally(onSettled);
  }

  #send(): Promise<Rows<T>> {
    if (this.#answer === null) {
      const { text, values } = compileSql(this, isSqlText);
      // The caller of the template says what the rows are: nothing can check it before Postgres answers.
      this.#answer = this.#run(text, values, this.#name) as Promise<unknown> as Promise<Rows<T>>;
    }
    return this.#answer;
  }
}

function isSqlText(value: unknown): value is SqlText {
  return (
    value instanceof Statement ||
    (typeof value === 'object' && value !== null && 'strings' in value && 'values' in value)
  );
}

function queryOn(run: Run): Query {
  return (strings, ...values) => new Statement(run, { strings, values });
}

async function transaction(client: PoolClient, options: string, work: Work): Promise<unknown> {
  const run: Run = (text, values, name) => ask(client, text, values, name);
  const unsafe = (text: string) => askPatiently(client, text);
  const copy = (query: SqlText, use: UseBytes) => copyOut(client, query, use);
  const tx = Object.assign(queryOn(run), { unsafe, copy }) as Tx;
  await run(`begin${options}`);
  let result: unknown;
  try {
    result = await work(tx);
  } catch (error) {
    if (!(error instanceof PostgresUnreachable)) await run('rollback');
    throw error;
  }
  const end = await client.query(impatient('commit', [])).catch(rethrow);
  if (end.command !== 'COMMIT')
    throw new Error('a failed statement was passed over; the transaction was rolled back');
  return result;
}

/** Lends a connection. After a loss it is thrown away, never lent again. */
async function withClient<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch((error: unknown) => {
    throw error instanceof DatabaseError ? error : new PostgresUnreachable(error);
  });
  let lost: Error | undefined;
  // Lost between two statements: the next one is refused, and says so.
  const onError = (error: Error) => {
    lost = error;
  };
  client.on('error', onError);
  try {
    return await work(client);
  } catch (error) {
    if (error instanceof PostgresUnreachable || isFarewell(error)) lost = error;
    throw error;
  } finally {
    client.off('error', onError);
    client.release(lost);
  }
}

/** The last that a session says: its connection closes behind it, in a moment in which it may be lent again. */
function isFarewell(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && (error.severity === 'FATAL' || error.severity === 'PANIC');
}

function ask(client: PoolClient, text: string, values: readonly unknown[] = [], name?: string) {
  return rowsOf(client.query<object>(impatient(text, values, name)));
}

function impatient(text: string, values: readonly unknown[], name?: string): QueryConfig {
  const statement: QueryConfig & { query_timeout: number } = {
    text,
    ...(name !== undefined && { name }),
    ...(values.length > 0 && { values: [...values] }),
    query_timeout: SILENCE_LIMIT_MS,
  };
  return statement;
}

function askPatiently(client: PoolClient, text: string) {
  return rowsOf(client.query<object>(text));
}

async function copyOut(client: PoolClient, query: SqlText, use: UseBytes): Promise<void> {
  const { text, values } = compileSql(query, isSqlText);
  invariant(values.length === 0, 'a copy takes no parameters');
  const stream = client.query(copyTo(`copy (${text}) to stdout (format binary)`));
  const silence = setTimeout(() => stream.destroy(new Error('Postgres fell silent')), SILENCE_LIMIT_MS);
  let failure: { readonly error: unknown } | null = null;
  try {
    for await (const bytes of stream) {
      silence.refresh();
      // Who stops reading in the middle leaves a connection that nobody can use.
      if (failure !== null) continue;
      try {
        await use(bytes);
      } catch (error) {
        failure = { error };
      }
    }
  } catch (error) {
    rethrow(error);
  } finally {
    clearTimeout(silence);
  }
  if (failure !== null) throw failure.error;
}

async function rowsOf(answer: Promise<QueryResult<object>>): Promise<Rows<readonly object[]>> {
  const result = await answer.catch(rethrow);
  // Several statements without parameters give several results: the last one counts.
  const last = Array.isArray(result) ? (result.at(-1) as typeof result) : result;
  return Object.assign(last.rows, { count: last.rowCount ?? 0 });
}

/** What is no answer of Postgres is the loss of the connection. */
function rethrow(error: unknown): never {
  throw error instanceof DatabaseError ? error : new PostgresUnreachable(error);
}

const INT8 = 20;

/** int8 as number: every id of this service stays far below 2^53. */
function getTypeParser(...[oid, format]: Parameters<typeof types.getTypeParser>) {
  return oid === INT8 ? Number : types.getTypeParser(oid, format as 'text');
}

/** Appendix A of Postgres' manual: read-only (a replica), and given up waiting in one way or another. */
const UNAVAILABLE_STATES = new Set(['25006', '57014', '55P03', '25P03', '25P04']);
/** Connection lost; rolled back for the sake of another (a deadlock); connections, memory or disk used up; shutting
 * down, crashed, starting; the disk failed. The same question may be answered later. */
const UNAVAILABLE_CLASSES = ['08', '40', '53', '57P', '58'];

/** True when Postgres could not be asked (or not in time); false for what is a mistake in the question. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof DeadlineExceeded || error instanceof PostgresUnreachable) return true;
  const state = sqlState(error);
  if (state === null) return false;
  return UNAVAILABLE_STATES.has(state) || UNAVAILABLE_CLASSES.some((start) => state.startsWith(start));
}

/** The SQLSTATE of an error that Postgres answered with, else null. */
export function sqlState(error: unknown): string | null {
  return error instanceof DatabaseError ? (error.code ?? null) : null;
}

/** True when a statement broke this constraint of uniqueness (23505). */
export function isTaken(error: unknown, constraint: string): boolean {
  return error instanceof DatabaseError && error.code === '23505' && error.constraint === constraint;
}
