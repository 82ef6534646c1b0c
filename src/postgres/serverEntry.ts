import { type ClientBase, DatabaseError, type QueryConfig } from 'pg';
import { invariant } from '../lib/invariant.ts';
import { PostgresUnreachable } from './sqlErrors.ts';

/** How much of a server a pod has seen: one that lacks something of it may give the same ids again. */
export interface SeenServer {
  /** The start of the server (table server_start), and a position in its log up to which everything is on disk, in bytes. */
  readonly start: number;
  readonly flushedBytes: number;
  /** The end of a snapshot: no transaction from here on was seen. */
  readonly xmax: number;
}

/** What the connections of one pod agree on about the server. */
export class ServerKnowledge {
  /** Null before memory is loaded. */
  seen: SeenServer | null = null;
  #eventScope: string | null = null;

  /**
   * What ids of webhook events are made from. Another one after each start of the server that may lack what was
   * acknowledged; every connection to that server has set it before it is lent.
   */
  get eventScope(): string {
    invariant(this.#eventScope !== null, 'a connection was opened before');
    return this.#eventScope;
  }

  noteEventScope(scope: string): void {
    this.#eventScope = scope;
  }
}

/** The connection waits for another that handles a new start; that takes some milliseconds. */
const LIMIT_MS = 5_000;
/** SQLSTATEs: a function is not there; a write in a transaction that is read-only. */
const UNDEFINED_FUNCTION = '42883';
const READ_ONLY = '25006';

/**
 * The first statement of a new connection: sees to it that the start of the server is written down, and ids are renewed if
 * they must be, before anything is written under it. Rejects a pod's connection to a replica.
 */
export async function enterServer(client: ClientBase, knowledge: ServerKnowledge | null): Promise<void> {
  const seen = knowledge?.seen ?? null;
  const statement = {
    text: 'select enter_server($1, $2, $3) as scope',
    values: [seen?.start ?? null, seen?.flushedBytes ?? null, seen?.xmax ?? null],
    query_timeout: LIMIT_MS,
  };
  const enter = async (): Promise<string | null> => {
    const { rows } = await client.query<{ scope: string | null }>(statement);
    return rows[0]?.scope ?? null;
  };
  try {
    const scope = await enter().catch((error: unknown) => enterReadOnly(client, enter, error));
    if (knowledge === null) return;
    // It may be promoted while this connection is open, and would be written to as it is then.
    if (scope === null) throw new PostgresUnreachable({ code: 'REPLICA' });
    knowledge.noteEventScope(scope);
  } catch (error) {
    // A database that is about to be migrated, or is none of this service.
    if (error instanceof DatabaseError && error.code === UNDEFINED_FUNCTION) return;
    throw error;
  }
}

/**
 * Enters a server that was set to read-only and started again, as providers do when its disk runs full. Unless the start is
 * written down, nothing can be read either: nobody would know whether it is still the same data. It takes two rows.
 */
async function enterReadOnly(
  client: ClientBase,
  enter: () => Promise<string | null>,
  error: unknown,
): Promise<string | null> {
  if (!(error instanceof DatabaseError && error.code === READ_ONLY)) throw error;
  await client.query({ text: 'begin read write', query_timeout: LIMIT_MS } as QueryConfig);
  const scope = await enter();
  await client.query({ text: 'commit', query_timeout: LIMIT_MS } as QueryConfig);
  return scope;
}
