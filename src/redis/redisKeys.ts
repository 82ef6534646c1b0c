/**
 * The names used in Redis. They begin with the namespace of the deployment (the instance id of its database), so that
 * several deployments can share one Redis. Pods of several versions run side by side, so names do not change.
 */
export interface RedisKeys {
  ipMinute(ip: string): string;
  keyMinute(keyId: number): string;
  keyHour(keyId: number): string;
  world(worldId: number): string;
  /** Endpoints by the time of their next delivery. */
  readonly deliveries: string;
  /** The pub/sub channel of notifications. */
  readonly channel: string;
}

export function redisKeys(namespace: string): RedisKeys {
  const prefix = `fleet:${namespace}:`;
  return {
    ipMinute: (ip) => `${prefix}im:${ip}`,
    keyMinute: (keyId) => `${prefix}km:${keyId}`,
    keyHour: (keyId) => `${prefix}kh:${keyId}`,
    world: (worldId) => `${prefix}w:${worldId}`,
    deliveries: `${prefix}deliveries`,
    channel: `${prefix}notify`,
  };
}
