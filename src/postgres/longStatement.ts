import type { ClientBase, QueryConfig } from 'pg';
import { DatabaseError } from 'pg';
import { clientBeside, cut, sessionName } from './hosts.ts';
import { PostgresUnreachable } from './sqlErrors.ts';

/** How a long statement is looked after. */
export interface Looks {
  readonly everyMs: number;
  readonly answerLimitMs: number;
  /** This many checks in a row that do not find it at work end the wait for it. */
  readonly inVain: number;
}

const LOOKS: Looks = { everyMs: 5_000, answerLimitMs: 5_000, inVain: 3 };

/**
 * The result of `run`, which sends one statement on `client`. However long it takes, or waits for a lock, it is waited for
 * while Postgres is at work on it: a connection beside it looks every five seconds. When Postgres says three times in a row
 * that this session does nothing, or does not answer at all, the connection is considered dead: it is closed, and this rejects,
 * 15 to 30 s after the silence began. An error, such as too many connections, counts as an answer.
 *
 * `pid`: the process id of the session, asked of Postgres. The id that the driver knows is wrong behind a pooler.
 */
export async function whileAtWork<T>(
  client: ClientBase,
  pid: number,
  run: () => Promise<T>,
  looks: Looks = LOOKS,
): Promise<T> {
  let inVain = 0;
  let isOver = false;
  let timer: NodeJS.Timeout;
  const look = async (): Promise<void> => {
    inVain = (await isAtWork(client, pid, looks)) ? 0 : inVain + 1;
    if (isOver) return;
    if (inVain === looks.inVain) cut(client);
    else timer = setTimeout(look, looks.everyMs);
  };
  timer = setTimeout(look, looks.everyMs);
  try {
    return await run();
  } catch (error) {
    throw inVain === looks.inVain ? new PostgresUnreachable({ code: 'NO_ANSWER' }) : error;
  } finally {
    isOver = true;
    clearTimeout(timer);
  }
}

async function isAtWork(client: ClientBase, pid: number, { answerLimitMs }: Looks): Promise<boolean> {
  const beside = clientBeside(client, {
    application_name: sessionName('watch'),
    connectionTimeoutMillis: answerLimitMs,
  });
  beside.on('error', () => undefined); // its query rejects
  try {
    await beside.connect();
    const { rows } = await beside.query<{ works: boolean }>({
      text: "select coalesce(state not like 'idle%', true) as works from pg_stat_activity where pid = $1",
      values: [pid],
      query_timeout: answerLimitMs,
    } as QueryConfig);
    return rows[0]?.works === true;
  } catch (error) {
    return error instanceof DatabaseError;
  } finally {
    await beside.end();
  }
}
