import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { RedisPort } from './redisConnection.ts';

export type NotifierEvent =
  /** The other pods were not notified. They poll the change log anyway. */
  { readonly kind: 'notify_failed' } | { readonly kind: 'subscribe_failed'; readonly reason: string };

/** First word of every message; the second identifies the sender. */
const TOPIC = 'changes';

/** Asks all pods to look at the change log. A notification carries no data. It may be lost or come twice. */
export interface Notifier {
  /** Calls the listeners of this process and of all other pods. Several calls within 20 ms become one or two. */
  notify(): void;
  /** Calls `listener`, which must not throw, on each notification and whenever some may have been missed. */
  onNotify(listener: () => void): void;
}

/** For a single process, which polls the change log. */
export const localNotifier: Notifier = { notify: () => undefined, onNotify: () => undefined };

/**
 * Over Redis pub/sub. Every listener also polls.
 *
 * Listeners of this process are called directly. So a lost Redis costs only the notifications of other pods. After
 * each new subscription all listeners are called once, because notifications may have been missed.
 */
export class RedisNotifier implements Notifier {
  readonly #subscriber: Redis;
  readonly #channel: string;
  readonly #onEvent: (event: NotifierEvent) => void;
  readonly #listeners = new Set<() => void>();
  readonly #local: Throttle;
  readonly #remote: Throttle;
  /** Marks our own messages: our listeners were called already. */
  readonly #sender = randomUUID();

  /** `subscriber` is a connection for this purpose only. The caller closes it. */
  constructor(port: RedisPort, subscriber: Redis, channel: string, onEvent: (event: NotifierEvent) => void) {
    this.#subscriber = subscriber;
    this.#channel = channel;
    this.#onEvent = onEvent;
    this.#local = new Throttle(() => {
      for (const listener of this.#listeners) listener();
    });
    this.#remote = new Throttle(() => void this.#publish(port));
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

  close(): void {
    this.#subscriber.off('message', this.#onMessage);
    this.#subscriber.off('ready', this.#subscribe);
    this.#local.close();
    this.#remote.close();
  }

  async #publish(port: RedisPort): Promise<void> {
    const answer = await port.send((redis) => redis.publish(this.#channel, `${TOPIC} ${this.#sender}`));
    if (!answer.ok) this.#onEvent({ kind: 'notify_failed' });
  }

  readonly #onMessage = (_channel: string, message: string): void => {
    const [topic, sender] = message.split(' ');
    if (topic === TOPIC && sender !== this.#sender) this.#local.call();
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
