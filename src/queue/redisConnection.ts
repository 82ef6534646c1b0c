import { Redis } from 'ioredis';

export interface ConnectionLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** How long a connection may take to be accepted, and a written command to be answered, before it is made anew. */
const CONNECT_TIMEOUT_MS = 2_000;
const SILENCE_TIMEOUT_MS = 5_000;
/** For commands sent straight through the client; RedisPort has its own, shorter deadline. */
const COMMAND_TIMEOUT_MS = 1_000;
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 1_000;
const KEEP_ALIVE_MS = 10_000;
/** Ending a connection that is gone already holds the process for this long. */
const DISCONNECT_TIMEOUT_MS = 100;

/**
 * A connection to Redis that reconnects for ever; a command fails at once while there is none. Commands and
 * subscriptions each need a connection of their own. Throws on a malformed URL.
 *
 * Logs when the connection comes and goes, not each attempt, and never the URL: it may hold a password. Of an error
 * only the message is logged, because ioredis attaches the failed command, for AUTH with the password.
 */
export function connectRedis(url: string, log: ConnectionLog): Redis {
  const { host } = new URL(url);
  const redis = new Redis(url, {
    // An increment whose answer was lost may have been counted: nothing is ever sent again, nor kept for later.
    // Without maxRetriesPerRequest 0 such a command would be dropped without settling its promise.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    // ioredis does not catch its own failing resubscription, which would end the process; the bell subscribes itself.
    autoResubscribe: false,
    // Its pipelines run one after the other, and each call costs 9 µs; the gate's own batches cost 2.5 µs a call.
    enableAutoPipelining: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(RETRY_MIN_MS * 2 ** (attempt - 1), RETRY_MAX_MS),
    // After a failover the old master, now a replica, keeps its connections. READONLY is an error code of the
    // protocol; Redis 6 wraps it into the message of the script that was refused.
    reconnectOnError: (error) => error.message.includes('READONLY'),
  });
  logChanges(redis, host, log);
  return redis;
}

/** True as soon as the connection can be used; false when it can not within `limitMs`. */
export function whenReady(redis: Redis, limitMs: number): Promise<boolean> {
  if (redis.status === 'ready') return Promise.resolve(true);
  return new Promise((resolve) => {
    const onReady = () => {
      clearTimeout(limit);
      resolve(true);
    };
    const limit = setTimeout(() => {
      redis.off('ready', onReady);
      resolve(false);
    }, limitMs);
    redis.once('ready', onReady);
  });
}

function logChanges(redis: Redis, host: string, log: ConnectionLog): void {
  let connected: boolean | null = null;
  let reason = 'connection closed';
  redis.on('error', (error: Error) => {
    reason = error.message;
  });
  redis.on('ready', () => {
    connected = true;
    reason = 'connection closed';
    log.info({ redis: host }, 'redis connected');
  });
  // Not 'close', which also follows an intended disconnect.
  redis.on('reconnecting', () => {
    if (connected === false) return;
    connected = false;
    log.warn({ redis: host, reason }, 'redis lost');
  });
}
