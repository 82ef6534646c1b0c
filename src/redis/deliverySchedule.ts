import { luaScript, type RedisKeys, type RedisPort } from './redisConnection.ts';

/**
 * When to look at which endpoint. Only a wake-up: Postgres has the truth. It may forget an endpoint or wake it twice. A
 * sweep fills it again from Postgres every few seconds.
 */
export interface DeliverySchedule {
  /** Makes an endpoint due in this many milliseconds. An earlier time that was asked for before is kept. */
  add(webhookId: number, dueInMs: number): Promise<void>;
  /** The same for many. */
  addAll(endpoints: readonly DueEndpoint[]): Promise<void>;
  /** Removes and returns up to `limit` due endpoints, the longest due first. */
  take(limit: number): Promise<number[]>;
}

/** An endpoint, and in how many milliseconds it is due. */
export interface DueEndpoint {
  readonly webhookId: number;
  readonly dueInMs: number;
}

/** The entry of the outbox: a pod that only takes points wakes one that delivers by it. No endpoint has this id. */
export const OUTBOX_ENTRY = 0;

/** The schedule of a single process. */
export class LocalDeliverySchedule implements DeliverySchedule {
  /** In milliseconds of performance.now(), which does not follow changes of the system clock. */
  readonly #due = new DueQueue<number>();

  async add(webhookId: number, dueInMs: number): Promise<void> {
    this.#due.add(webhookId, performance.now() + dueInMs);
  }

  async addAll(endpoints: readonly DueEndpoint[]): Promise<void> {
    for (const { webhookId, dueInMs } of endpoints) await this.add(webhookId, dueInMs);
  }

  async take(limit: number): Promise<number[]> {
    return this.#due.take(performance.now(), limit);
  }
}

/** Endpoints per command. Redis runs nothing else at the same time. */
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

interface Entry<Item> {
  readonly item: Item;
  readonly dueAt: number;
}

/** Outdated entries are removed when there are this many more of them than of the others. */
const STALE_MAX = 1_000;

/** Items by the time at which they are due, each once, at the earliest time asked for. Adding and taking are O(log n). */
export class DueQueue<Item> {
  readonly #dueAt = new Map<Item, number>();
  /** A binary heap by time. An entry is outdated when its item has another time. */
  #heap: Entry<Item>[] = [];

  /** An earlier time that was asked for before is kept. */
  add(item: Item, dueAt: number): void {
    const known = this.#dueAt.get(item);
    if (known !== undefined && known <= dueAt) return;
    this.#dueAt.set(item, dueAt);
    this.#heap.push({ item, dueAt });
    this.#rise();
    if (this.#heap.length > 2 * this.#dueAt.size + STALE_MAX) this.#clearStale();
  }

  /** Removes and returns up to `limit` items that are due by `now`, the longest due first. */
  take(now: number, limit: number): Item[] {
    const taken: Item[] = [];
    while (taken.length < limit && (this.#heap[0]?.dueAt ?? Number.POSITIVE_INFINITY) <= now) {
      const { item, dueAt } = this.#pop();
      if (this.#dueAt.get(item) !== dueAt) continue;
      this.#dueAt.delete(item);
      taken.push(item);
    }
    return taken;
  }

  /** A sorted array is a heap. */
  #clearStale(): void {
    const entries = this.#heap.filter(({ item, dueAt }) => this.#dueAt.get(item) === dueAt);
    this.#heap = entries.sort((a, b) => a.dueAt - b.dueAt);
  }

  #at(index: number): Entry<Item> {
    return this.#heap[index] as Entry<Item>;
  }

  #swap(a: number, b: number): void {
    const first = this.#at(a);
    this.#heap[a] = this.#at(b);
    this.#heap[b] = first;
  }

  #rise(): void {
    for (let at = this.#heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (this.#at(parent).dueAt <= this.#at(at).dueAt) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #pop(): Entry<Item> {
    const first = this.#at(0);
    const last = this.#heap.pop() as Entry<Item>;
    if (this.#heap.length === 0) return first;
    this.#heap[0] = last;
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < this.#heap.length && this.#at(child).dueAt < this.#at(least).dueAt) least = child;
      }
      if (least === at) return first;
      this.#swap(at, least);
      at = least;
    }
  }
}
