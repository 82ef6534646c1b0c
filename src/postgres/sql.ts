import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import { DatabaseError, types } from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { invariant } from '../lib/errors.ts';
import { MINUTE_MS } from '../lib/time.ts';
import { PostgresHosts } from './hosts.ts';
import { whileAtWork } from './longStatement.ts';
import { ENTER_LIMIT_MS, enterServer, type ServerKnowledge } from './serverEntry.ts';
import { ofPostgres, PostgresUnreachable } from './sqlErrors.ts';
import { compileSql, type Rows, type Run, type SqlText, Statement } from './sqlText.ts';

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
   * `statement_timeout` allows, while Postgres is at work on it (see whileAtWork). All other statements reject after 40 s.
   */
  unsafe<T extends readonly object[] = readonly object[]>(text: string): Promise<Rows<T>>;
  /**
   * Gives all that a query without parameters selects to `use`, in the binary format of COPY, in pieces of any length.
   * The next piece is not read before `use` has settled. If `use` rejects, the rest is read and dropped, and then the
   * copy rejects.
   */
  copy(query: SqlText, use: UseBytes): Promise<void>;
  /** Appends rows to `target`, a table with its columns, in the binary format of COPY (see CopyWriter). */
  copyIn(target: SqlText, rows: Buffer): Promise<void>;
}

/** The client that every store file takes. bigint columns are numbers, timestamps are Dates. */
export interface Sql extends Tx {
  /** Runs `work` in a transaction, with options such as an isolation level. Rolls back when `work` rejects. */
  begin<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  begin<T>(options: string, work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Runs `work` on one session outside a transaction. It is closed afterwards, with its settings, its locks and what runs. */
  session<T>(work: (own: Tx) => Promise<T>): Promise<T>;
  /** Runs text with numbered parameters (`$1`, `$2` …), which can be pasted into psql, as the prepared statement `name`. */
  prepared<T extends readonly object[]>(
    text: string,
    values: readonly unknown[],
    name: string,
  ): Promise<Rows<T>>;
  /** Waits for what runs, then closes every connection. */
  end(): Promise<void>;
}

/** A client with a pool of its own on `url`. Nothing is sent before the first statement. */
export function openSql(url: string, options: SqlOptions): Sql {
  const pool = openPool(new PostgresHosts(url), options);
  const lend = lendOf(pool, (work) => work());
  return sqlOn(lend, () => pool.end());
}

/** Told of each statement or transaction that failed: its SQLSTATE, or that the server could not be asked. */
export type OnSqlError = (code: string) => void;

/** Runs work that needs one connection, at once or when its turn has come. */
type Limit = <T>(work: () => Promise<T>) => Promise<T>;

/** Lends a connection to a statement or a transaction. `closes`: it is closed afterwards. */
export type Lend = <T>(work: (client: PoolClient) => Promise<T>, closes?: boolean) => Promise<T>;

/** Lends the connections of `pool`, each through `limit`. */
export function lendOf(pool: Pool, limit: Limit, onError: OnSqlError = () => undefined): Lend {
  return (work, closes = false) => limit(() => withClient(pool, work, onError, closes));
}

/** A client whose statements and transactions are each lent a connection. `end` closes all connections. */
export function sqlOn(lend: Lend, end: () => Promise<void>): Sql {
  const run: Run = (text, values, name) => lend((client) => query(client, text, values, name));
  return Object.assign(queryOn(run), {
    unsafe: (text: string) => lend((client) => queryUnlimited(client, text)),
    prepared: run,
    copy: (source: SqlText, use: UseBytes) => lend((client) => copyOut(client, source, use)),
    copyIn: (target: SqlText, rows: Buffer) => lend((client) => copyIn(client, target, rows)),
    begin: (first: unknown, second?: unknown) =>
      lend((client) =>
        typeof first === 'string'
          ? transaction(client, ` ${first}`, second as Work)
          : transaction(client, '', first as Work),
      ),
    session: (work: Work) => lend((client) => work(txOn(client)), true),
    end,
  }) as Sql;
}

type Work = (tx: Tx) => Promise<unknown>;

function queryOn(run: Run): Query {
  return (strings, ...values) => new Statement(run, { strings, values });
}

/** Statements on a connection that is lent. */
export function txOn(client: PoolClient): Tx {
  const unsafe = (text: string) => queryUnlimited(client, text);
  const copy = (source: SqlText, use: UseBytes) => copyOut(client, source, use);
  const copyRows = (target: SqlText, rows: Buffer) => copyIn(client, target, rows);
  const run: Run = (text, values, name) => query(client, text, values, name);
  return Object.assign(queryOn(run), { unsafe, copy, copyIn: copyRows }) as Tx;
}

async function transaction(client: PoolClient, options: string, work: Work): Promise<unknown> {
  await query(client, `begin${options}`);
  let result: unknown;
  try {
    result = await work(txOn(client));
  } catch (error) {
    if (!(error instanceof PostgresUnreachable)) await query(client, 'rollback');
    throw error;
  }
  await commit(client);
  return result;
}

/**
 * A Postgres array literal, passed as one text parameter and cast in the statement: `${arrayLiteral(ids)}::bigint[]`.
 * Only for values that need no quoting: numbers, booleans, null, IMEIs and words of a fixed list.
 */
export function arrayLiteral(values: readonly (number | boolean | string | null)[]): string {
  const texts = values.includes(null) ? values.map((value) => value ?? 'null') : values;
  return `{${texts.join(',')}}`;
}

/**
 * How long one statement may run, wait for a lock, or leave its transaction idle. A pod that stalls in the middle of a
 * transaction must not keep a device locked.
 */
const STATEMENT_TIMEOUT_MS = 30_000;
const LOCK_TIMEOUT_MS = 10_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;
/**
 * Postgres finds out within a minute and a half that a pod is gone whose machine or line died without a word, and ends its
 * sessions with the locks that they hold. By itself it would ask after two hours.
 */
const PEER_CHECK = {
  tcp_keepalives_idle: '30s',
  tcp_keepalives_interval: '10s',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '90s',
} as const;
/** An idle connection is kept for this long, because a new one costs a process of Postgres and some milliseconds. */
const IDLE_TIMEOUT_MS = MINUTE_MS;
/**
 * After this time without an answer the connection is closed: Postgres would have ended the statement long before. Its
 * machine has vanished, and the system would go on sending to it for a quarter of an hour.
 */
const SILENCE_LIMIT_MS = STATEMENT_TIMEOUT_MS + 10_000;

export interface SqlOptions {
  readonly maxConnections: number;
  readonly name: string;
  /** How long one statement may run, if that is less than usual. */
  readonly statementLimitMs?: number;
  /** Connections are kept however long they are idle: opening one takes tens of milliseconds where Postgres is busy. */
  readonly keepsIdle?: boolean;
  /** Further settings of each session. */
  readonly settings?: Readonly<Record<string, string>>;
  /** What the pod knows of the server. */
  readonly server?: ServerKnowledge;
  /** Nothing is recorded of the server, which is a replica. */
  readonly isReplica?: boolean;
}

export type UseBytes = (bytes: Buffer) => void | Promise<void>;

/** A pool of connections, each of which has entered its server. It opens none before the first statement. */
export function openPool(hosts: PostgresHosts, options: SqlOptions): Pool {
  const settings = settingsStatement({
    TimeZone: 'UTC',
    statement_timeout: String(options.statementLimitMs ?? STATEMENT_TIMEOUT_MS),
    lock_timeout: String(LOCK_TIMEOUT_MS),
    idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
    ...PEER_CHECK,
    ...options.settings,
  });
  const pool = hosts.openPool(
    {
      max: options.maxConnections,
      min: options.keepsIdle === true ? options.maxConnections : 0,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      application_name: options.name,
      types: { getTypeParser },
    },
    async (client) => {
      await client.query(settings);
      if (options.isReplica !== true) await enterServer(client, options.server ?? null);
    },
  );
  // An idle connection was lost. The pool has dropped it and opens another when one is needed.
  pool.on('error', () => undefined);
  // A connection may also be lost at the moment it is lent, when neither the pool nor the borrower listens. An error
  // without a listener would end the process. The next statement on the connection fails with it anyway.
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    client.on('notice', ({ routine }) => {
      if (routine === WAIT_FOR_REPLICA) unreplicated.add(client);
    });
  });
  return pool;
}

/** The first statement of a connection, since PgBouncer refuses connections that bring settings along. */
function settingsStatement(settings: Readonly<Record<string, string>>): QueryConfig {
  const values = Object.entries(settings).flat();
  const calls = Object.keys(settings).map((_, n) => `set_config($${2 * n + 1}, $${2 * n + 2}, false)`);
  return { text: `select ${calls.join()}`, values, query_timeout: ENTER_LIMIT_MS } as QueryConfig;
}

/** Names, in each language, where Postgres says that it waits no longer for a synchronous replica, and has committed. */
const WAIT_FOR_REPLICA = 'SyncRepWaitForLSN';
/** Connections whose statement was committed, perhaps on the primary alone. */
const unreplicated = new WeakSet<object>();

/**
 * Runs `work` with a connection of the pool. A lost connection, or one that `closes`, is not lent again. Rejects when somebody
 * has canceled a commit that waited for a synchronous replica (pg_cancel_backend): Postgres calls that a success with a
 * warning, but the transaction may be lost with the primary.
 */
async function withClient<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  onError: OnSqlError,
  closes: boolean,
): Promise<T> {
  const client = await pool.connect().catch((error: unknown) => {
    onError(codeOf(error) ?? UNREACHABLE);
    throw ofPostgres(error);
  });
  let lost: Error | undefined;
  // The connection was lost between two statements. The next statement fails.
  const onLost = (error: Error) => {
    lost = error;
  };
  client.on('error', onLost);
  try {
    const result = await work(client);
    if (unreplicated.has(client)) throw new PostgresUnreachable({ code: 'NOT_REPLICATED' });
    return result;
  } catch (error) {
    const code = codeOf(error);
    if (code !== null) onError(code);
    if (error instanceof PostgresUnreachable || endsSession(error)) lost = error;
    throw error;
  } finally {
    client.off('error', onLost);
    unreplicated.delete(client);
    client.release(lost ?? closes);
  }
}

const UNREACHABLE = 'unreachable';

/** Null for an error that is not of Postgres. */
function codeOf(error: unknown): string | null {
  if (error instanceof DatabaseError) return error.code ?? null;
  return error instanceof PostgresUnreachable ? UNREACHABLE : null;
}

/** After such an error the session closes its connection, perhaps only when it has been lent again. */
function endsSession(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && (error.severity === 'FATAL' || error.severity === 'PANIC');
}

/** Runs one statement, which gets an answer within `SILENCE_LIMIT_MS` or rejects. */
function query(client: PoolClient, text: string, values: readonly unknown[] = [], name?: string) {
  return rowsOf(client.query<object>(limited(text, values, name)));
}

/** Runs statements that may take as long as the setting `statement_timeout` of the session allows, if they are at work. */
async function queryUnlimited(client: PoolClient, text: string) {
  const [session] = (await query(client, 'select pg_backend_pid() as pid')) as readonly { pid: number }[];
  return whileAtWork(client, session?.pid ?? 0, () => rowsOf(client.query<object>(text)));
}

/** Commits. Rejects when Postgres rolled back instead, because a statement had failed and its error was ignored. */
async function commit(client: PoolClient): Promise<void> {
  const end = await client.query(limited('commit', [])).catch(rethrow);
  if (end.command !== 'COMMIT') {
    throw new Error('an error of a statement was ignored; the transaction was rolled back');
  }
}

/** Gives all that a query without parameters selects to `use`, in the binary format of COPY. */
async function copyOut(client: PoolClient, query: SqlText, use: UseBytes): Promise<void> {
  const { text, values } = compileSql(query);
  invariant(values.length === 0, 'a copy takes no parameters');
  const stream = client.query(copyTo(`copy (${text}) to stdout (format binary)`));
  const silence = setTimeout(() => stream.destroy(new Error('Postgres fell silent')), SILENCE_LIMIT_MS);
  let rejection: { readonly error: unknown } | null = null;
  try {
    for await (const bytes of stream) {
      silence.refresh();
      // All of it must be read: a copy that is stopped half way makes the connection unusable.
      if (rejection !== null) continue;
      try {
        await use(bytes);
      } catch (error) {
        rejection = { error };
      }
    }
  } catch (error) {
    rethrow(error);
  } finally {
    clearTimeout(silence);
  }
  if (rejection !== null) throw rejection.error;
}

/** Appends rows in the binary format of COPY. */
async function copyIn(client: PoolClient, target: SqlText, rows: Buffer): Promise<void> {
  const { text, values } = compileSql(target);
  invariant(values.length === 0, 'a copy takes no parameters');
  const stream = copyFrom(`copy ${text} from stdin (format binary)`);
  const ended = new Promise<void>((resolve, reject) => {
    stream.once('finish', resolve).on('error', reject);
  });
  client.query(Object.assign(stream, { query_timeout: SILENCE_LIMIT_MS }));
  stream.end(rows);
  await ended.catch(rethrow);
}

function limited(text: string, values: readonly unknown[], name?: string): QueryConfig {
  const statement: QueryConfig & { query_timeout: number } = {
    text,
    ...(name !== undefined && { name }),
    ...(values.length > 0 && { values: [...values] }),
    query_timeout: SILENCE_LIMIT_MS,
  };
  return statement;
}

async function rowsOf(answer: Promise<QueryResult<object>>): Promise<Rows<readonly object[]>> {
  const result = await answer.catch(rethrow);
  // Several statements without parameters give several results. The last one counts.
  const last = Array.isArray(result) ? (result.at(-1) as typeof result) : result;
  return Object.assign(last.rows, { count: last.rowCount ?? 0 });
}

function rethrow(error: unknown): never {
  throw ofPostgres(error);
}

const INT8 = 20;

/** int8 as number: every id of this service is far below 2^53. */
function getTypeParser(...[oid, format]: Parameters<typeof types.getTypeParser>) {
  return oid === INT8 ? Number : types.getTypeParser(oid, format as 'text');
}
