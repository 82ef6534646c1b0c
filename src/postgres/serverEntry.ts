import type { ClientBase, QueryConfig } from 'pg';
import { DatabaseError } from 'pg';
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
  /**
   * What ids of webhook events are made from; null before the first connection. Another one after each start of the server
   * that may lack what was acknowledged; every connection to that server has set it before it is lent.
   */
  eventScope: string | null = null;
}

/** A connection waits for another one that handles a new start, which takes some milliseconds. */
export const ENTER_LIMIT_MS = 5_000;
/** SQLSTATEs: a function is not there; a write in a transaction that is read-only. */
const UNDEFINED_FUNCTION = '42883';
const READ_ONLY = '25006';

/**
 * What a new connection does before it is lent: records the start of the server, and renews ids where the server may lack data,
 * before anything is written under this start. Rejects a pod's connection to a replica.
 */
export async function enterServer(client: ClientBase, knowledge: ServerKnowledge | null): Promise<void> {
  const seen = knowledge?.seen ?? null;
  const statement = {
    text: 'select enter_server($1, $2, $3) as scope',
    values: [seen?.start ?? null, seen?.flushedBytes ?? null, seen?.xmax ?? null],
    query_timeout: ENTER_LIMIT_MS,
  };
  const enter = async (): Promise<string | null> => {
    const { rows } = await client.query<{ scope: string | null }>(statement);
    return rows[0]?.scope ?? null;
  };
  try {
    const scope = await enter().catch((error: unknown) => enterReadOnly(client, enter, error));
    if (knowledge === null) return;
    // It may be promoted while this connection is open, and the connection would write to it.
    if (scope === null) throw new PostgresUnreachable({ code: 'REPLICA' });
    knowledge.eventScope = scope;
  } catch (error) {
    // A database without the schema: it will be migrated, or it belongs to another program.
    if (error instanceof DatabaseError && error.code === UNDEFINED_FUNCTION) return;
    throw error;
  }
}

/**
 * Enters a server that was set to read-only and started again, as providers do when its disk runs full. Without a record of
 * the start nothing could be read either, because the data may not be the same. It takes two rows.
 */
async function enterReadOnly(
  client: ClientBase,
  enter: () => Promise<string | null>,
  error: unknown,
): Promise<string | null> {
  if (!(error instanceof DatabaseError && error.code === READ_ONLY)) throw error;
  await client.query({ text: 'begin read write', query_timeout: ENTER_LIMIT_MS } as QueryConfig);
  const scope = await enter();
  await client.query({ text: 'commit', query_timeout: ENTER_LIMIT_MS } as QueryConfig);
  return scope;
}
