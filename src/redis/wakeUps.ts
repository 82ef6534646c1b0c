import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { RedisKeys, RedisPort } from './redisConnection.ts';
import { luaScript } from './redisRateLimiter.ts';

export type NotifierEvent =
  /** The other pods were not notified. They poll the change log anyway. */
  { readonly kind: 'notify_failed' } | { readonly kind: 'subscribe_failed'; readonly reason: string };

/** First words of messages; the second identifies the sender. */
const CHANGES = 'changes';
/** What comes third is about the trace of an event. */
const TRACE = 'trace';

/**
 * Asks all pods to look at the change log. Such a notification carries no data. It may be lost or come twice, so every
 * listener also polls.
 */
export interface Notifier {
  /** Calls the listeners of this process and of all other pods. Several calls within 20 ms become one or two. */
  notify(): void;
  /** Calls `listener`, which must not throw, on each notification and whenever some may have been missed. */
  onNotify(listener: () => void): void;
  /** Tells the other pods something about a trace. It may be lost. */
  tellTrace(text: string): void;
  /** Calls `listener`, which must not throw, with what other pods send. */
  onTrace(listener: (text: string) => void): void;
}

/** For a single process, which polls the change log. */
export const localNotifier: Notifier = {
  notify: () => undefined,
  onNotify: () => undefined,
  tellTrace: () => undefined,
  onTrace: () => undefined,
};

/**
 * The notifier of several pods, over Redis pub/sub.
 *
 * Listeners of this process are called directly. So a lost Redis costs only the notifications of other pods. After
 * each new subscription all listeners are called once, because notifications may have been missed.
 */
export class RedisNotifier implements Notifier {
  readonly #port: RedisPort;
  readonly #subscriber: Redis;
  readonly #channel: string;
  readonly #onEvent: (event: NotifierEvent) => void;
  readonly #listeners = new Set<() => void>();
  readonly #traceListeners = new Set<(text: string) => void>();
  readonly #local: Throttle;
  readonly #remote: Throttle;
  /** Marks our own messages: our listeners were called already. */
  readonly #sender = randomUUID();

  /** `subscriber` is a connection for this purpose only. The caller closes it. */
  constructor(port: RedisPort, subscriber: Redis, channel: string, onEvent: (event: NotifierEvent) => void) {
    this.#port = port;
    this.#subscriber = subscriber;
    this.#channel = channel;
    this.#onEvent = onEvent;
    this.#local = new Throttle(() => {
      for (const listener of this.#listeners) listener();
    });
    this.#remote = new Throttle(() => void this.#publishChanges());
    subscriber.on('message', this.#onMessage);
    subscriber.on('ready', this.#subscribe);
    if (subscriber.status === 'ready') this.#subscribe();
  }

  notify(): void {
    this.#local.call();
    this.#remote.call();
  }

  onNotify(listener: () => void): void {
    this.#listeners.add(listener);
  }

  tellTrace(text: string): void {
    void this.#publish(`${TRACE} ${this.#sender} ${text}`);
  }

  onTrace(listener: (text: string) => void): void {
    this.#traceListeners.add(listener);
  }

  close(): void {
    this.#subscriber.off('message', this.#onMessage);
    this.#subscriber.off('ready', this.#subscribe);
    this.#local.close();
    this.#remote.close();
  }

  async #publishChanges(): Promise<void> {
    const isPublished = await this.#publish(`${CHANGES} ${this.#sender}`);
    if (!isPublished) this.#onEvent({ kind: 'notify_failed' });
  }

  async #publish(message: string): Promise<boolean> {
    return (await this.#port.send((redis) => redis.publish(this.#channel, message))).ok;
  }

  readonly #onMessage = (_channel: string, message: string): void => {
    const [topic, sender, ...rest] = message.split(' ');
    if (sender === this.#sender) return;
    if (topic === CHANGES) this.#local.call();
    else if (topic === TRACE) for (const listener of this.#traceListeners) listener(rest.join(' '));
  };

  readonly #subscribe = (): void => {
    this.#subscriber.subscribe(this.#channel).then(
      () => this.#local.call(),
      (error: unknown) => {
        // The connection was closed. The next one subscribes again.
        this.#onEvent({
          kind: 'subscribe_failed',
          reason: error instanceof Error ? error.message : String(error),
        });
      },
    );
  };
}

/** Calls within this time of the last action become one more action. */
const QUIET_MS = 20;

/** Acts at once on the first call. All calls within the next 20 ms become one action at the end of that time. */
export class Throttle {
  readonly #act: () => void;
  #timer: NodeJS.Timeout | null = null;
  #isCalledAgain = false;
  #isClosed = false;

  constructor(act: () => void) {
    this.#act = act;
  }

  call(): void {
    if (this.#isClosed) return;
    if (this.#timer !== null) {
      this.#isCalledAgain = true;
      return;
    }
    this.#isCalledAgain = false;
    this.#timer = setTimeout(() => this.#endQuiet(), QUIET_MS);
    this.#act();
  }

  /** No action follows, not even for calls that were made already. */
  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #endQuiet(): void {
    this.#timer = null;
    if (this.#isCalledAgain) this.call();
  }
}

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
    // An endpoint that was added while Redis was lost may be in both schedules. Named twice, it would be run twice.
    return taken.ok ? [...new Set([...own, ...(taken.value as string[]).map(Number)])] : own;
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

/** Items by the time at which they are due, each once, at the earliest time asked for. */
export class DueQueue<Item> {
  readonly #dueAt = new Map<Item, number>();
  /** The same by time, the earliest last: what is due soon is added near the end, where little has to move. */
  readonly #entries: { readonly item: Item; readonly dueAt: number }[] = [];

  /** An earlier time that was asked for before is kept. */
  add(item: Item, dueAt: number): void {
    const known = this.#dueAt.get(item);
    if (known !== undefined && known <= dueAt) return;
    if (known !== undefined) {
      let at = this.#placeOf(known);
      while (this.#entries[at]?.item !== item) at++;
      this.#entries.splice(at, 1);
    }
    this.#dueAt.set(item, dueAt);
    this.#entries.splice(this.#placeOf(dueAt), 0, { item, dueAt });
  }

  /** Removes and returns up to `limit` items that are due by `now`, the longest due first. */
  take(now: number, limit: number): Item[] {
    const taken: Item[] = [];
    while (taken.length < limit && (this.#entries.at(-1)?.dueAt ?? Number.POSITIVE_INFINITY) <= now) {
      const { item } = this.#entries.pop() as { item: Item };
      this.#dueAt.delete(item);
      taken.push(item);
    }
    return taken;
  }

  /** The index of the first entry that is not due later. */
  #placeOf(dueAt: number): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#entries[middle]?.dueAt ?? 0) > dueAt) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
