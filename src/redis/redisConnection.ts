import { Redis } from 'ioredis';

export interface ConnectionLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** How long a connection may take to open, and a sent command to be answered, before it is opened again. */
const CONNECT_TIMEOUT_MS = 2_000;
const SILENCE_TIMEOUT_MS = 5_000;
/** For commands sent through the client itself. RedisPort has its own, shorter deadline. */
const COMMAND_TIMEOUT_MS = 1_000;
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 1_000;
const KEEP_ALIVE_MS = 10_000;
/** Closing a connection that is already gone keeps the process alive for this long. */
const DISCONNECT_TIMEOUT_MS = 100;

/**
 * A connection to Redis that always reconnects. While there is none, a command fails at once. Commands and subscriptions
 * each need a connection of their own. Throws on a malformed URL.
 *
 * Logs when the connection is made and lost, not each attempt, and never the URL: it may contain a password. Of an error
 * only the message is logged, because ioredis attaches the failed command, which for AUTH contains the password.
 */
export function connectRedis(url: string, log: ConnectionLog): Redis {
  const { host } = new URL(url);
  const redis = new Redis(url, {
    // An increment whose answer was lost may have been counted, so no command is sent again or queued for later.
    // Without maxRetriesPerRequest 0 such a command would be dropped without settling its promise.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    // ioredis does not catch an error of its own resubscription, which would end the process. RedisNotifier subscribes.
    autoResubscribe: false,
    // Its pipelines run one after the other and cost 9 µs a call. The batches of the rate limiter cost 2.5 µs a call.
    enableAutoPipelining: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(RETRY_MIN_MS * 2 ** (attempt - 1), RETRY_MAX_MS),
    // After a failover the old master is a replica, and keeps its connections. READONLY is an error code of the
    // protocol. Redis 6 puts it into the message of the script that failed.
    reconnectOnError: (error) => error.message.includes('READONLY'),
  });
  logChanges(redis, host, log);
  return redis;
}

/** True as soon as the connection can be used; false if it cannot be used within `limitMs`. */
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
  // Not 'close': that also follows an intended disconnect.
  redis.on('reconnecting', () => {
    if (connected === false) return;
    connected = false;
    log.warn({ redis: host, reason }, 'redis lost');
  });
}
