import { type DeliverySchedule, LocalDeliverySchedule } from './deliverySchedule.ts';
import type { DueEndpoint } from './dueEndpoint.ts';
import type { RedisKeys } from './redisKeys.ts';
import { luaScript, type RedisPort } from './redisPort.ts';

/** Endpoints of one command. Redis runs nothing else meanwhile. */
const ADD_MAX = 500;

/** The schedule of all pods: a sorted set of endpoints by due time, by the clock of Redis. */
export class RedisDeliverySchedule implements DeliverySchedule {
  readonly #port: RedisPort;
  readonly #names: RedisKeys;
  /** Has the endpoints that could not be written to Redis. */
  readonly #fallback = new LocalDeliverySchedule();

  constructor(port: RedisPort, names: RedisKeys) {
    this.#port = port;
    this.#names = names;
  }

  async add(webhookId: number, dueInMs: number): Promise<void> {
    await this.addAll([{ webhookId, dueInMs }]);
  }

  async addAll(endpoints: readonly DueEndpoint[]): Promise<void> {
    for (let at = 0; at < endpoints.length; at += ADD_MAX) {
      const part = endpoints.slice(at, at + ADD_MAX);
      const args = part.flatMap(({ webhookId, dueInMs }) => [webhookId, Math.ceil(dueInMs)]);
      const added = await this.#port.run(ADD, [this.#names.deliveries], args);
      if (!added.ok) await this.#fallback.addAll(part);
    }
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

/** LT: an earlier time that was asked for before is kept. */
const ADD = luaScript(`${NOW_MS}
for i = 1, #ARGV, 2 do redis.call('ZADD', KEYS[1], 'LT', now + ARGV[i + 1], ARGV[i]) end
return 1
`);

const TAKE = luaScript(`${NOW_MS}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
return due
`);
