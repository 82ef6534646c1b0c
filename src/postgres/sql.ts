import type { Pool, PoolClient } from 'pg';
import {
  commit,
  copyOut,
  openPool,
  query,
  queryUnlimited,
  type SqlOptions,
  type UseBytes,
  withClient,
} from './connection.ts';
import { PostgresUnreachable } from './sqlErrors.ts';
import { type Rows, type Run, type SqlText, Statement } from './sqlText.ts';

/**
 * A statement as a tagged template: sql`select … where id = ${id}`. Values become parameters. A statement inside a
 * statement becomes part of its text. Nothing is sent before it is awaited.
 */
export type Query = <T extends readonly object[] = readonly Readonly<Record<string, unknown>>[]>(
  strings: TemplateStringsArray,
  ...values: readonly unknown[]
) => Statement<T>;

/** The client inside a transaction. */
export interface Tx extends Query {
  /**
   * Runs text without parameters that this program has put together, also several statements. It may take as long as
   * `statement_timeout` allows. All other statements reject after 40 s.
   */
  unsafe<T extends readonly object[] = readonly object[]>(text: string): Promise<Rows<T>>;
  /**
   * Gives all that a query without parameters selects to `use`, in the binary format of COPY, in pieces of any length.
   * The next piece is not read before `use` has settled. If `use` rejects, the rest is read and dropped, and then the
   * copy rejects.
   */
  copy(query: SqlText, use: UseBytes): Promise<void>;
}

/** The client that every store file takes. bigint columns are numbers, timestamps are Dates. */
export interface Sql extends Tx {
  /** Runs `work` in a transaction, with options such as an isolation level. Rolls back when `work` rejects. */
  begin<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  begin<T>(options: string, work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Runs text with numbered parameters (`$1`, `$2` …), which can be pasted into psql, as the prepared statement `name`. */
  prepared<T extends readonly object[]>(
    name: string,
    text: string,
    values: readonly unknown[],
  ): Promise<Rows<T>>;
  /** Waits for what runs, then closes every connection. */
  end(): Promise<void>;
}

/** A client with a pool of its own on `url`. Nothing is sent before the first statement. */
export function openSql(url: string, options: SqlOptions): Sql {
  return sqlOn(openPool(url, options), (work) => work());
}

/** Runs work that needs one connection, at once or when its turn has come. */
type Limit = <T>(work: () => Promise<T>) => Promise<T>;

/** A client on the connections of `pool`. Each statement and each transaction passes through `limit`. */
export function sqlOn(pool: Pool, limit: Limit): Sql {
  const lend = <T>(work: (client: PoolClient) => Promise<T>) => limit(() => withClient(pool, work));
  const run: Run = (text, values, name) => lend((client) => query(client, text, values, name));
  return Object.assign(queryOn(run), {
    unsafe: (text: string) => lend((client) => queryUnlimited(client, text)),
    prepared: (name: string, text: string, values: readonly unknown[]) => run(text, values, name),
    copy: (source: SqlText, use: UseBytes) => lend((client) => copyOut(client, source, use)),
    begin: (first: unknown, second?: unknown) =>
      lend((client) =>
        typeof first === 'string'
          ? transaction(client, ` ${first}`, second as Work)
          : transaction(client, '', first as Work),
      ),
    end: () => pool.end(),
  }) as Sql;
}

type Work = (tx: Tx) => Promise<unknown>;

function queryOn(run: Run): Query {
  return (strings, ...values) => new Statement(run, { strings, values });
}

async function transaction(client: PoolClient, options: string, work: Work): Promise<unknown> {
  const run: Run = (text, values, name) => query(client, text, values, name);
  const unsafe = (text: string) => queryUnlimited(client, text);
  const copy = (source: SqlText, use: UseBytes) => copyOut(client, source, use);
  const tx = Object.assign(queryOn(run), { unsafe, copy }) as Tx;
  await run(`begin${options}`);
  let result: unknown;
  try {
    result = await work(tx);
  } catch (error) {
    if (!(error instanceof PostgresUnreachable)) await run('rollback');
    throw error;
  }
  await commit(client);
  return result;
}
