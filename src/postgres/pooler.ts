import type { Socket } from 'node:net';
import type { Client } from 'pg';
import { type PostgresHosts, sessionName } from './hosts.ts';
import { ofPostgres, sqlState } from './sqlErrors.ts';

const ANSWER_LIMIT_MS = 5_000;
/** A pooler lends the session that was used last; others may be idle beside it. */
const HOLDERS_MAX = 5;
/** SQLSTATE: a statement that the protocol does not allow here, such as a transaction on a pooler of statements. */
const PROTOCOL_VIOLATION = '08P01';

/**
 * Whether a connection has another session of Postgres in each transaction, as behind PgBouncer with pool_mode =
 * transaction (or statement). Then settings, LISTEN and advisory locks of a session do not hold, on which this service
 * rests. A connection with a session of its own is the only one that ever has it; so the session of an idle connection
 * that another one is given is shared. Rejects when Postgres cannot be asked.
 */
export async function sharesSessions(hosts: PostgresHosts): Promise<boolean> {
  const clients: Client[] = [];
  const open = async (): Promise<Client> => {
    const client = new hosts.Client({
      application_name: sessionName('start'),
      query_timeout: ANSWER_LIMIT_MS,
    });
    client.on('error', () => undefined); // it ends below
    clients.push(client);
    await client.connect();
    await hosts.enter(client);
    return client;
  };
  const sessionOf = async (client: Client): Promise<SessionFacts> => {
    const { rows } = await client.query<SessionFacts>(
      'select pg_backend_pid() as pid, inet_client_port() as port',
    );
    return rows[0] as SessionFacts;
  };
  try {
    const first = await hosts.trying(open);
    const { pid, port } = await sessionOf(first);
    // Postgres sees this end of the connection: there is no pooler in between.
    if (port !== null && port === localPortOf(first)) return false;
    for (let holders = 0; holders < HOLDERS_MAX; holders++) {
      const holder = await open();
      const isBegun = await holder.query('begin').then(() => true, refusedTransaction);
      if (!isBegun || (await sessionOf(holder)).pid === pid) return true;
    }
    return false;
  } catch (error) {
    throw ofPostgres(error);
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
  }
}

interface SessionFacts {
  /** Of the process of Postgres. */
  readonly pid: number;
  /** Where the connection comes from, as Postgres sees it; null: a socket of its machine. */
  readonly port: number | null;
}

function localPortOf(client: Client): number | undefined {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream.localPort;
}

/** False for the refusal of a pooler of statements; rejects with any other error. */
function refusedTransaction(error: unknown): false {
  if (sqlState(error) === PROTOCOL_VIOLATION) return false;
  throw error;
}
