import { type DeliverySchedule, LocalDeliverySchedule } from './deliverySchedule.ts';
import type { RedisKeys } from './redisKeys.ts';
import { luaScript, type RedisPort } from './redisPort.ts';

/** The schedule of all pods: a sorted set of endpoints by due time, on Redis' own clock. */
export class RedisDeliverySchedule implements DeliverySchedule {
  readonly #port: RedisPort;
  readonly #names: RedisKeys;
  /** Takes over what Redis could not be told. */
  readonly #fallback = new LocalDeliverySchedule();

  constructor(port: RedisPort, names: RedisKeys) {
    this.#port = port;
    this.#names = names;
  }

  async add(webhookId: number, dueInMs: number): Promise<void> {
    const added = await this.#port.run(ADD, [this.#names.deliveries], [webhookId, Math.ceil(dueInMs)]);
    if (!added.ok) await this.#fallback.add(webhookId, dueInMs);
  }

  async take(limit: number): Promise<number[]> {
    const own = await this.#fallback.take(limit);
    if (own.length === limit) return own;
    const taken = await this.#port.run(TAKE, [this.#names.deliveries], [limit - own.length]);
    return taken.ok ? [...own, ...(taken.value as string[]).map(Number)] : own;
  }
}

const NOW_MS = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** LT: an earlier time that was asked for stands. */
const ADD = luaScript(`${NOW_MS}
redis.call('ZADD', KEYS[1], 'LT', now + ARGV[2], ARGV[1])
return 1
`);

const TAKE = luaScript(`${NOW_MS}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
return due
`);
