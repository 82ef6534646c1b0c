import { Client } from 'pg';

/** Between two attempts to connect. Whoever listens also looks by itself, so there is no hurry. */
const RETRY_MS = 250;
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_DELAY_MS = 30_000;

/**
 * Calls `onNotify` for every NOTIFY on `channel`, and also whenever the connection was made anew, since some may have
 * been missed. Keeps a connection of its own and renews it for ever. Returns the way to stop.
 */
export function listen(url: string, channel: string, onNotify: () => void): () => Promise<void> {
  let stopped = false;
  let client: Client | null = null;
  let timer: NodeJS.Timeout | undefined;

  const again = () => {
    client = null;
    if (!stopped) timer = setTimeout(() => void connect(), RETRY_MS);
  };
  const connect = async (): Promise<void> => {
    const own = new Client({
      connectionString: url,
      application_name: 'fleet listener',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    });
    client = own;
    // An error is always followed by the end of the connection, which tries again.
    own.on('error', () => undefined);
    own.on('notification', onNotify);
    own.once('end', again);
    try {
      await own.connect();
      await own.query(`listen "${channel}"`);
      onNotify();
    } catch {
      // Not reachable: the feed is polled meanwhile and reports it. Ending it makes sure that 'end' comes.
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
