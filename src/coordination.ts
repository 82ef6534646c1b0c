import type { Logger } from 'pino';
import type { Config } from './config.ts';
import type { RateLimiter, RateLimits, WorldVersions } from './redis/rateLimiter.ts';
import { LocalRateLimiter, localWorldVersions } from './redis/rateLimiter.ts';
import { RedisRateLimiter, RedisWorldVersions } from './redis/redisRateLimiter.ts';
import {
  type DeliverySchedule,
  LocalDeliverySchedule,
  localNotifier,
  type Notifier,
  RedisDeliverySchedule,
  RedisNotifier,
} from './redis/wakeUps.ts';

/** What pods share besides Postgres: limits, versions of worlds, and notifications. */
export interface Coordination {
  readonly rateLimiter: RateLimiter;
  readonly versions: WorldVersions;
  readonly deliveries: DeliverySchedule;
  readonly notifier: Notifier;
  /** False while this pod is on its own although it should not be. */
  isReachable(): boolean;
  /** Whether Redis has answered the last command in time. Null without Redis. */
  isAnswering(): boolean | null;
  /** Resolves when what is shared can be used, or will not be soon: then this pod begins on its own. */
  ready(): Promise<void>;
  close(): void;
}

export interface CoordinationPorts {
  readonly instanceId: string;
  readonly log: Logger;
  readonly catchUp: () => Promise<void>;
  readonly count: (event: 'back' | 'lost' | 'notify_failed' | 'subscribe_failed') => void;
}

/** A pod that begins before Redis answers would count its first calls alone. */
const READY_LIMIT_MS = 2_000;

/** Through Redis where it is configured, whose client is loaded only then; else this process must be the only one. */
export async function openCoordination(config: Config, ports: CoordinationPorts): Promise<Coordination> {
  const limits: RateLimits = config.rateLimits;
  if (config.redisUrl === null) {
    return {
      rateLimiter: new LocalRateLimiter({ limits }),
      versions: localWorldVersions,
      deliveries: new LocalDeliverySchedule(),
      notifier: localNotifier,
      isReachable: () => true,
      isAnswering: () => null,
      ready: async () => undefined,
      close: () => undefined,
    };
  }
  const { connectRedis, keepTogether, RedisPort, redisKeys, whenReady } = await import(
    './redis/redisConnection.ts'
  );
  const names = redisKeys(ports.instanceId, config.redisUrl);
  const commands = connectRedis(config.redisUrl, ports.log, ports.instanceId);
  const subscriber = connectRedis(config.redisUrl, ports.log, ports.instanceId);
  keepTogether(commands, subscriber);
  const port = new RedisPort(commands, { onEvent: (event) => ports.count(event.kind) });
  const notifier = new RedisNotifier(port, subscriber, names.channel, (event) => ports.count(event.kind));
  return {
    rateLimiter: new RedisRateLimiter(port, names, {
      limits,
      catchUp: ports.catchUp,
      onCatchUpFailed: (error) =>
        ports.log.warn({ err: error }, 'Redis is back, but memory cannot be compared with Postgres'),
    }),
    versions: new RedisWorldVersions(port, names),
    deliveries: new RedisDeliverySchedule(port, names),
    notifier,
    isReachable: () => port.isUsable,
    isAnswering: () => port.isUp,
    ready: async () => {
      if (await whenReady(commands, READY_LIMIT_MS)) return;
      ports.log.warn({}, 'Redis does not answer; starting without it, with limits per pod');
    },
    close: () => {
      notifier.close();
      commands.disconnect();
      subscriber.disconnect();
    },
  };
}
