import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { type Bell, LocalBell, TOPICS, type Topic } from './bell.ts';
import { Coalescer } from './coalescer.ts';
import type { RedisPort } from './redisPort.ts';

export type BellEvent =
  /** The other pods did not hear a ring; they will look by themselves. */
  | { readonly kind: 'ring_lost'; readonly topic: Topic }
  | { readonly kind: 'subscribe_failed'; readonly reason: string };

/**
 * A bell over Redis pub/sub. Listeners of this process are rung directly, so the loss of Redis costs only the other
 * pods' rings. Whenever the subscription is made anew, every listener is rung once.
 */
export class RedisBell implements Bell {
  readonly #subscriber: Redis;
  readonly #channel: string;
  readonly #onEvent: (event: BellEvent) => void;
  readonly #here = new LocalBell();
  readonly #others: Coalescer<Topic>;
  /** Tells our own messages from others': ours have been rung here already. */
  readonly #self = randomUUID();

  /** `subscriber` is a connection for this purpose only; closing it is up to the caller. */
  constructor(port: RedisPort, subscriber: Redis, channel: string, onEvent: (event: BellEvent) => void) {
    this.#subscriber = subscriber;
    this.#channel = channel;
    this.#onEvent = onEvent;
    this.#others = new Coalescer((topic) => void this.#tellOthers(port, topic));
    subscriber.on('message', this.#onMessage);
    subscriber.on('ready', this.#subscribe);
    if (subscriber.status === 'ready') this.#subscribe();
  }

  ring(topic: Topic): void {
    this.#here.ring(topic);
    this.#others.ring(topic);
  }

  onRing(topic: Topic, listener: () => void): () => void {
    return this.#here.onRing(topic, listener);
  }

  close(): void {
    this.#subscriber.off('message', this.#onMessage);
    this.#subscriber.off('ready', this.#subscribe);
    this.#here.close();
    this.#others.close();
  }

  async #tellOthers(port: RedisPort, topic: Topic): Promise<void> {
    const answer = await port.send((redis) => redis.publish(this.#channel, `${topic} ${this.#self}`));
    if (!answer.ok) this.#onEvent({ kind: 'ring_lost', topic });
  }

  readonly #onMessage = (_channel: string, message: string): void => {
    const [name, sender] = message.split(' ');
    const topic = TOPICS.find((known) => known === name);
    if (topic !== undefined && sender !== this.#self) this.#here.ring(topic);
  };

  readonly #subscribe = (): void => {
    this.#subscriber.subscribe(this.#channel).then(
      () => {
        for (const topic of TOPICS) this.#here.ring(topic);
      },
      (error: unknown) => {
        // The connection closed meanwhile: the next one subscribes again.
        this.#onEvent({
          kind: 'subscribe_failed',
          reason: error instanceof Error ? error.message : String(error),
        });
      },
    );
  };
}
