import { Client } from 'pg';
import { sessionName } from './connection.ts';

/** Between two attempts to connect. Listeners poll as well, so a gap does no harm. */
const RETRY_MS = 250;
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_DELAY_MS = 30_000;

/**
 * Calls `onNotify` for every NOTIFY on `channel`, and after each new connection, because some may have been missed. Uses
 * a connection of its own, and always reconnects. Returns a function that stops it.
 */
export function listen(url: string, channel: string, onNotify: () => void): () => Promise<void> {
  let stopped = false;
  let client: Client | null = null;
  let timer: NodeJS.Timeout | undefined;

  const retry = () => {
    client = null;
    if (!stopped) timer = setTimeout(() => void connect(), RETRY_MS);
  };
  const connect = async (): Promise<void> => {
    const own = new Client({
      connectionString: url,
      application_name: sessionName('listener'),
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    });
    client = own;
    // An error is always followed by the end of the connection, which leads to a retry.
    own.on('error', () => undefined);
    own.on('notification', onNotify);
    own.once('end', retry);
    try {
      await own.connect();
      await own.query(`listen "${channel}"`);
      onNotify();
    } catch {
      // Not reachable. The poll of the feed reports it. Ending the client makes sure that 'end' comes.
      await own.end().catch(() => undefined);
    }
  };
  void connect();

  return async () => {
    stopped = true;
    clearTimeout(timer);
    await client?.end().catch(() => undefined);
  };
}
