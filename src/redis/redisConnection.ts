import { Redis } from 'ioredis';
import { invariant } from '../lib/errors.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { parseRedisUrl, readTlsFiles } from './redisUrl.ts';
import { slotConnector } from './slotConnector.ts';

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
 * Codes of errors by which a server says that another one has the keys. After a failover the old master is a replica, and
 * keeps its connections. Redis 6 puts READONLY into the message of the script that failed; a node of a cluster says MOVED, and
 * CLUSTERDOWN while no other one is known.
 */
const ELSEWHERE = ['READONLY', 'MOVED ', 'CLUSTERDOWN'];

/**
 * A connection to Redis that always reconnects. While there is none, a command fails at once. Commands and subscriptions
 * each need a connection of their own. Where the URL names sentinels, each connection asks them for the master first; where
 * it names a cluster, for the node that holds the names of `namespace`.
 * Throws on a malformed URL and when a file that it names cannot be read.
 *
 * Logs when the connection is made and lost, not each attempt, and never the URL: it may contain a password. Of an error
 * only the message is logged, because ioredis attaches the failed command, which for AUTH contains the password.
 */
export function connectRedis(url: string, log: ConnectionLog, namespace = ''): Redis {
  const parsed = parseRedisUrl(url);
  invariant(parsed.ok, 'the URL of Redis is malformed');
  const { nodes, name } = parsed.value;
  const options = {
    ...readTlsFiles(parsed.value),
    ...(nodes.length > 0 && { Connector: slotConnector(nodes, redisKeys(namespace, url).channel) }),
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
    sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    retryStrategy: (attempt: number) => Math.min(RETRY_MIN_MS * 2 ** (attempt - 1), RETRY_MAX_MS),
    reconnectOnError: ({ message }: Error) => ELSEWHERE.some((code) => message.includes(code)),
  };
  const redis = parsed.value.url === null ? new Redis(options) : new Redis(parsed.value.url, options);
  logChanges(redis, name, log);
  return redis;
}

/**
 * Connects the subscriber again when the commands go to another server. A subscriber sends nothing, so it would not notice
 * for many minutes that its own server has vanished.
 */
export function keepTogether(commands: Redis, subscriber: Redis): void {
  commands.on('ready', () => {
    if (subscriber.status === 'ready' && serverOf(subscriber) !== serverOf(commands))
      subscriber.disconnect(true);
  });
}

function serverOf({ stream }: Redis): string {
  return `${stream.remoteAddress} ${stream.remotePort}`;
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

export type RedisEvent = { readonly kind: 'back' } | { readonly kind: 'lost'; readonly reason: string };

interface RedisPortOptions {
  /** Called when Redis starts and stops answering. */
  readonly onEvent: (event: RedisEvent) => void;
  readonly deadlineMs?: number;
  readonly restMs?: number;
}

/** A call waits this long for Redis. A local Redis answers in well under 1 ms. */
const DEADLINE_MS = 100;
/** The same for a caller that has nobody else to ask. */
const PATIENT_DEADLINE_MS = 500;
/** After an error no command is sent for this long. Then one command tries, while the others still fail at once. */
const REST_MS = 1_000;

/**
 * Commands to a Redis that may be lost at any moment. Every call settles within the deadline, with a value. A command
 * without an answer may have been executed, so it is never sent again.
 */
export class RedisPort {
  /** Changes with every connection. Redis may have forgotten what it confirmed on an earlier one (restart, failover). */
  session = 0;
  readonly #redis: Redis;
  readonly #onEvent: (event: RedisEvent) => void;
  readonly #deadlineMs: number;
  readonly #restMs: number;
  #up = false;
  #restUntilMs = 0;
  #patientRestUntilMs = 0;
  #isProbing = false;

  constructor(redis: Redis, { onEvent, deadlineMs = DEADLINE_MS, restMs = REST_MS }: RedisPortOptions) {
    this.#redis = redis;
    this.#onEvent = onEvent;
    this.#deadlineMs = deadlineMs;
    this.#restMs = restMs;
    redis.on('ready', () => this.#markUp());
    redis.on('close', () => {
      this.session++;
      this.#markDown('connection closed');
    });
    if (redis.status === 'ready') this.#markUp();
  }

  /** True from an answer until a command has none in time, or the connection is closed. */
  get isUp(): boolean {
    return this.#up;
  }

  /** False while a command would fail without being sent. */
  get isUsable(): boolean {
    if (this.#redis.status !== 'ready') return false;
    return this.#up || (!this.#isProbing && performance.now() >= this.#restUntilMs);
  }

  /** Runs a script by its hash. Sends the full text only if Redis does not know it, and then nothing has run yet. */
  run(
    script: LuaScript,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Result<unknown, string>> {
    return this.send(async (redis) => {
      try {
        return await redis.evalsha(script.sha1, keys.length, ...keys, ...args);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return redis.eval(script.lua, keys.length, ...keys, ...args);
      }
    });
  }

  /** The error says why Redis gave no answer. */
  async send<T>(command: (redis: Redis) => Promise<T>): Promise<Result<T, string>> {
    if (!this.isUsable) return fail('Redis is not usable now');
    const isProbe = !this.#up;
    if (isProbe) this.#isProbing = true;
    const answer = await within(this.#deadlineMs, command(this.#redis));
    if (isProbe) this.#isProbing = false;
    if (answer.ok) this.#markUp();
    else this.#markDown(answer.error);
    return answer;
  }

  /**
   * As `send`, but waits longer, and also asks a Redis that has just given no answer in time, as long as it is connected.
   * After such a call has failed, further ones fail at once for the length of the rest.
   */
  async sendPatiently<T>(command: (redis: Redis) => Promise<T>): Promise<Result<T, string>> {
    const isResting = performance.now() < this.#patientRestUntilMs;
    if (isResting || this.#redis.status !== 'ready') return fail('Redis is not usable now');
    const answer = await within(PATIENT_DEADLINE_MS, command(this.#redis));
    if (!answer.ok) this.#patientRestUntilMs = performance.now() + this.#restMs;
    return answer;
  }

  #markUp(): void {
    if (this.#up) return;
    this.#up = true;
    this.#onEvent({ kind: 'back' });
  }

  #markDown(reason: string): void {
    this.#restUntilMs = performance.now() + this.#restMs;
    if (!this.#up) return;
    this.#up = false;
    this.#onEvent({ kind: 'lost', reason });
  }
}

function within<T>(deadlineMs: number, answer: Promise<T>): Promise<Result<T, string>> {
  return new Promise((resolve) => {
    // If this process itself stalled, the answer is waiting in the socket: read the sockets once before giving up.
    const giveUp = () => setImmediate(() => resolve(fail(`no answer in ${deadlineMs} ms`)));
    const timer = setTimeout(giveUp, deadlineMs);
    answer
      .then(ok, (error: unknown) => fail(error instanceof Error ? error.message : String(error)))
      .then(resolve)
      .finally(() => clearTimeout(timer));
  });
}

export interface LuaScript {
  readonly lua: string;
  readonly sha1: string;
}

/** The first word of an error reply is its code (RESP specification, "Simple errors"). */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT ');
}

/**
 * The names used in Redis. They begin with the namespace of the deployment (the instance id of its database), so that
 * several deployments can share one Redis. Pods of two versions run side by side during an upgrade, so names do not change.
 * In a cluster all names are in one slot, by a hash tag, since a script runs on one node.
 */
export interface RedisKeys {
  /** In place of a key where there is none. It is neither read nor written. */
  readonly none: string;
  /** What names of limits begin with: an address or the id of a key follows. */
  readonly ipMinute: string;
  readonly keyMinute: string;
  readonly keyHour: string;
  /** What names of versions begin with: the id of a world follows. */
  readonly world: string;
  /** Endpoints by the time of their next delivery. */
  readonly deliveries: string;
  /** The pub/sub channel of notifications. */
  readonly channel: string;
}

/** `url`: where they are used. */
export function redisKeys(namespace: string, url = ''): RedisKeys {
  const parsed = parseRedisUrl(url);
  const isCluster = parsed.ok && parsed.value.nodes.length > 0;
  const prefix = isCluster ? `fleet:{${namespace}}:` : `fleet:${namespace}:`;
  return {
    none: isCluster ? `${prefix}none` : '',
    ipMinute: `${prefix}im:`,
    keyMinute: `${prefix}km:`,
    keyHour: `${prefix}kh:`,
    world: `${prefix}w:`,
    deliveries: `${prefix}deliveries`,
    channel: `${prefix}notify`,
  };
}
