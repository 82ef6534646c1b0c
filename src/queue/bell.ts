import { Coalescer } from './coalescer.ts';

/** What to look at when it rings: the change feed, or the deliveries that are due. */
export type Topic = 'changes' | 'deliveries';

export const TOPICS: readonly Topic[] = ['changes', 'deliveries'];

/**
 * A doorbell between pods: it says "look", never what there is to see. Rings may be lost or come twice, so whoever
 * listens also looks now and then by itself.
 */
export interface Bell {
  /** Rings in this process and, if there are any, in all other pods. Several rings at once become one or two. */
  ring(topic: Topic): void;
  /** Calls `listener` on each ring, and when rings may have been missed; it must not throw. Returns the way to stop. */
  onRing(topic: Topic, listener: () => void): () => void;
  close(): void;
}

/** The listeners of this process: all there is when it is the only one. */
export class LocalBell implements Bell {
  readonly #listeners: Readonly<Record<Topic, Set<() => void>>> = {
    changes: new Set(),
    deliveries: new Set(),
  };
  readonly #rings = new Coalescer<Topic>((topic) => {
    for (const listener of this.#listeners[topic]) listener();
  });

  ring(topic: Topic): void {
    this.#rings.ring(topic);
  }

  onRing(topic: Topic, listener: () => void): () => void {
    // Its own function, so that one listener can be added twice and taken away once.
    const entry = () => listener();
    this.#listeners[topic].add(entry);
    return () => void this.#listeners[topic].delete(entry);
  }

  close(): void {
    this.#rings.close();
  }
}
