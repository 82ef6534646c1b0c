import postgres from 'postgres';
import { openSql } from '../../../src/postgres/sql.ts';
import { waitFor } from '../waitFor.ts';

/** What happens to a client of the package `postgres` whose backend is ended with pg_terminate_backend. */
export interface KilledOutcome {
  /** The work: what it gave, or the code of its error. */
  readonly work: string;
  /** The next statement on the same client, likewise. */
  readonly next: string;
}

export type Moment = 'in a query' | 'in a transaction' | 'in one of two transactions';

type Row = Readonly<Record<string, unknown>>;
type Ask = (strings: TemplateStringsArray, ...values: number[]) => PromiseLike<readonly Row[]>;

// A process of its own, since it may end: node killedBackend.ts <url> <moment> prints a KilledOutcome.
const [url, moment] = process.argv.slice(2) as [string, Moment];
const other = openSql(url, { maxConnections: 1, name: 'other' });
const killed = openPostgres();
const acts: Readonly<Record<Moment, () => Promise<unknown>>> = {
  'in a query': actInQuery,
  'in a transaction': actInTransaction,
  'in one of two transactions': actInTwo,
};
const work = await outcomeOf(acts[moment]);
const next = await outcomeOf(async () => (await killed.ask`select 1 as one`)[0]?.['one']);
console.log(JSON.stringify({ work, next } satisfies KilledOutcome));
process.exit();

/** One connection. */
function openPostgres() {
  const closed = Promise.withResolvers<void>();
  const sql = postgres(url, { max: 1, onnotice: () => undefined, onclose: () => closed.resolve() });
  const ask: Ask = (strings, ...values) => sql<Row[]>(strings, ...values);
  return {
    ask,
    begin: (work: (ask: Ask) => Promise<unknown>) =>
      sql.begin((tx) => work((strings, ...values) => tx<Row[]>(strings, ...values))),
    noticed: () => closed.promise,
  };
}

async function actInQuery(): Promise<string> {
  const pid = await backendOf(killed.ask);
  const [slow] = await Promise.allSettled([killed.ask`select pg_sleep(30)`, kill(pid)]);
  if (slow.status === 'rejected') throw slow.reason;
  return 'answered';
}

function actInTransaction(): Promise<unknown> {
  return killed.begin(async (ask) => {
    await ask`insert into thing values (1)`;
    await kill(await backendOf(ask));
    await ask`insert into thing values (2)`;
  });
}

/** The second transaction begins when the first has lost its connection. */
async function actInTwo(): Promise<string> {
  const [secondBegan, firstWentOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = killed
    .begin(async (ask) => {
      await ask`insert into thing values (1)`;
      await kill(await backendOf(ask));
      await killed.noticed();
      await secondBegan.promise;
      await ask`insert into thing values (2)`;
    })
    .finally(() => firstWentOn.resolve());
  const second = killed.begin(async (ask) => {
    await ask`insert into thing values (11)`;
    secondBegan.resolve();
    await firstWentOn.promise;
    await ask`insert into thing values (12)`;
    return 'committed';
  });
  const outcomes = await Promise.all([outcomeOf(() => first), outcomeOf(() => second)]);
  return outcomes.join(', ');
}

async function backendOf(ask: Ask): Promise<number> {
  return Number((await ask`select pg_backend_pid() as pid`)[0]?.['pid']);
}

/** Ends a backend and waits until it is gone. */
async function kill(pid: number): Promise<void> {
  await other`select pg_terminate_backend(${pid}::int)`;
  await waitFor(async () => (await other`select 1 from pg_stat_activity where pid = ${pid}`).length === 0);
}

async function outcomeOf(work: () => Promise<unknown>): Promise<string> {
  try {
    return String(await work());
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
