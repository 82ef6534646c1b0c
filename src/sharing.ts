import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { type DeliverySchedule, LocalDeliverySchedule } from './queue/deliverySchedule.ts';
import type { Gate, GateLimits } from './queue/gate.ts';
import { LocalGate } from './queue/localGate.ts';
import { RedisBell } from './queue/redisBell.ts';
import { connectRedis, whenReady } from './queue/redisConnection.ts';
import { RedisDeliverySchedule } from './queue/redisDeliverySchedule.ts';
import { RedisGate } from './queue/redisGate.ts';
import { redisKeys } from './queue/redisKeys.ts';
import { RedisPort } from './queue/redisPort.ts';
import { localWorldVersions, RedisWorldVersions, type WorldVersions } from './queue/worldVersions.ts';

/** What pods share besides Postgres: limits, versions of worlds, and a doorbell. */
export interface Sharing {
  readonly gate: Gate;
  readonly versions: WorldVersions;
  readonly deliveries: DeliverySchedule;
  /** Tells the other pods to look at the change feed. */
  ringOthers(): void;
  onRing(listener: () => void): void;
  /** Resolves when what is shared can be used, or will not be soon: then this pod begins on its own. */
  ready(): Promise<void>;
  close(): void;
}

export interface SharingPorts {
  readonly instanceId: string;
  readonly log: Logger;
  readonly catchUp: () => Promise<void>;
  readonly count: (event: 'back' | 'lost' | 'ring_lost' | 'subscribe_failed') => void;
}

/** A pod that begins before Redis answers would count its first calls alone. */
const READY_LIMIT_MS = 2_000;

/** Through Redis where it is configured; else this process is the only one and shares with nobody. */
export function openSharing(config: Config, ports: SharingPorts): Sharing {
  const limits: GateLimits = config.rateLimits;
  if (config.redisUrl === null) {
    return {
      gate: new LocalGate({ limits }),
      versions: localWorldVersions,
      deliveries: new LocalDeliverySchedule(),
      ringOthers: () => undefined,
      onRing: () => undefined,
      ready: async () => undefined,
      close: () => undefined,
    };
  }
  const names = redisKeys(ports.instanceId);
  const commands = connectRedis(config.redisUrl, ports.log);
  const subscriber = connectRedis(config.redisUrl, ports.log);
  const port = new RedisPort(commands, { onEvent: (event) => ports.count(event.kind) });
  const bell = new RedisBell(port, subscriber, names.bell, (event) => ports.count(event.kind));
  return {
    gate: new RedisGate(port, names, {
      limits,
      catchUp: ports.catchUp,
      onCatchUpFailed: (error) =>
        ports.log.warn({ err: error }, 'Redis is back, but memory cannot be compared with Postgres'),
    }),
    versions: new RedisWorldVersions(port, names),
    deliveries: new RedisDeliverySchedule(port, names),
    ringOthers: () => bell.ring('changes'),
    onRing: (listener) => void bell.onRing('changes', listener),
    ready: async () => {
      if (await whenReady(commands, READY_LIMIT_MS)) return;
      ports.log.warn({}, 'Redis does not answer; starting without it, with limits per pod');
    },
    close: () => {
      bell.close();
      commands.disconnect();
      subscriber.disconnect();
    },
  };
}
